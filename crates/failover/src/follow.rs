//! Following a person who chooses another model for a session while a turn of it is under way (requirement S-10).

use failover_runner::{Attempt, StoredSession};
use failover_types::{Clock, ModelRef, ModelSelector, ProfileId, Timestamp};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How old a look at the session may be: a choice that is made elsewhere is known within a second (requirement K-3).
const EVERY: Duration = Duration::from_millis(500);

/// Looks at the session while the turn waits for its first content. What comes later counts from the next turn on.
pub(crate) struct Follow {
    session: Arc<StoredSession>,
    clock: Arc<dyn Clock>,
    chosen: watch::Sender<Option<ModelSelector>>,
    /// Who is asked at this moment.
    asked: Mutex<Option<(ModelRef, ProfileId)>>,
}

impl Follow {
    pub(crate) fn new(session: Arc<StoredSession>, clock: Arc<dyn Clock>) -> Self {
        Self { session, clock, chosen: watch::Sender::new(None), asked: Mutex::new(None) }
    }

    /// Where choices come out.
    pub(crate) fn switches(&self) -> watch::Receiver<Option<ModelSelector>> {
        self.chosen.subscribe()
    }

    /// Takes note of who is asked.
    pub(crate) fn asks(&self, attempt: &Attempt) {
        let asked = (attempt.model.clone(), attempt.profile.clone());
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
    }

    /// Whether the choice is what is asked already: then there is nothing to switch.
    fn is_asked(&self, chosen: &ModelSelector) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.as_ref().is_some_and(|(model, profile)| {
            chosen.model == *model && chosen.profile.as_ref().is_none_or(|chosen| chosen == profile)
        })
    }

    /// Looks again and again. Never ends; to be dropped with the turn.
    pub(crate) async fn look(&self) -> Infallible {
        let mut told: Option<Timestamp> = None;
        loop {
            self.clock.sleep_until(self.clock.now().after(EVERY)).await;
            // A store that fails is told of elsewhere, and costs the switch only.
            let Ok(Some((chosen, at))) = self.session.chosen_since().await else { continue };
            if told.is_some_and(|told| told >= at) {
                continue;
            }
            told = Some(at);
            if !self.is_asked(&chosen) {
                self.chosen.send_replace(Some(chosen));
            }
        }
    }
}
