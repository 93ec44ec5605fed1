//! What a run is made from.

use super::policy::RunPolicy;
use failover_types::{ModelRef, RunId, SessionId};
use std::sync::Arc;

/// What is known of a model's abilities. `None` is not known, and then nothing is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelFacts {
    /// Tokens that prompt and answer may have together.
    pub context_window: Option<u64>,
    /// Whether it takes images.
    pub images: Option<bool>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// Whether it can be held to JSON.
    pub json_mode: Option<bool>,
}

/// What the request asks of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// Tokens, as far as they were counted or estimated.
    pub tokens: Option<u64>,
    /// It has images.
    pub images: bool,
    /// It has tools.
    pub tools: bool,
    /// It wants JSON.
    pub json_mode: bool,
}

/// What a model lacks for a request (requirement H-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unfit {
    /// The request is larger than the window.
    ContextWindow,
    /// It takes no images.
    Modality,
    /// It calls no tools.
    Tools,
    /// It cannot be held to JSON.
    JsonMode,
}

impl Unfit {
    /// A stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::ContextWindow => "context_window",
            Self::Modality => "modality",
            Self::Tools => "tools",
            Self::JsonMode => "json_mode",
        }
    }
}

impl ModelFacts {
    /// What the model lacks for `needs`, as far as anything is known.
    pub fn unfit(&self, needs: &Needs) -> Option<Unfit> {
        let too_long = self.context_window.zip(needs.tokens).is_some_and(|(window, tokens)| tokens > window);
        let lacks = |has: Option<bool>, wanted: bool| wanted && has == Some(false);
        if too_long {
            Some(Unfit::ContextWindow)
        } else if lacks(self.images, needs.images) {
            Some(Unfit::Modality)
        } else if lacks(self.tools, needs.tools) {
            Some(Unfit::Tools)
        } else if lacks(self.json_mode, needs.json_mode) {
            Some(Unfit::JsonMode)
        } else {
            None
        }
    }
}

/// One model of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// Which model.
    pub model: ModelRef,
    /// What is known of it.
    pub facts: ModelFacts,
}

impl Candidate {
    /// A candidate of which nothing is known.
    pub fn new(model: ModelRef) -> Self {
        Self { model, facts: ModelFacts::default() }
    }

    /// Adds what is known of the model.
    #[must_use]
    pub fn with_facts(mut self, facts: ModelFacts) -> Self {
        self.facts = facts;
        self
    }
}

/// What a run is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum Purpose {
    /// A turn of a conversation.
    #[default]
    Turn,
    /// A side call: a title, a summary. Its failures never disable a profile (requirement A-16).
    Helper,
}

/// What a run is made from: the chain, the request's needs, and the rules.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunSpec {
    /// This run; unique.
    pub run: RunId,
    /// The session that it belongs to, where there is one.
    pub session: Option<SessionId>,
    /// The same for every attempt (requirement R-18).
    pub idempotency_key: Arc<str>,
    /// The candidates; the first is the primary of this run.
    pub chain: Vec<Candidate>,
    /// Candidates for prompts that are too long (requirement H-10).
    pub on_context_overflow: Vec<Candidate>,
    /// Candidates for refused content (requirement H-10).
    pub on_content_refusal: Vec<Candidate>,
    /// What the request asks of a model.
    pub needs: Needs,
    /// Whether the request may be repeated though output was delivered (requirement R-9).
    pub replay_safe: bool,
    /// What the run is for.
    pub purpose: Purpose,
    /// Whether fallbacks are written into the session before they are tried (requirement S-2).
    pub claims: bool,
    /// The numbers.
    pub policy: RunPolicy,
    /// Seeds the jitter: two runs with the same seed wait alike.
    pub seed: u64,
}

impl RunSpec {
    /// A run of `chain` without a session, by the default numbers. The run's id is the idempotency key.
    pub fn new(run: RunId, chain: Vec<Candidate>) -> Self {
        Self {
            idempotency_key: run.as_str().into(),
            run,
            session: None,
            chain,
            on_context_overflow: Vec::new(),
            on_content_refusal: Vec::new(),
            needs: Needs::default(),
            replay_safe: false,
            purpose: Purpose::Turn,
            claims: false,
            policy: RunPolicy::default(),
            seed: 0,
        }
    }

    /// Puts the run into a session. Fallbacks are written into it before they are tried.
    #[must_use]
    pub fn with_session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self.claims = true;
        self
    }

    /// Sets the numbers.
    #[must_use]
    pub fn with_policy(mut self, policy: RunPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Says what the request asks of a model.
    #[must_use]
    pub fn with_needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: &str) -> Self {
        self.idempotency_key = key.into();
        self
    }
}

/// Why no plan can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// There is nothing to try.
    #[error("the chain is empty; name at least one model")]
    EmptyChain,
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    const KNOWN: ModelFacts = ModelFacts {
        context_window: Some(100),
        images: Some(false),
        tools: Some(true),
        json_mode: Some(false),
    };

    // spec: H-11
    #[test_case(KNOWN, Needs { tokens: Some(101), ..Needs::default() }, Some("context_window"))]
    #[test_case(KNOWN, Needs { tokens: Some(100), ..Needs::default() }, None; "just fits")]
    #[test_case(KNOWN, Needs { images: true, ..Needs::default() }, Some("modality"))]
    #[test_case(KNOWN, Needs { tools: true, ..Needs::default() }, None)]
    #[test_case(KNOWN, Needs { json_mode: true, ..Needs::default() }, Some("json_mode"))]
    #[test_case(ModelFacts { tools: Some(false), ..ModelFacts::default() }, Needs { tools: true, ..Needs::default() }, Some("tools"))]
    #[test_case(ModelFacts::default(), Needs { tokens: Some(u64::MAX), images: true, tools: true, json_mode: true }, None; "nothing known, no check")]
    fn fitness(facts: ModelFacts, needs: Needs, unfit: Option<&str>) {
        assert_eq!(facts.unfit(&needs).map(Unfit::code), unfit);
    }
}
