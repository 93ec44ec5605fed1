//! One piece of work per profile in this process, however many wait for it.

use failover_types::ProfileId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Work under way.
pub(crate) struct Flights<T>(Arc<Mutex<HashMap<ProfileId, watch::Receiver<Option<T>>>>>);

impl<T> Clone for Flights<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// Lands the flight: tells the result, or that there is none if the work was torn down, and makes room for the next.
pub(crate) struct Landing<T> {
    flights: Flights<T>,
    profile: ProfileId,
    result: watch::Sender<Option<T>>,
}

impl<T> Landing<T> {
    pub(crate) fn land(self, result: T) {
        self.flights.lock().remove(&self.profile);
        self.result.send_replace(Some(result));
    }
}

impl<T> Drop for Landing<T> {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        if flights.get(&self.profile).is_some_and(|mine| mine.same_channel(&self.result.subscribe())) {
            flights.remove(&self.profile);
        }
    }
}

impl<T: Clone> Flights<T> {
    /// Joins the flight of `profile`, or starts one: then `Some` is for the caller to run.
    pub(crate) fn join(&self, profile: &ProfileId) -> (watch::Receiver<Option<T>>, Option<Landing<T>>) {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(profile) {
            return (flight.clone(), None);
        }
        let (result, flight) = watch::channel(None);
        flights.insert(profile.clone(), flight.clone());
        let landing = Landing { flights: self.clone(), profile: profile.clone(), result };
        (flight, Some(landing))
    }
}

impl<T> Flights<T> {
    /// A panic elsewhere cannot leave the map half changed, so a poisoned lock is still good.
    fn lock(&self) -> MutexGuard<'_, HashMap<ProfileId, watch::Receiver<Option<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
