//! What runs do to an entry: claim, roll back, settle, recover.

use crate::SessionEntry;
use crate::book::{Marker, PinWrite};
use crate::group::{ModelGroup, PinGroup, PinOwner, StoredSelection};
use crate::state::State;
use failover_types::{FailoverReason, ModelRef, ProfileId, RunId, Timestamp};
use std::time::Duration;

/// What a run knows of a session when it begins. Its writes count only while nothing newer was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Ticket {
    /// Whose ticket it is.
    pub run: RunId,
    pub(crate) epoch: u64,
    pub(crate) episode: Option<u64>,
}

/// Takes a ticket. A run takes one before it reads the selection from the same entry.
pub fn ticket(entry: &SessionEntry, run: RunId) -> Ticket {
    let book = entry.book();
    Ticket { run, epoch: book.epoch, episode: book.episode.as_ref().map(|episode| episode.serial) }
}

/// The override of one attempt: the model, the credential and where the run came from travel as one value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// The run and what it knew of the session.
    pub ticket: Ticket,
    /// The fallback that is about to be attempted.
    pub model: ModelRef,
    /// The profile to pin with it; `None` removes an automatic pin, which belongs to another attempt.
    pub profile: Option<ProfileId>,
    /// The session's compaction count, kept with the pin.
    pub compaction_count: u64,
    /// What had been selected before the first fallback: what the session goes back to one day.
    pub origin: ModelRef,
    /// Why the run left the model before.
    pub reason: FailoverReason,
    /// When the attempt begins.
    pub at: Timestamp,
    /// When the run left what had been selected: at its first fallback. What becomes of that model later is news.
    pub left: Timestamp,
    /// After that the run counts as dead and [`recover`] may roll the claim back.
    pub until: Timestamp,
}

impl Claim {
    /// A claim without a profile. `lease` is how long the attempt can last at most.
    pub fn new(
        ticket: Ticket,
        model: ModelRef,
        origin: ModelRef,
        reason: FailoverReason,
        at: Timestamp,
        lease: Duration,
    ) -> Self {
        let until = at.after(lease);
        Self { ticket, model, profile: None, compaction_count: 0, origin, reason, at, left: at, until }
    }

    /// Says that the run had left what was selected before this attempt began: another fallback came first.
    #[must_use]
    pub fn with_left(mut self, left: Timestamp) -> Self {
        self.left = left.min(self.at);
        self
    }

    /// Pins a profile along with the model.
    #[must_use]
    pub fn with_profile(mut self, profile: ProfileId, compaction_count: u64) -> Self {
        self.profile = Some(profile);
        self.compaction_count = compaction_count;
        self
    }

    fn is(&self, marker: &Marker) -> bool {
        marker.run == self.ticket.run && marker.model == self.model
    }

    /// Whether an entry still has the trace of the claim, though it may be void: a writer that knows nothing of claims
    /// chose something else. The trace then goes, and the pin that the claim wrote with it.
    fn is_left_behind(&self, entry: &SessionEntry) -> bool {
        entry.claims().iter().any(|marker| self.is(marker))
    }

    fn marker(&self, ours: bool) -> Marker {
        let pin = PinWrite { profile: self.profile.clone(), compaction_count: self.compaction_count };
        Marker {
            run: self.ticket.run.clone(),
            model: self.model.clone(),
            origin: self.origin.clone(),
            reason: self.reason,
            at: self.at,
            until: self.until,
            pin: ours.then_some(pin),
        }
    }
}

/// Writes the override of an attempt that is about to start.
///
/// `None` means that nothing is to be written and the attempt goes on without a claim: a person's choice stands, or
/// something was chosen or reset since the run began, or exactly this override is settled already. An earlier claim
/// of the same run is replaced; what lies below it stays as it was.
pub fn apply_fallback(entry: &SessionEntry, claim: &Claim) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    let selection = state.settled.model.selection();
    if selection.is_a_choice() || state.book.epoch != claim.ticket.epoch || claim.model == claim.origin {
        return None;
    }
    state.book.claims.retain(|other| other.run != claim.ticket.run);
    let settled = matches!(&selection, StoredSelection::Auto { model, .. } if *model == claim.model);
    if !(settled && state.book.claims.is_empty()) {
        let marker = claim.marker(state.settled.pin.is_ours());
        state.push(marker)?;
    }
    state.write()
}

/// Says that the run of a claim is still at work: it counts as dead only after `until` now.
///
/// `None` where the claim does not stand any more, or has as long already.
pub fn renew(entry: &SessionEntry, claim: &Claim, until: Timestamp) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    let marker = state.book.claims.iter_mut().find(|marker| claim.is(marker) && marker.until < until)?;
    marker.until = until;
    state.write()
}

/// How a rollback ended.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the entry inside is still to be written"]
#[expect(clippy::exhaustive_enums, reason = "control flow: whether there is something to write")]
pub enum Rollback {
    /// The override is gone and the fields show what lay below it. To be written.
    Restored(SessionEntry),
    /// Something newer stands and is left alone; only the trace of the claim is gone. To be written.
    Kept(SessionEntry),
    /// The claim was not there: rolled back before, recovered, or void.
    Nothing,
}

impl Rollback {
    /// The entry to write, if any.
    pub fn into_entry(self) -> Option<SessionEntry> {
        match self {
            Self::Restored(entry) | Self::Kept(entry) => Some(entry),
            Self::Nothing => None,
        }
    }
}

/// Takes an override back after its attempt failed. Doing it twice is the same as doing it once.
pub fn roll_back(entry: &SessionEntry, claim: &Claim) -> Rollback {
    let mut state = State::of(entry);
    let before = state.book.claims.len();
    state.book.claims.retain(|marker| !claim.is(marker));
    if state.book.claims.len() == before {
        let cleared = claim.is_left_behind(entry).then(|| state.write()).flatten();
        return cleared.map_or(Rollback::Nothing, Rollback::Kept);
    }
    match state.write() {
        Some(next) if next.model_group() != entry.model_group() || next.pin_group() != entry.pin_group() => {
            Rollback::Restored(next)
        }
        Some(next) => Rollback::Kept(next),
        None => Rollback::Nothing,
    }
}

/// The attempt answered: its override is proven and stays for later turns. The session counts as on a fallback since the
/// run left what was selected, however long the answer took.
///
/// `None` where the claim does not stand any more: a person chose, the session was reset, or the claim was recovered.
/// The answer is good all the same, it only moves nothing. (Where a foreign writer chose, the trace of the claim is
/// cleared.)
pub fn settle(entry: &SessionEntry, claim: &Claim) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    let Some(at) = state.book.claims.iter().position(|marker| claim.is(marker)) else {
        return claim.is_left_behind(entry).then(|| state.write()).flatten();
    };
    // Older claims lie below what is settled now: their fields were overwritten already.
    let marker = state.book.claims.drain(..=at).next_back()?;
    state.served_by(&marker.model, &marker.origin, marker.reason, claim.left, false);
    state.settled.model = marker.group();
    if let Some(pin) = &marker.pin {
        state.settled.pin = pin.group();
    }
    state.write()
}

/// The model that is selected without the override answered, `answered`: the override and its pin are cleared. Where no
/// override is stored and only the notices know of a fallback ([`note_turn`]), they say that it is over.
///
/// `None` where there is neither, or the run did not know of it: a run that began earlier proves nothing about it.
pub fn settle_origin(entry: &SessionEntry, ticket: &Ticket, answered: &ModelRef) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    let episode = state.book.episode.as_ref();
    if state.book.epoch != ticket.epoch || episode.map(|episode| episode.serial) != ticket.episode {
        return None;
    }
    let was = match (state.settled.model.selection(), episode) {
        (StoredSelection::Auto { model, .. }, _) => model,
        (_, Some(episode)) => episode.fallback.clone(),
        (_, None) => return None,
    };
    state.book.claims.retain(|marker| marker.run != ticket.run);
    if let StoredSelection::Auto { .. } = state.settled.model.selection() {
        state.settled.model = ModelGroup::default();
        if state.settled.pin.is_ours() {
            state.settled.pin = PinGroup::default();
        }
    }
    state.back_on(answered, &was);
    state.write()
}

/// A turn under the policy `turn_local` was answered: no selection field is written, only the notices are kept. (An
/// override that an earlier policy left behind is cleared once the selected model answers.) `left` is when the run left
/// what is selected.
pub fn note_turn(
    entry: &SessionEntry,
    ticket: &Ticket,
    selected: &ModelRef,
    served: &ModelRef,
    reason: FailoverReason,
    left: Timestamp,
) -> Option<SessionEntry> {
    if served == selected {
        return settle_origin(entry, ticket, served);
    }
    let mut state = State::of(entry);
    if state.book.epoch != ticket.epoch || state.settled.model.selection().is_a_choice() {
        return None;
    }
    state.served_by(served, selected, reason, left, true);
    state.write()
}

/// Pins the profile that rotation chose; a person's pin stays. `None` where there is nothing to write.
pub fn pin_auto(
    entry: &SessionEntry,
    ticket: &Ticket,
    profile: &ProfileId,
    compaction_count: u64,
) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    if state.book.epoch != ticket.epoch || !state.settled.pin.is_ours() {
        return None;
    }
    state.settled.pin = PinGroup::auto(profile, compaction_count);
    state.write()
}

/// Rolls the claims of dead runs back; `None` where there is none.
///
/// A process that owns its store alone calls it at start with `|_| true`; every run calls it first with
/// [`expired`], or with what its own process knows of its runs.
pub fn recover(entry: &SessionEntry, dead: impl Fn(&Marker) -> bool) -> Option<SessionEntry> {
    if entry.book().claims.is_empty() {
        return None;
    }
    let mut state = State::of(entry);
    state.book.claims.retain(|marker| !dead(marker));
    state.write()
}

/// Tells the claims apart whose run must have ended by now.
pub fn expired(now: Timestamp) -> impl Fn(&Marker) -> bool {
    move |marker| marker.until <= now
}

impl SessionEntry {
    /// What the model fields say. It may be a claim; see [`SessionEntry::claims`].
    pub fn selection(&self) -> StoredSelection {
        self.model_group().selection()
    }

    /// What stands below the claims: what a failed attempt goes back to.
    pub fn settled_selection(&self) -> StoredSelection {
        match self.claims() {
            [] => self.selection(),
            _ => State::of(self).settled.model.selection(),
        }
    }

    /// The pinned profile.
    pub fn pin(&self) -> Option<crate::StoredPin> {
        self.pin_group().pin()
    }

    /// Overrides of attempts that have not answered yet, oldest first.
    pub fn claims(&self) -> &[Marker] {
        &self.book().claims
    }

    /// Notices that nobody has taken yet, oldest first.
    pub fn notices(&self) -> &[crate::Notice] {
        &self.book().notices
    }

    /// Whether the pin is a person's.
    pub fn is_pinned_by_a_person(&self) -> bool {
        self.pin().is_some_and(|pin| pin.owner == PinOwner::User)
    }
}
