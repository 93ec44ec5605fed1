//! What one run does to its session's entry. Pure: driver and simulation carry the writes out.

use crate::health::Preference;
use crate::plan::{ClaimStep, Persistence, RunSpec, SettleStep};
use failover_auth::{Pin, UserPinMode};
use failover_chain::{Selection, SelectionSource};
use failover_session::{
    Claim, PendingSwitch, PinOwner, ProbePolicy, SessionEntry, StoredSelection, Ticket, acknowledge_switch,
    apply_fallback, expired, note_turn, pending_switch, pin_auto, recover, renew, roll_back, settle,
    settle_origin, start_probe, ticket,
};
use failover_types::{FailoverReason, ModelRef, ProfileId, RunId, Timestamp};
use std::time::Duration;

/// A run's hold on its session, taken from the same entry as the selection that the run's chain was made from.
#[derive(Clone, Debug)]
pub struct SessionRun {
    ticket: Ticket,
    /// What the session goes back to, where it sits on an override.
    origin: Option<ModelRef>,
    preference: Preference,
    persistence: Persistence,
    /// The claim that is being written: it may stand already.
    pending: Option<Claim>,
    claim: Option<Claim>,
    /// When the run went on to its first fallback.
    left: Option<Timestamp>,
}

/// How long a claim counts as alive that nobody renews: what a process that was killed leaves behind is gone then.
const CLAIM_LEASE: Duration = Duration::from_mins(1);
/// How often a run says that it is still at its attempt. Most have ended before the first time.
pub const RENEW_EVERY: Duration = Duration::from_secs(20);

/// How the session wants its profiles. `mode` is what a person's pin means.
pub fn preference(entry: &SessionEntry, mode: UserPinMode) -> Preference {
    let pin = entry.pin().map(|stored| {
        let mut pin = match stored.owner {
            PinOwner::User => Pin::user(stored.profile),
            PinOwner::Auto => Pin::auto(stored.profile, 0),
        };
        pin.compaction_count = stored.compaction_count.unwrap_or(0);
        pin
    });
    // An entry without the host's count says nothing of compactions: what the pin counted still stands.
    let counted = pin.as_ref().map_or(0, |pin| pin.compaction_count);
    let compactions = entry.compactions().max(counted);
    Preference { pin, compactions, mode }
}

impl SessionRun {
    /// Rolls back what dead runs left behind (requirement S-6); `None` where there is nothing to write.
    pub fn recovered(entry: &SessionEntry, now: Timestamp) -> Option<SessionEntry> {
        recover(entry, expired(now))
    }

    /// A hold on `entry` for `run`.
    pub fn new(entry: &SessionEntry, run: RunId, mode: UserPinMode) -> Self {
        let origin = match entry.settled_selection() {
            StoredSelection::Auto { origin, .. } => origin,
            StoredSelection::Nothing
            | StoredSelection::User { .. }
            | StoredSelection::Legacy { .. }
            | StoredSelection::Unreadable { .. } => None,
        };
        Self {
            ticket: ticket(entry, run),
            origin,
            preference: preference(entry, mode),
            persistence: Persistence::Sticky,
            pending: None,
            claim: None,
            left: None,
        }
    }

    /// The same run's hold on a newer entry; for a run that has not begun yet.
    #[must_use]
    pub fn on(&self, entry: &SessionEntry) -> Self {
        let fresh = Self::new(entry, self.ticket.run.clone(), self.preference.mode);
        Self { persistence: self.persistence, ..fresh }
    }

    /// Takes over what the run's numbers say of persistence.
    #[must_use]
    pub fn for_spec(mut self, spec: &RunSpec) -> Self {
        self.persistence = spec.policy.persistence;
        self
    }

    /// How the session wants its profiles.
    pub fn preference(&self) -> &Preference {
        &self.preference
    }

    /// Whether a claim stands.
    pub fn has_claimed(&self) -> bool {
        self.claim.is_some()
    }

    fn selected(&self, primary: &ModelRef) -> ModelRef {
        self.origin.clone().unwrap_or_else(|| primary.clone())
    }

    /// The claim of a fallback that is about to be tried (requirement S-2).
    pub fn claiming(&mut self, step: &ClaimStep, now: Timestamp) -> Claim {
        let left = *self.left.get_or_insert(now);
        let reason = step.reason.unwrap_or(FailoverReason::Unclassified);
        let origin = self.selected(&step.primary);
        let claim = Claim::new(self.ticket.clone(), step.model.clone(), origin, reason, now, CLAIM_LEASE)
            .with_left(left)
            .with_profile(step.profile.clone(), self.preference.compactions);
        self.pending = Some(claim.clone());
        claim
    }

    /// Writes a claim; `None` where a newer choice stands (requirement S-3).
    pub fn claim(entry: &SessionEntry, claim: &Claim) -> Option<SessionEntry> {
        apply_fallback(entry, claim)
    }

    /// Whether the claim that was being written stands.
    pub fn claimed(&mut self, claim: Claim, stands: bool) {
        self.pending.take_if(|pending| *pending == claim);
        if stands {
            self.claim = Some(claim);
        }
    }

    /// The claim that stands, or may stand, to be renewed or rolled back.
    pub fn standing(&self) -> Option<Claim> {
        self.claim.clone().or_else(|| self.pending.clone())
    }

    /// The claim was rolled back.
    pub fn released(&mut self) {
        (self.claim, self.pending) = (None, None);
    }

    /// Says of a claim that its run is still at work; `None` where it stands no more.
    pub fn renew(entry: &SessionEntry, claim: &Claim, now: Timestamp) -> Option<SessionEntry> {
        renew(entry, claim, now.after(CLAIM_LEASE))
    }

    /// Takes a claim back (requirement S-4).
    pub fn release(entry: &SessionEntry, claim: &Claim) -> Option<SessionEntry> {
        roll_back(entry, claim).into_entry()
    }

    /// Somebody answered (requirements S-7, S-11, S-12, A-7); `None` where there is nothing to write.
    pub fn settle(&self, entry: &SessionEntry, step: &SettleStep, now: Timestamp) -> Option<SessionEntry> {
        let selected = self.selected(&step.primary);
        let reason = step.reason.unwrap_or(FailoverReason::Unclassified);
        let (ticket, left) = (&self.ticket, self.left.unwrap_or(now));
        let moved = match (self.persistence, &self.claim) {
            (Persistence::Sticky, Some(claim)) if claim.model == step.model => settle(entry, claim),
            (Persistence::Sticky, _) if step.model == selected => settle_origin(entry, ticket, &step.model),
            (Persistence::TurnLocal, _) => note_turn(entry, ticket, &selected, &step.model, reason, left),
            // Served without a claim: a store too slow, or too many runs at once. The turn is all there is to note.
            (Persistence::Sticky, _) if step.fallback => {
                note_turn(entry, ticket, &selected, &step.model, reason, left)
            }
            (Persistence::Sticky, _) => None,
        };
        let pinned = |entry: &SessionEntry, profile: &ProfileId| {
            // A pin from before a compaction has lapsed: the profile that answers is pinned anew.
            let holds = |count: Option<u64>| count.unwrap_or_default() >= self.preference.compactions;
            let kept = entry.pin().is_some_and(|pin| {
                pin.owner == PinOwner::User || (pin.profile == *profile && holds(pin.compaction_count))
            });
            if kept || self.persistence == Persistence::TurnLocal || step.model != selected {
                return None;
            }
            pin_auto(entry, ticket, profile, self.preference.compactions)
        };
        let pin = pinned(moved.as_ref().unwrap_or(entry), &step.profile);
        let next = pin.or(moved);
        acknowledge_switch(next.as_ref().unwrap_or(entry), ticket, &step.model).or(next)
    }

    /// What a person chose in `entry` since the run began (requirement S-9).
    pub fn pending<'e>(&self, entry: &'e SessionEntry) -> Option<&'e PendingSwitch> {
        pending_switch(entry, &self.ticket)
    }
}

/// Which model a run on this session begins with, and who chose it. Pure: where the second part is `Some`, it is to be
/// written first, and whoever loses that write asks again.
///
/// `None` where the session says nothing and nothing is configured: a choice in the session needs no configured model.
///
/// A person's choice stands. An override is kept until its origin is due again (requirement S-7): then this run, and
/// only the one whose write wins, tries the origin first. `origin_free_at` says when the origin's own cooldown ends.
pub fn select(
    entry: &SessionEntry,
    configured: Option<&Selection>,
    origin_free_at: impl Fn(&ModelRef) -> Option<Timestamp>,
    policy: &ProbePolicy,
    now: Timestamp,
) -> (Option<Selection>, Option<SessionEntry>) {
    match entry.settled_selection() {
        StoredSelection::Nothing | StoredSelection::Unreadable { .. } => (configured.cloned(), None),
        StoredSelection::User { model } => (Some(chosen(entry, model, SelectionSource::UserOverride)), None),
        StoredSelection::Legacy { model } => {
            (Some(chosen(entry, model, SelectionSource::LegacyOverride)), None)
        }
        StoredSelection::Auto { model, origin } => {
            let origin = origin.or_else(|| configured.map(|configured| configured.model().clone()));
            let origin = origin.unwrap_or_else(|| model.clone());
            let source = SelectionSource::AutoOverride { origin: origin.clone() };
            let configured = configured.filter(|configured| *configured.model() == origin);
            match start_probe(entry, origin_free_at(&origin), policy, now) {
                Some(next) => {
                    let probed = configured.cloned().unwrap_or_else(|| Selection::new(origin, None, source));
                    (Some(probed), Some(next))
                }
                None => (Some(Selection::new(model, None, source)), None),
            }
        }
    }
}

fn chosen(entry: &SessionEntry, model: ModelRef, source: SelectionSource) -> Selection {
    let pin = entry.pin().filter(|pin| pin.owner == PinOwner::User);
    Selection::new(model, pin.map(|pin| pin.profile), source)
}
