//! Decisions in the log, under the field names of requirement R-11.

use crate::plan::{Decision, DecisionKind, DecisionObserver, StepOutcome};
use failover_types::{FailoverReason, ModelRef, ProfileId, SessionId};
use std::sync::Arc;

/// Writes the decision to the log and tells the observer. Every text in it is redacted already.
pub(super) fn observe(decision: &Arc<Decision>, observer: Option<&dyn DecisionObserver>) {
    if let Some(observer) = observer {
        observer.on_decision(decision);
    }
    let session = decision.session.as_ref().map(SessionId::as_str);
    let why = match &decision.kind {
        DecisionKind::ChainStopped { reason, remaining } => {
            let remaining: Vec<String> = remaining.iter().map(ModelRef::to_string).collect();
            tracing::warn!(
                runId = %decision.run,
                sessionId = session,
                requestedModel = %decision.requested,
                reason = reason.code(),
                attempts = decision.attempts,
                remaining = remaining.join(", "),
                "model_fallback_chain_stopped"
            );
            return;
        }
        DecisionKind::SkipCandidate { why } => Some(*why),
        DecisionKind::CandidateFailed
        | DecisionKind::CandidateSucceeded
        | DecisionKind::ProbeCooldownCandidate
        | DecisionKind::RetryInPlace
        | DecisionKind::RotateProfile => None,
    };
    // Formatting costs more than deciding: only where somebody listens.
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let to = decision.next.as_ref().map(ToString::to_string);
    tracing::info!(
        runId = %decision.run,
        sessionId = session,
        decision = decision.kind.name(),
        requestedModel = %decision.requested,
        candidateModel = %decision.candidate,
        profileId = decision.profile.as_ref().map(ProfileId::as_str),
        fallbackStepFromModel = %decision.candidate,
        fallbackStepToModel = to.as_deref(),
        fallbackStepFromFailureReason = decision.reason.map(FailoverReason::as_str),
        fallbackStepFromFailureDetail = decision.detail.as_deref().or(why),
        fallbackStepChainPosition = decision.position,
        fallbackStepFinalOutcome = decision.outcome.map(StepOutcome::name),
        status = decision.status,
        attempt = decision.attempts,
        total = decision.total,
        profileCount = decision.profiles,
        healthUnknown = decision.unknown,
        "model_fallback_decision"
    );
}
