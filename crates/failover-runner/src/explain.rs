//! What a run would do now, and why: the plan itself, run against what is known, without a single call.

use crate::health::{Health, Preference};
use crate::plan::{
    AttemptEnd, Bound, ClaimAnswer, Event, Failed, Plan, RecordAnswer, RunSpec, Skip, Slot, SpecError,
    Standing, Step, What, bound,
};
use failover_types::{FailoverReason, ModelRef, ProfileId, Timestamp};
use std::fmt;
use std::sync::Arc;

/// What a run would do now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// When it was asked.
    pub now: Timestamp,
    /// The candidates in order, and what would become of each if all before it failed.
    pub candidates: Vec<Explained>,
    /// The worst case of a whole run (requirement R-18).
    pub worst: Bound,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explained {
    /// The model.
    pub model: ModelRef,
    /// What would become of it.
    pub fate: Fate,
    /// Its profiles in the order in which they would be tried, with their standing.
    pub profiles: Vec<Slot>,
}

/// What would become of a candidate.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a candidate is tried, skipped or not reached")]
pub enum Fate {
    /// It would be tried, beginning with this profile.
    Tried {
        /// The first profile.
        profile: ProfileId,
        /// As a probe: it is out, or just was.
        probe: bool,
    },
    /// It would be skipped.
    Skipped(Skip),
    /// A bound of the run would end the walk before.
    NotReached,
}

/// What a run of `spec` would do now. Reads `health` and changes nothing.
///
/// # Errors
///
/// [`SpecError`] where there is nothing to try.
pub fn explain(
    spec: &RunSpec,
    health: &Arc<Health>,
    preference: &Preference,
    now: Timestamp,
) -> Result<Explanation, SpecError> {
    let mut plan = Plan::new(spec.clone(), now)?;
    let session = spec.session.as_ref();
    let mut profiles: Vec<(ModelRef, Vec<Slot>)> = Vec::new();
    let mut probes: Vec<ModelRef> = Vec::new();
    let done = loop {
        let event = match plan.next_step() {
            Step::Decision(_) => continue,
            Step::Done(done) => break done,
            Step::OrderProfiles(order) => {
                let slots = health.slots(&order, preference, session, now);
                if profiles.iter().all(|(model, _)| *model != order.model) {
                    profiles.push((order.model.clone(), slots.slots.clone()));
                }
                Event::Profiles(slots)
            }
            Step::Lease(step) => Event::Leased(health.would_lease(&step, &spec.policy, now)),
            Step::Attempt(step) => {
                if step.kind == crate::plan::AttemptKind::Probe {
                    probes.push(step.model);
                }
                // The one failure that says nothing about anybody and goes on: what comes next is as it is now.
                Event::Ended(AttemptEnd::Failed(Failed::new(FailoverReason::ModelNotFound)))
            }
            Step::Claim(_) => Event::Claimed(ClaimAnswer::TurnLocal),
            Step::Record(_) => Event::Recorded(RecordAnswer::Known),
            Step::Release => Event::Released,
            Step::Repair(_) => Event::Repaired(false),
            Step::Settle(_) => Event::Settled,
            Step::Wait(_) => Event::Woke,
        };
        if plan.handle(now, event).is_err() {
            // Every step above is answered by its own event.
            break crate::plan::Done::default();
        }
    };
    let candidates = spec
        .chain
        .iter()
        .map(|candidate| {
            let model = candidate.model.clone();
            let visit = done.trail.iter().find(|visit| visit.model == model);
            let fate = match visit.map(|visit| &visit.what) {
                Some(What::Attempt(attempt)) => {
                    Fate::Tried { profile: attempt.profile.clone(), probe: probes.contains(&model) }
                }
                Some(What::Skip(skip)) => Fate::Skipped(skip.clone()),
                None => Fate::NotReached,
            };
            let slots = profiles.iter().find(|(of, _)| *of == model).map(|(_, slots)| slots.clone());
            let slots =
                slots.unwrap_or_else(|| health.slots(&candidate.into(), preference, session, now).slots);
            Explained { model, fate, profiles: slots }
        })
        .collect();
    let all = [&spec.chain, &spec.on_context_overflow, &spec.on_content_refusal];
    let counts: Vec<usize> = all
        .into_iter()
        .flatten()
        .map(|candidate| health.slots(&candidate.into(), preference, session, now).slots.len())
        .collect();
    Ok(Explanation { now, candidates, worst: bound(&spec.policy, &counts) })
}

fn standing(standing: Standing, now: Timestamp) -> String {
    match standing {
        Standing::Ready => "ready".to_owned(),
        Standing::Cold => "ready, not used yet".to_owned(),
        Standing::Recovering { reason } => {
            format!("its window ({reason}) has ended; one caller tries it first")
        }
        Standing::Out { reason, until } => format!("out ({reason}) for {} s", until.since(now).as_secs()),
        Standing::Paused => "paused".to_owned(),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, candidate) in self.candidates.iter().enumerate() {
            write!(f, "{}. {}: ", index + 1, candidate.model)?;
            match &candidate.fate {
                Fate::Tried { profile, probe: false } => writeln!(f, "tried with {profile}")?,
                Fate::Tried { profile, probe: true } => writeln!(f, "probed with {profile}")?,
                Fate::Skipped(skip) => writeln!(f, "skipped, {skip}")?,
                Fate::NotReached => writeln!(f, "not reached")?,
            }
            for slot in &candidate.profiles {
                writeln!(f, "     {}: {}", slot.profile, standing(slot.standing, self.now))?;
            }
        }
        let Bound { calls, waiting, .. } = self.worst;
        writeln!(f, "At most {calls} calls, and {} ms of waiting besides them.", waiting.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Candidate, LeaseAnswer, LeaseKind, LeaseStep, RecordStep};
    use failover_auth::{CooldownPolicy, Failure};
    use failover_types::RunId;

    const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn spec(models: &[&str]) -> RunSpec {
        let chain = models.iter().map(|text| Candidate::new(text.parse().unwrap())).collect();
        RunSpec::new(RunId::new("run").unwrap(), chain)
    }

    // spec, H-12
    #[test]
    fn it_says_who_is_tried_who_is_skipped_and_what_the_worst_case_is() {
        let health = Arc::new(Health::new(CooldownPolicy::default(), None));
        let billing: ModelRef = "b/m".parse().unwrap();
        let record = RecordStep::new(
            "b:default".parse().unwrap(),
            billing.clone(),
            Failure::new(&billing, FailoverReason::Billing, T0).into(),
        );
        health.record(&record, None, T0);
        let told = explain(&spec(&["a/m", "b/m", "c/m"]), &health, &Preference::default(), T0).unwrap();
        assert_eq!(
            told.to_string(),
            "1. a/m: tried with a:default\n     a:default: ready, not used yet\n\
             2. b/m: skipped, every profile is out (billing)\n     b:default: out (billing) for 18000 s\n\
             3. c/m: tried with c:default\n     c:default: ready, not used yet\n\
             At most 8 calls, and 69000 ms of waiting besides them.\n"
        );
    }

    // spec: R-1
    #[test]
    fn asking_changes_nothing() {
        let health = Arc::new(Health::new(CooldownPolicy::default(), None));
        let model: ModelRef = "a/m".parse().unwrap();
        let profile: ProfileId = "a:default".parse().unwrap();
        let failure = Failure::new(&model, FailoverReason::Timeout, T0).into();
        health.record(&RecordStep::new(profile.clone(), model.clone(), failure), None, T0);
        let later = T0.after(std::time::Duration::from_secs(31));
        let before = health.generation();
        for _ in 0..3 {
            let told = explain(&spec(&["a/m", "b/m"]), &health, &Preference::default(), later).unwrap();
            let probe = Fate::Tried { profile: profile.clone(), probe: true };
            assert_eq!(told.candidates.first().map(|it| it.fate.clone()), Some(probe));
        }
        assert_eq!(health.generation(), before);
        let step = LeaseStep::new(profile, model, LeaseKind::Recovering);
        let (answer, guard) = health.lease(&step, &crate::plan::RunPolicy::default(), later);
        assert_eq!((answer, guard.is_some()), (LeaseAnswer::Granted, true), "nobody holds it");
    }
}
