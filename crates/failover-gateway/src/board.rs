//! The last decisions, for people: what was decided, about whom, and why.

use crate::metrics::Metrics;
use failover::runner::plan::{AttemptStep, Decision, DecisionKind, DecisionObserver, StepOutcome};
use failover::types::{Clock, FailoverReason, ModelRef, Timestamp};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// How many decisions are kept.
const KEPT: usize = 200;

struct Noted {
    number: u64,
    at: Timestamp,
    decision: Arc<Decision>,
}

/// A decision as the admin API shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown {
    number: u64,
    at: Timestamp,
    run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    decision: &'static str,
    requested: ModelRef,
    model: ModelRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<ModelRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<FailoverReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    health_unknown: bool,
    position: usize,
    total: usize,
}

#[derive(Default)]
struct Kept {
    last: u64,
    decisions: VecDeque<Noted>,
}

/// Watches every run of every engine of the server.
pub(crate) struct Board {
    clock: Arc<dyn Clock>,
    /// Hears what is kept here.
    also: Option<Arc<dyn DecisionObserver>>,
    metrics: Metrics,
    kept: Mutex<Kept>,
    known: RwLock<BTreeMap<ModelRef, Arc<str>>>,
    other: Arc<str>,
    none: Arc<str>,
}

impl Board {
    pub(crate) fn new(clock: Arc<dyn Clock>, also: Option<Arc<dyn DecisionObserver>>) -> Self {
        Self {
            clock,
            also,
            metrics: Metrics::default(),
            kept: Mutex::default(),
            known: RwLock::default(),
            other: "other".into(),
            none: "none".into(),
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Says which models may be named in metrics: what clients make up may not.
    pub(crate) fn set_known(&self, known: &BTreeSet<ModelRef>) {
        let names = known.iter().map(|model| (model.clone(), model.to_string().into())).collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// The model's name in metrics.
    pub(crate) fn label(&self, model: &ModelRef) -> Arc<str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.get(model).unwrap_or(&self.other))
    }

    /// The label where nobody answered, or no route was found.
    pub(crate) fn nobody(&self) -> Arc<str> {
        Arc::clone(&self.none)
    }

    /// The last decisions after this number, newest first.
    pub(crate) fn decisions(&self, after: u64) -> Vec<Shown> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = kept.decisions.iter().rev().take_while(|noted| noted.number > after);
        newer.map(show).collect()
    }
}

fn show(noted: &Noted) -> Shown {
    let decision = &noted.decision;
    Shown {
        number: noted.number,
        at: noted.at,
        run: decision.run.to_string(),
        session: decision.session.as_ref().map(ToString::to_string),
        decision: decision.kind.name(),
        requested: decision.requested.clone(),
        model: decision.candidate.clone(),
        profile: decision.profile.as_ref().map(ToString::to_string),
        next: decision.next.clone(),
        reason: decision.reason,
        why: match &decision.kind {
            DecisionKind::SkipCandidate { why } => Some(*why),
            DecisionKind::ChainStopped { reason, .. } => Some(reason.code()),
            DecisionKind::CandidateFailed
            | DecisionKind::CandidateSucceeded
            | DecisionKind::ProbeCooldownCandidate
            | DecisionKind::RetryInPlace
            | DecisionKind::RotateProfile
            | _ => None,
        },
        detail: decision.detail.clone(),
        status: decision.status,
        rule: decision.rule.clone(),
        outcome: decision.outcome.map(StepOutcome::name),
        health_unknown: decision.unknown,
        position: decision.position,
        total: decision.total,
    }
}

impl DecisionObserver for Board {
    fn on_decision(&self, decision: &Arc<Decision>) {
        let plain = decision.kind == DecisionKind::CandidateSucceeded && decision.reason.is_none();
        // What went as it should is counted as a request, and would push out here what people look for.
        if plain {
            return;
        }
        if let Some(also) = &self.also {
            also.on_decision(decision);
        }
        let reason = decision.reason.map_or("none", FailoverReason::as_str);
        self.metrics.decided(decision.kind.name(), self.label(&decision.candidate), reason);
        let at = self.clock.now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let noted = Noted { number: kept.last, at, decision: Arc::clone(decision) };
        if kept.decisions.len() >= KEPT {
            kept.decisions.pop_front();
        }
        kept.decisions.push_back(noted);
    }

    fn on_attempt(&self, attempt: &AttemptStep) {
        self.metrics.attempted(&self.label(&attempt.model));
    }
}
