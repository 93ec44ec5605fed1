//! What a plan asks for, and what it is told.

use super::decision::Decision;
use super::spec::Candidate;
use super::trail::Visit;
use failover_auth::{LeftOut, Outcome};
use failover_types::{FailoverReason, Lane, ModelRef, ModelSelector, ProfileId, Scope, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// What to do next. Every step but [`Step::Decision`] and [`Step::Done`] waits for its [`Event`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a driver carries out every step")]
pub enum Step {
    /// Say who could serve the model now, in order. Answer: [`Event::Profiles`].
    OrderProfiles(OrderProfiles),
    /// Ask for leave to try a profile that is unproven or cooling. Answer: [`Event::Leased`].
    Lease(LeaseStep),
    /// Write the fallback into the session, before it is tried. Answer: [`Event::Claimed`].
    Claim(ClaimStep),
    /// Make one attempt. Answer: [`Event::Ended`].
    Attempt(AttemptStep),
    /// Remember how the attempt ended. Answer: [`Event::Recorded`].
    Record(RecordStep),
    /// Take back what the last claim wrote. Answer: [`Event::Released`].
    Release,
    /// Ask the caller to repair the request. Answer: [`Event::Repaired`].
    Repair(RepairKind),
    /// The attempt answered: prove the claim, clear an override, pin the profile. Answer: [`Event::Settled`].
    Settle(SettleStep),
    /// Wait. Answer: [`Event::Woke`].
    Wait(WaitStep),
    /// Tell the observer. No answer.
    Decision(Arc<Decision>),
    /// The run is over. Every further step is this one.
    Done(Done),
}

impl Step {
    /// A stable name, for logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::OrderProfiles(_) => "order_profiles",
            Self::Lease(_) => "lease",
            Self::Claim(_) => "claim",
            Self::Attempt(_) => "attempt",
            Self::Record(_) => "record",
            Self::Release => "release",
            Self::Repair(_) => "repair",
            Self::Settle(_) => "settle",
            Self::Wait(_) => "wait",
            Self::Decision(_) => "decision",
            Self::Done(_) => "done",
        }
    }
}

/// Say who could serve a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderProfiles {
    /// The model.
    pub model: ModelRef,
    /// The credential that was named with it: this one and no other.
    pub profile: Option<ProfileId>,
}

impl From<&Candidate> for OrderProfiles {
    fn from(candidate: &Candidate) -> Self {
        Self { model: candidate.model.clone(), profile: candidate.profile.clone() }
    }
}

/// Ask for leave to try a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStep {
    /// The profile.
    pub profile: ProfileId,
    /// The model.
    pub model: ModelRef,
    /// What for.
    pub kind: LeaseKind,
}

impl LeaseStep {
    /// Leave to try `profile` for `model`.
    pub fn new(profile: ProfileId, model: ModelRef, kind: LeaseKind) -> Self {
        Self { profile, model, kind }
    }
}

/// What a lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: every kind has its own limit")]
pub enum LeaseKind {
    /// An ordinary call: twice as many at a time as have been seen to work, and at first a few (requirement R-14).
    Plain {
        /// It has waited long enough for somebody else's answer.
        waited: bool,
    },
    /// Its window has ended: one at a time, across processes (requirement A-26).
    Recovering,
    /// Its window still holds: one at a time, and only so often (requirement R-6).
    Probe {
        /// Least time since the last probe of the provider.
        interval: Duration,
        /// How many of this run's own calls have failed on the profile.
        own: u32,
        /// A person chose it: once a window it is tried at once (requirement A-23).
        forced: bool,
    },
}

/// Write a fallback into the session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimStep {
    /// The model that is about to be tried.
    pub model: ModelRef,
    /// The profile that it will be tried with.
    pub profile: ProfileId,
    /// The run's primary.
    pub primary: ModelRef,
    /// Why the run's primary did not answer, where that is known.
    pub reason: Option<FailoverReason>,
}

/// Make one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptStep {
    /// The model.
    pub model: ModelRef,
    /// The profile.
    pub profile: ProfileId,
    /// Place of the candidate in the walk, from 0.
    pub candidate: usize,
    /// Number of the attempt in the run, from 1.
    pub number: u32,
    /// The same for every attempt of the run.
    pub idempotency_key: Arc<str>,
    /// Time limits.
    pub limits: AttemptLimits,
    /// What the attempt is, apart from an attempt.
    pub kind: AttemptKind,
    /// When it began.
    pub started_at: Timestamp,
}

/// What an attempt is, apart from an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptKind {
    /// Nothing else.
    #[default]
    Plain,
    /// The same profile and model again (requirement R-15), or the repaired request.
    Again,
    /// It tries a profile that is cooling (requirement R-6), or one whose window has just ended.
    Probe,
}

/// Time limits of one attempt, by what they measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptLimits {
    /// Until the connection stands.
    pub connect: Option<Duration>,
    /// Until the first byte.
    pub first_byte: Option<Duration>,
    /// Until the first content.
    pub first_content: Option<Duration>,
    /// Until the end of an answer that comes whole; `None`: the two before.
    pub whole: Option<Duration>,
    /// Between two pieces of content.
    pub idle: Option<Duration>,
    /// When the attempt must have delivered something, or be over: its own limit or its share of the run's.
    pub end: Option<End>,
    /// When the whole run must be over.
    pub deadline: Option<Timestamp>,
}

/// The end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct End {
    /// When.
    pub at: Timestamp,
    /// The caller's deadline set it, so nobody is to blame for it (requirement A-16).
    pub by_caller: bool,
}

/// Remember how an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordStep {
    /// The profile.
    pub profile: ProfileId,
    /// The model.
    pub model: ModelRef,
    /// How it ended.
    pub outcome: Outcome,
    /// The candidate is the run's primary, which is never skipped later (requirement A-20).
    pub primary: bool,
}

impl RecordStep {
    /// The outcome of an attempt at a fallback.
    pub fn new(profile: ProfileId, model: ModelRef, outcome: Outcome) -> Self {
        Self { profile, model, outcome, primary: false }
    }
}

/// What is to be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum RepairKind {
    /// The provider refused the request's form.
    Format,
    /// The request names something that the provider has lost: send it without.
    LostSession,
}

/// The attempt answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettleStep {
    /// Who answered.
    pub model: ModelRef,
    /// With which profile.
    pub profile: ProfileId,
    /// The run's primary.
    pub primary: ModelRef,
    /// Whether the model is a fallback of this run.
    pub fallback: bool,
    /// Why the run's primary did not answer.
    pub reason: Option<FailoverReason>,
}

/// Wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitStep {
    /// No longer than until then.
    pub until: Timestamp,
    /// Wake earlier when anything about a profile's health or leases changes.
    pub wake_on_health: bool,
}

/// Whether a profile may be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a new standing must break every match on it")]
pub enum Standing {
    /// It may.
    Ready,
    /// It may, and nothing is known of it.
    Cold,
    /// It may, with a lease: its window has ended, and nobody has proved it well.
    Recovering {
        /// Why it was out.
        reason: FailoverReason,
    },
    /// It is out.
    Out {
        /// Why.
        reason: FailoverReason,
        /// When everything that keeps it from this model has ended.
        until: Timestamp,
    },
    /// A person paused it.
    Paused,
}

/// One profile in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "drivers build it")]
pub struct Slot {
    /// The profile.
    pub profile: ProfileId,
    /// Whether it may be used now.
    pub standing: Standing,
    /// It refused this session not long ago; fallbacks are not tried with it (requirement A-20).
    pub skipped: bool,
}

impl Slot {
    /// A slot with nothing against it but its standing.
    pub fn new(profile: ProfileId, standing: Standing) -> Self {
        Self { profile, standing, skipped: false }
    }
}

/// Who could serve a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "drivers build it")]
pub struct Slots {
    /// In the order in which to try them.
    pub slots: Vec<Slot>,
    /// The only slot is a person's choice: never rotate (requirement A-8).
    pub strict: bool,
    /// A person chose a profile that is out: try it once all the same (requirement A-23).
    pub force_probe: bool,
    /// Why all of them are out, where they are (requirement A-22).
    pub inferred: Option<FailoverReason>,
    /// Where there are no slots: the profiles that cannot be used at all, and why; of a strict choice only that one.
    pub left_out: Vec<LeftOut>,
    /// The store has not said yet what it knows of one of them: a person's pause may be missed (requirement A-23).
    pub unknown: bool,
}

/// May the profile be tried?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum LeaseAnswer {
    /// It may; whoever asked holds the lease until its attempt is recorded or dropped.
    Granted,
    /// Somebody else holds it, or it is too early.
    Held {
        /// When asking again makes sense at the latest.
        until: Timestamp,
    },
}

/// Does the claim stand?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum ClaimAnswer {
    /// It was written.
    Held,
    /// Nothing was written, and nothing need be taken back: a person's choice stands, or the store is too slow.
    TurnLocal,
}

/// What recording changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum RecordAnswer {
    /// Something: this attempt is the first to tell.
    Changed,
    /// Nothing: others have told it already.
    Known,
}

/// What a plan is told.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: every step has its event")]
pub enum Event {
    /// Who could serve the model.
    Profiles(Slots),
    /// Whether the profile may be tried.
    Leased(LeaseAnswer),
    /// Whether the claim stands.
    Claimed(ClaimAnswer),
    /// How the attempt ended.
    Ended(AttemptEnd),
    /// The outcome is remembered.
    Recorded(RecordAnswer),
    /// The claim is taken back.
    Released,
    /// Whether the request was repaired.
    Repaired(bool),
    /// The session knows who answered.
    Settled,
    /// The wait is over.
    Woke,
}

impl Event {
    /// A stable name, for logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Profiles(_) => "profiles",
            Self::Leased(_) => "leased",
            Self::Claimed(_) => "claimed",
            Self::Ended(_) => "ended",
            Self::Recorded(_) => "recorded",
            Self::Released => "released",
            Self::Repaired(_) => "repaired",
            Self::Settled => "settled",
            Self::Woke => "woke",
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum AttemptEnd {
    /// It answered.
    Answered,
    /// It failed.
    Failed(Failed),
    /// [`AttemptLimits::end`] came first.
    TimedOut {
        /// Output had been delivered, or a side effect had happened.
        committed: bool,
    },
    /// The user wants another model now (requirement S-10).
    SwitchTo {
        /// Which.
        to: ModelSelector,
        /// Output had been delivered, or a side effect had happened.
        committed: bool,
    },
}

/// A failed attempt, as far as the plan is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failed {
    /// Why.
    pub reason: FailoverReason,
    /// What is to blame.
    pub scope: Scope,
    /// When the provider wants to be asked again.
    pub retry_at: Option<Timestamp>,
    /// `retry_at` is the exact reset of a usage window, told by this field or header.
    pub reset_source: Option<Arc<str>>,
    /// Repeating it at once is harmless and may help: the server crashed, or no byte of a response came.
    pub repeatable: bool,
    /// Output was delivered, or a side effect happened.
    pub committed: bool,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's own code, where there was one.
    pub code: Option<String>,
    /// The text, redacted and cut.
    pub summary: String,
    /// Id of the rule that decided, where a classifier did.
    pub rule: Option<String>,
}

impl Failed {
    /// A failure of which only the reason is known.
    pub fn new(reason: FailoverReason) -> Self {
        Self {
            reason,
            scope: reason.default_scope(),
            retry_at: None,
            reset_source: None,
            repeatable: reason == FailoverReason::ServerError,
            committed: false,
            status: None,
            code: None,
            summary: String::new(),
            rule: None,
        }
    }

    /// How it is handled.
    pub fn lane(&self) -> Lane {
        self.reason.lane()
    }
}

/// How a run ended. The default is a run that found nothing to try.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Done {
    /// How.
    pub ending: Ending,
    /// Everything that was tried or skipped, in order.
    pub trail: Vec<Visit>,
    /// When something becomes usable again, as far as a cooldown is why it is not.
    pub soonest: Option<Timestamp>,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a driver handles every ending")]
pub enum Ending {
    /// The last attempt answered.
    Answered,
    /// The last error is the result: it was the only one, or nobody recognized it.
    Itself,
    /// Every candidate failed or was skipped.
    #[default]
    Exhausted,
    /// The last error concerns the request; the caller must change it.
    Returned,
    /// The last error is not a provider's failure.
    Raised,
    /// The last attempt failed after it had delivered output.
    Committed,
    /// A bound of the run ended the walk.
    Stopped(StopReason),
    /// The user wants a model that is not in the chain.
    SwitchTo(ModelSelector),
}

/// Which bound ended the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The run's deadline.
    Deadline,
    /// The run's attempts.
    Attempts,
}

impl StopReason {
    /// A stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Attempts => "attempts",
        }
    }
}
