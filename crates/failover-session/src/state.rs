//! An entry taken apart into its layers, changed, and put together again.

use crate::SessionEntry;
use crate::book::{Book, Episode, Marker, Settled};
use crate::group::{ModelGroup, PinGroup, StoredSelection};
use crate::notice::{Notice, NoticeKind};
use failover_types::{FailoverReason, ModelRef, Timestamp};

/// Most claims kept at a time; further attempts go on without one. As many runs may share a session.
const MAX_CLAIMS: usize = 64;

/// Most notices kept for somebody to take; the oldest go first.
const MAX_NOTICES: usize = 16;

/// The layers of an entry.
pub(crate) struct State<'a> {
    entry: &'a SessionEntry,
    pub(crate) settled: Settled,
    pub(crate) book: Book,
}

impl<'a> State<'a> {
    /// Takes an entry apart. A group that does not show what the claims wrote was written by somebody else: it is
    /// settled as it stands. With the model selection all claims are void, a pin of theirs that still stands goes too, and
    /// an episode ends of which the fields know nothing.
    pub(crate) fn of(entry: &'a SessionEntry) -> Self {
        let mut book = entry.book().clone();
        let shown = Settled { model: entry.model_group().clone(), pin: entry.pin_group().clone() };
        let mut settled = book.settled.take().unwrap_or_default();
        if book.claims.is_empty() {
            settled = shown;
        } else {
            if shown.pin != show_pin(&settled, &book.claims) {
                settled.pin = shown.pin;
                book.claims.iter_mut().for_each(|claim| claim.pin = None);
            }
            if shown.model != show_model(&settled, &book.claims) {
                settled.model = shown.model;
                book.claims.clear();
            }
        }
        let holds = |episode: &Episode| match settled.model.selection() {
            StoredSelection::Auto { .. } => true,
            StoredSelection::Nothing => episode.turn_local,
            StoredSelection::User { .. }
            | StoredSelection::Legacy { .. }
            | StoredSelection::Unreadable { .. } => false,
        };
        book.episode = book.episode.filter(holds);
        Self { entry, settled, book }
    }

    /// Puts the layers together; `None` where the entry shows them already.
    pub(crate) fn write(mut self) -> Option<SessionEntry> {
        let model = show_model(&self.settled, &self.book.claims);
        let pin = show_pin(&self.settled, &self.book.claims);
        self.book.settled = (!self.book.claims.is_empty()).then_some(self.settled);
        self.entry.replaced(&model, &pin, &self.book)
    }

    /// Adds a claim on top; `None` where there are too many.
    pub(crate) fn push(&mut self, claim: Marker) -> Option<()> {
        (self.book.claims.len() < MAX_CLAIMS).then(|| self.book.claims.push(claim))
    }

    /// Starts or goes on with an episode. A new one is worth a notice, unless the session was on a fallback already,
    /// which an older version wrote.
    pub(crate) fn served_by(
        &mut self,
        fallback: &ModelRef,
        selected: &ModelRef,
        reason: FailoverReason,
        since: Timestamp,
        turn_local: bool,
    ) {
        if let Some(episode) = &mut self.book.episode {
            episode.fallback = fallback.clone();
            return;
        }
        let serial = self.next_serial();
        let (fallback, selected) = (fallback.clone(), selected.clone());
        if !matches!(self.settled.model.selection(), StoredSelection::Auto { .. }) {
            let kind = NoticeKind::Fallback { reason };
            self.notify(Notice { serial, primary: selected.clone(), fallback: fallback.clone(), kind });
        }
        self.book.episode = Some(Episode { serial, fallback, selected, reason, since, turn_local });
    }

    /// Ends an episode, with a notice.
    pub(crate) fn back_on(&mut self, primary: &ModelRef, was: &ModelRef) {
        self.book.episode = None;
        self.book.probe = None;
        let serial = self.next_serial();
        let kind = NoticeKind::Cleared;
        self.notify(Notice { serial, primary: primary.clone(), fallback: was.clone(), kind });
    }

    /// A person or a reset decided: what was under way is over, and what nobody has been told yet is moot.
    pub(crate) fn new_epoch(&mut self) {
        self.book.epoch += 1;
        self.book.claims.clear();
        self.book.episode = None;
        self.book.probe = None;
        self.book.notices.clear();
    }

    fn next_serial(&mut self) -> u64 {
        self.book.serial += 1;
        self.book.serial
    }

    fn notify(&mut self, notice: Notice) {
        self.book.notices.push(notice);
        let surplus = self.book.notices.len().saturating_sub(MAX_NOTICES);
        self.book.notices.drain(..surplus);
    }
}

fn show_model(settled: &Settled, claims: &[Marker]) -> ModelGroup {
    claims.last().map_or_else(|| settled.model.clone(), Marker::group)
}

fn show_pin(settled: &Settled, claims: &[Marker]) -> PinGroup {
    let top = claims.iter().rev().find_map(|claim| claim.pin.as_ref());
    top.map_or_else(|| settled.pin.clone(), crate::book::PinWrite::group)
}
