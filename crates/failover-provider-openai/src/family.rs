//! What OpenAI's models that reason take and refuse, by the family of their names.

use failover_provider::{Effort, Sampling};

/// Whether a model is of a family that reasons.
fn is_reasoner(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let family = ["o1", "o3", "o4", "gpt-5", "codex"].iter().any(|family| name.starts_with(family));
    family && !name.contains("-chat")
}

/// Whether a model reasons in this request: the others refuse to be asked for encrypted reasoning.
pub(crate) fn reasons(model: &str, effort: Option<Effort>) -> bool {
    is_reasoner(model) || effort.is_some_and(|effort| effort != Effort::None)
}

/// Those that reason refuse to be sampled otherwise than they are made for, unless they are told not to reason
/// (<https://platform.openai.com/docs/guides/latest-model>).
pub(crate) fn sampling(model: &str, effort: Option<Effort>) -> Sampling {
    if is_reasoner(model) && effort != Some(Effort::None) { Sampling::Fixed } else { Sampling::Free }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    // spec: P-7
    #[test_case("gpt-5", None, Sampling::Fixed)]
    #[test_case("openai/o3-mini", Some(Effort::Low), Sampling::Fixed)]
    #[test_case("gpt-5.1", Some(Effort::None), Sampling::Free)]
    #[test_case("gpt-5-chat-latest", None, Sampling::Free)]
    #[test_case("gpt-4o", None, Sampling::Free)]
    fn a_model_that_reasons_is_not_sampled_otherwise(
        model: &str,
        effort: Option<Effort>,
        expected: Sampling,
    ) {
        assert_eq!(sampling(model, effort), expected);
    }
}
