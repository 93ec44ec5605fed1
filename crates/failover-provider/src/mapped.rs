//! What a request becomes for one attempt, and what mappings have in common.

use crate::{
    AttemptScope, ChatRequest, Fields, Json, JsonError, Loss, LossReason, Losses, Opaque, ToolChoice,
};

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

/// Which of temperature and nucleus sampling a model takes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "adapters choose among all of them")]
pub enum Sampling {
    /// Both.
    Free,
    /// One of the two, and a temperature of so much at most.
    OneOf {
        /// The highest temperature.
        hottest: f64,
    },
    /// Neither.
    Fixed,
}

impl ChatRequest {
    /// Temperature and nucleus sampling (`top_p`) as the model takes them; what it would refuse is a loss.
    pub fn sampling(&self, takes: Sampling, losses: &mut Losses) -> (Option<f64>, Option<f64>) {
        let (temperature, top_p) = match takes {
            Sampling::Free => (self.temperature, self.top_p),
            Sampling::OneOf { hottest } => {
                let temperature = self.temperature.map(|temperature| temperature.min(hottest));
                (temperature, self.top_p.filter(|_| temperature.is_none()))
            }
            Sampling::Fixed => (None, None),
        };
        if temperature != self.temperature {
            losses.note("temperature", LossReason::NoPlace);
        }
        if top_p != self.top_p {
            losses.note("top_p", LossReason::NoPlace);
        }
        (temperature, top_p)
    }

    /// The texts that end the answer: the first `most` that the API takes, and blank ones only where it takes those. What it
    /// would refuse is a loss.
    pub fn stops(&self, most: Option<usize>, blank: bool, losses: &mut Losses) -> Vec<&str> {
        let texts = self.stop.iter().map(String::as_str).filter(|text| blank || !text.trim().is_empty());
        let stops: Vec<&str> = texts.take(most.unwrap_or(usize::MAX)).collect();
        if stops.len() < self.stop.len() {
            losses.note("stop", LossReason::NoPlace);
        }
        stops
    }

    /// Which tool the model must call, where it is left `any` tool: APIs refuse the choice without. One that wants a call
    /// is a loss then.
    pub fn choice_among(&self, any: bool, losses: &mut Losses) -> Option<&ToolChoice> {
        let choice = self.tool_choice.as_ref()?;
        if !any && !matches!(choice, ToolChoice::Auto | ToolChoice::None) {
            losses.note("tool_choice", LossReason::NoPlace);
        }
        any.then_some(choice)
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
    use test_case::test_case;

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

    // spec: P-7
    #[test_case(Sampling::Free, Some(1.5), Some(0.5), (Some(1.5), Some(0.5)), &[])]
    #[test_case(Sampling::OneOf { hottest: 1.0 }, Some(1.5), Some(0.5), (Some(1.0), None), &["temperature", "top_p"])]
    #[test_case(Sampling::OneOf { hottest: 1.0 }, Some(0.5), None, (Some(0.5), None), &[])]
    #[test_case(Sampling::OneOf { hottest: 1.0 }, None, Some(0.5), (None, Some(0.5)), &[])]
    #[test_case(Sampling::Fixed, Some(0.5), None, (None, None), &["temperature"])]
    fn models_get_the_sampling_that_they_take(
        takes: Sampling,
        temperature: Option<f64>,
        top_p: Option<f64>,
        sent: (Option<f64>, Option<f64>),
        lost: &[&str],
    ) {
        let mut request = ChatRequest::prompt("hi");
        (request.temperature, request.top_p) = (temperature, top_p);
        let mut losses = Losses::default();
        assert_eq!(request.sampling(takes, &mut losses), sent);
        let noted: Vec<String> = losses.into_vec().into_iter().map(|loss| loss.what).collect();
        assert_eq!(noted, lost);
    }

    // spec: P-7
    #[test_case(None, true, &["a", " ", "b"], 0; "as it is")]
    #[test_case(Some(2), true, &["a", " "], 1; "so many")]
    #[test_case(Some(2), false, &["a", "b"], 1; "none that is blank")]
    fn an_answer_is_ended_by_texts_that_the_api_takes(
        most: Option<usize>,
        blank: bool,
        sent: &[&str],
        lost: usize,
    ) {
        let mut request = ChatRequest::prompt("hi");
        request.stop = ["a", " ", "b"].map(str::to_owned).into();
        let mut losses = Losses::default();
        assert_eq!(request.stops(most, blank, &mut losses), sent);
        assert_eq!(losses.into_vec().len(), lost);
    }

    // spec: P-7
    #[test_case(None, false, false, 0)]
    #[test_case(Some(ToolChoice::Required), true, true, 0)]
    #[test_case(Some(ToolChoice::Required), false, false, 1)]
    #[test_case(Some(ToolChoice::Auto), false, false, 0)]
    fn no_call_is_asked_for_where_no_tool_is_left(
        choice: Option<ToolChoice>,
        any: bool,
        sent: bool,
        lost: usize,
    ) {
        let mut request = ChatRequest::prompt("hi");
        request.tool_choice = choice;
        let mut losses = Losses::default();
        assert_eq!(request.choice_among(any, &mut losses).is_some(), sent);
        assert_eq!(losses.into_vec().len(), lost);
    }
}
