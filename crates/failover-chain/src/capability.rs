//! What a model can do, where it is known, against what a request needs.

use std::fmt;

/// What is known of a model. `None` means unknown, and unknown is never held against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Context window, in tokens.
    pub context_window: Option<u64>,
    /// Whether it takes images.
    pub images: Option<bool>,
    /// Whether its provider's API has a place for what the request shows: images, documents, recordings.
    pub media: Option<bool>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// Whether it has a JSON mode.
    pub json: Option<bool>,
    /// Whether it has what the request takes from somebody's store: an answer, a conversation, a file.
    pub state: Option<bool>,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a need of its own")]
#[non_exhaustive]
pub struct Needs {
    /// Tokens of the prompt and of the answer that is asked for; `None` where nobody counted.
    pub context_tokens: Option<u64>,
    /// It has images.
    pub images: bool,
    /// It shows something: images, documents, recordings.
    pub media: bool,
    /// It declares tools.
    pub tools: bool,
    /// It asks for JSON.
    pub json: bool,
    /// It goes on with something that somebody stores.
    pub state: bool,
}

/// Why a candidate is not attempted: it would need a stripped request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unfit {
    /// The request is larger than the window.
    ContextWindow,
    /// It takes no images, or not all that the request shows.
    Modality,
    /// It calls no tools.
    Tools,
    /// It has no JSON mode.
    Json,
    /// Somebody else stores what the request goes on with.
    State,
}

impl Unfit {
    /// The name that decisions and logs use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ContextWindow => "context_window",
            Self::Modality => "modality",
            Self::Tools => "tools",
            Self::Json => "json",
            Self::State => "state",
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Capabilities {
    /// Why a request with these needs does not fit; `None` where it fits or nothing is known.
    pub fn unfit(&self, needs: &Needs) -> Option<Unfit> {
        let too_long = self.context_window.zip(needs.context_tokens).is_some_and(|(has, wants)| wants > has);
        let lacks = |has: Option<bool>, wants: bool| wants && has == Some(false);
        [
            (too_long, Unfit::ContextWindow),
            (lacks(self.images, needs.images), Unfit::Modality),
            (lacks(self.media, needs.media), Unfit::Modality),
            (lacks(self.tools, needs.tools), Unfit::Tools),
            (lacks(self.json, needs.json), Unfit::Json),
            (lacks(self.state, needs.state), Unfit::State),
        ]
        .into_iter()
        .find_map(|(unfit, why)| unfit.then_some(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn known() -> Capabilities {
        Capabilities {
            context_window: Some(8_000),
            images: Some(false),
            media: Some(false),
            tools: Some(false),
            json: Some(false),
            state: Some(false),
        }
    }

    // spec: H-11
    #[test_case(Needs { context_tokens: Some(8_001), ..Needs::default() }, Some(Unfit::ContextWindow); "too long")]
    #[test_case(Needs { context_tokens: Some(8_000), ..Needs::default() }, None; "just fits")]
    #[test_case(Needs { images: true, ..Needs::default() }, Some(Unfit::Modality); "no images")]
    #[test_case(Needs { media: true, ..Needs::default() }, Some(Unfit::Modality); "no documents")]
    #[test_case(Needs { tools: true, ..Needs::default() }, Some(Unfit::Tools); "no tools")]
    #[test_case(Needs { json: true, ..Needs::default() }, Some(Unfit::Json); "no json mode")]
    #[test_case(Needs { state: true, ..Needs::default() }, Some(Unfit::State); "stored elsewhere")]
    #[test_case(Needs::default(), None; "needs nothing")]
    fn a_known_lack_is_named(needs: Needs, expected: Option<Unfit>) {
        assert_eq!(known().unfit(&needs), expected);
    }

    // spec: H-11
    #[test]
    fn nothing_known_means_no_check() {
        let needs = Needs {
            context_tokens: Some(u64::MAX),
            images: true,
            media: true,
            tools: true,
            json: true,
            state: true,
        };
        assert_eq!(Capabilities::default().unfit(&needs), None);
        let able = Capabilities {
            images: Some(true),
            media: Some(true),
            tools: Some(true),
            json: Some(true),
            state: Some(true),
            ..Capabilities::default()
        };
        assert_eq!(able.unfit(&needs), None);
    }
}
