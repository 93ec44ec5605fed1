//! A clock that moves only when it is told to.

use failover_types::{BoxFuture, Clock, Timestamp};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// A clock that moves only when it is told to. Sleepers wake when the time they wait for is reached.
///
/// Needs no runtime. To drive code that sleeps: wait until it does with [`ManualClock::until_waiting`], then
/// [`advance`](ManualClock::advance) past it.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    now: Timestamp,
    next_id: u64,
    /// By time, so that sleepers wake in order.
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    watchers: Vec<Waker>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(Mutex::new(State { now, ..State::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in another test thread leaves nothing half done here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves on by `step` and wakes whoever waited for less.
    pub fn advance(&self, step: Duration) {
        let target = self.state().now.after(step);
        self.set(target);
    }

    /// Jumps to `now`, back too: wall clocks do that.
    pub fn set(&self, now: Timestamp) {
        let due = {
            let mut state = self.state();
            state.now = now;
            let later = state.sleepers.split_off(&(now, u64::MAX));
            std::mem::replace(&mut state.sleepers, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    /// The soonest time that somebody waits for.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.state().sleepers.keys().next().map(|(at, _)| *at)
    }

    /// Jumps to the soonest time that somebody waits for; `false` if nobody does.
    pub fn advance_to_next(&self) -> bool {
        let next = self.next_wakeup();
        if let Some(at) = next {
            self.set(at);
        }
        next.is_some()
    }

    /// How many are waiting.
    pub fn waiting(&self) -> usize {
        self.state().sleepers.len()
    }

    /// Completes once somebody waits for exactly `at`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn until_waiting_for(&self, at: Timestamp) {
        self.until(|state| state.sleepers.keys().any(|(sleeper, _)| *sleeper == at)).await;
    }

    /// Completes once at least `count` are waiting.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn until_waiting(&self, count: usize) {
        self.until(|state| state.sleepers.len() >= count).await;
    }

    async fn until(&self, met: impl Fn(&State) -> bool + Send + Sync) {
        poll_fn(|cx| {
            let mut state = self.state();
            if met(&state) {
                return Poll::Ready(());
            }
            state.watchers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Takes the sleeper off the list when the sleep is over or given up.
struct Asleep<'a> {
    clock: &'a ManualClock,
    key: (Timestamp, u64),
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.clock.state().sleepers.remove(&self.key);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.state().now
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let mut asleep: Option<Asleep<'_>> = None;
        Box::pin(poll_fn(move |cx| {
            let watchers = {
                let mut state = self.state();
                if state.now >= at {
                    return Poll::Ready(());
                }
                let id = state.next_id;
                let key = asleep.as_ref().map_or((at, id), |asleep| asleep.key);
                state.sleepers.insert(key, cx.waker().clone());
                if asleep.is_none() {
                    state.next_id += 1;
                    asleep = Some(Asleep { clock: self, key });
                }
                std::mem::take(&mut state.watchers)
            };
            watchers.into_iter().for_each(Waker::wake);
            Poll::Pending
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::pin::pin;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn sleepers_wake_when_their_time_comes_and_not_before() {
        let clock = ManualClock::new(at(100));
        let mut first = clock.sleep_until(at(110));
        let mut second = clock.sleep_until(at(120));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        assert_eq!((clock.waiting(), clock.next_wakeup()), (2, Some(at(110))));
        clock.advance(Duration::from_millis(9));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(clock.advance_to_next());
        assert!(first.as_mut().now_or_never().is_some() && second.as_mut().now_or_never().is_none());
        drop(second);
        assert!(!clock.advance_to_next(), "a dropped sleep is no sleeper");
        assert!(clock.sleep_until(at(1)).now_or_never().is_some(), "the past is reached at once");
    }

    #[test]
    fn one_can_wait_for_somebody_to_sleep() {
        let clock = ManualClock::default();
        let mut watch = pin!(clock.until_waiting(1));
        assert!(watch.as_mut().now_or_never().is_none());
        let mut sleep = clock.sleep_until(at(5));
        assert!(sleep.as_mut().now_or_never().is_none());
        assert!(watch.now_or_never().is_some());
        assert!(clock.until_waiting_for(at(6)).now_or_never().is_none());
        assert!(clock.until_waiting_for(at(5)).now_or_never().is_some());
    }
}
