//! What a request becomes for one attempt, and what mappings have in common.

use crate::{AttemptScope, ChatRequest, Fields, Json, JsonError, Loss, LossReason, Losses, Opaque};

/// A request in the words of one API.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Mapped {
    /// The body to send, as JSON.
    pub body: String,
    /// What of the request has no place in it.
    pub losses: Vec<Loss>,
}

impl Mapped {
    /// A body that is whole.
    ///
    /// # Errors
    ///
    /// As [`Json::of`].
    pub fn new(body: &Fields, losses: Losses) -> Result<Self, JsonError> {
        Ok(Self { body: Json::of(body)?.as_str().to_owned(), losses: losses.into_vec() })
    }
}

impl Fields {
    /// Adds the fields of `opaque` that belong where the attempt goes. One whose name is taken, and one from elsewhere, is a
    /// loss.
    ///
    /// # Errors
    ///
    /// As [`Json::of`].
    pub fn put_opaque<'a>(
        &mut self,
        opaque: impl IntoIterator<Item = &'a Opaque>,
        scope: &AttemptScope<'_>,
        losses: &mut Losses,
    ) -> Result<(), JsonError> {
        for field in opaque {
            if self.has(&field.name) {
                losses.leave_out(field, LossReason::NoPlace);
            } else if losses.is_at_home(field, scope) {
                self.put(&field.name, &field.value)?;
            }
        }
        Ok(())
    }
}

impl ChatRequest {
    /// Whether a field of this name belongs where the attempt goes, so that it says itself what the neutral ones say less
    /// exactly.
    pub fn has_own(&self, name: &str, scope: &AttemptScope<'_>, losses: &Losses) -> bool {
        self.opaque.iter().any(|opaque| opaque.name == name && losses.may_go(opaque, scope))
    }

    /// The vendor's own tools, which stand beside functions in an opaque field `tools`: where they belong to the attempt's
    /// target, and otherwise none, which is a loss.
    pub fn own_tools(&self, scope: &AttemptScope<'_>, losses: &mut Losses) -> Vec<Json> {
        let mut tools = Vec::new();
        for own in self.opaque.iter().filter(|opaque| opaque.name == "tools") {
            if losses.is_at_home(own, scope) {
                tools.extend(serde_json::from_str::<Vec<Json>>(own.value.as_str()).unwrap_or_default());
            }
        }
        tools
    }
}

/// The turns of a conversation for an API whose sides must alternate: what one side says twice in a row is one turn.
/// Results of parallel calls come together that way, as such APIs want.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turns(Vec<(&'static str, Vec<Json>)>);

impl Turns {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what `side` says, in the API's word for the side. Nothing said makes no turn.
    pub fn push(&mut self, side: &'static str, said: Vec<Json>) {
        match self.0.last_mut().filter(|(last, _)| *last == side) {
            Some((_, turn)) => turn.extend(said),
            None if said.is_empty() => {}
            None => self.0.push((side, said)),
        }
    }

    /// Objects with the side in `role` and what it said in `content`, which is the API's name for that field.
    ///
    /// # Errors
    ///
    /// As [`Json::of`].
    pub fn fields(&self, content: &str) -> Result<Vec<Fields>, JsonError> {
        self.0
            .iter()
            .map(|(side, said)| {
                let mut fields = Fields::default();
                fields.put("role", side)?;
                fields.put(content, said)?;
                Ok(fields)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_goes_on_has_one_turn() {
        let mut turns = Turns::new();
        for (side, said) in [("user", "1"), ("user", "2"), ("model", ""), ("model", "3"), ("user", "4")] {
            turns.push(side, (!said.is_empty()).then(|| Json::parse(said).unwrap()).into_iter().collect());
        }
        let expected =
            r#"[{"role":"user","parts":[1,2]},{"role":"model","parts":[3]},{"role":"user","parts":[4]}]"#;
        assert_eq!(serde_json::to_string(&turns.fields("parts").unwrap()).unwrap(), expected);
    }
}
