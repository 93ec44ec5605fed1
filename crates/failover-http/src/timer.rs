//! A timer for who is polled far more often than it rings.

use failover_types::{BoxFuture, Clock, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Ready at a time. Between two rings a poll asks neither the clock nor the runtime: it looks at a flag.
pub struct Timer {
    at: Timestamp,
    sleep: BoxFuture<'static, ()>,
    bell: Option<Arc<Bell>>,
}

/// Wakes the task, and remembers that it did.
struct Bell {
    rung: AtomicBool,
    task: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl Timer {
    /// A timer that rings at `at`. It is set when it is first polled.
    pub fn new(clock: &Arc<dyn Clock>, at: Timestamp) -> Self {
        let clock = Arc::clone(clock);
        Self { at, sleep: Box::pin(async move { clock.sleep_until(at).await }), bell: None }
    }

    /// When it rings.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Ready once the time has come. Not to be polled after that.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let known = self.bell.as_ref().filter(|bell| bell.task.will_wake(cx.waker()));
        let bell = match known {
            Some(bell) if !bell.rung.swap(false, Ordering::AcqRel) => return Poll::Pending,
            Some(bell) => Arc::clone(bell),
            None => Arc::new(Bell { rung: AtomicBool::new(false), task: cx.waker().clone() }),
        };
        let waker = Waker::from(Arc::clone(&bell));
        self.bell = Some(bell);
        self.sleep.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timer").field("at", &self.at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    /// A clock whose sleep is woken by hand, counts how often it is asked, and ends when it is told.
    #[derive(Default)]
    struct Hand {
        asked: AtomicU32,
        over: AtomicBool,
        wakers: Mutex<Vec<Waker>>,
    }

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::ZERO
        }

        fn sleep_until(&self, _: Timestamp) -> BoxFuture<'_, ()> {
            Box::pin(std::future::poll_fn(|cx| {
                self.asked.fetch_add(1, Ordering::Relaxed);
                self.wakers.lock().unwrap().push(cx.waker().clone());
                if self.over.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
            }))
        }
    }

    struct Counts(AtomicU32);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_is_asked_when_it_rang_and_when_another_task_waits() {
        let hand = Arc::new(Hand::default());
        let clock: Arc<dyn Clock> = Arc::clone(&hand) as _;
        let mut timer = Timer::new(&clock, Timestamp::ZERO);
        let woken = Arc::new(Counts(AtomicU32::new(0)));
        let task = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&task);
        let ring = || std::mem::take(&mut *hand.wakers.lock().unwrap()).into_iter().for_each(Waker::wake);
        for _ in 0..5 {
            assert!(timer.poll(&mut cx).is_pending());
        }
        assert_eq!(hand.asked.load(Ordering::Relaxed), 1);
        ring();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "the task is woken");
        assert!(timer.poll(&mut cx).is_pending(), "it rang too early, and is set again");
        let other = noop_waker();
        assert!(timer.poll(&mut Context::from_waker(&other)).is_pending());
        assert_eq!(hand.asked.load(Ordering::Relaxed), 3);
        hand.over.store(true, Ordering::Relaxed);
        assert!(timer.poll(&mut Context::from_waker(&other)).is_pending(), "nobody has rung");
        ring();
        assert!(timer.poll(&mut Context::from_waker(&other)).is_ready());
    }
}
