//! Joining replicas of one record.

use crate::usage::{UsageStats, Window, WindowSource};
use failover_types::{FailoverReason, Timestamp};
use std::sync::Arc;

/// Joins two replicas of one record. Commutative, associative and idempotent: replicas that exchange records in any
/// order agree in the end.
///
/// Within an epoch windows only lengthen and counters only grow; a higher epoch wins.
#[must_use]
pub fn merge(a: &UsageStats, b: &UsageStats) -> UsageStats {
    let mut next = UsageStats {
        epoch: a.epoch.max(b.epoch),
        last_used: a.last_used.max(b.last_used),
        last_failure_at: a.last_failure_at.max(b.last_failure_at),
        ..UsageStats::default()
    };
    match a.epoch.cmp(&b.epoch) {
        std::cmp::Ordering::Greater => next.take_counters(a),
        std::cmp::Ordering::Less => next.take_counters(b),
        std::cmp::Ordering::Equal => {
            next.take_counters(a);
            next.error_count = next.error_count.max(b.error_count);
            for (reason, count) in &*b.failure_counts {
                let mine = Arc::make_mut(&mut next.failure_counts).entry(*reason).or_insert(0);
                *mine = (*mine).max(*count);
            }
        }
    }
    for window in a.windows.iter().chain(&b.windows) {
        let same = |other: &&mut Window| other.scope == window.scope && other.class() == window.class();
        match next.windows.iter_mut().find(same) {
            Some(mine) if strength(mine) < strength(window) => *mine = window.clone(),
            Some(_) => {}
            None => next.windows.push(window.clone()),
        }
    }
    for pause in a.pauses.iter().chain(&b.pauses) {
        match next.pauses.iter_mut().find(|mine| mine.scope == pause.scope) {
            Some(mine) if *mine < *pause => *mine = pause.clone(),
            Some(_) => {}
            None => next.pauses.push(pause.clone()),
        }
    }
    next.windows.sort_by(|a, b| (&a.scope, a.class()).cmp(&(&b.scope, b.class())));
    next.pauses.sort_by(|a, b| a.scope.cmp(&b.scope));
    next.bound();
    next
}

impl UsageStats {
    fn take_counters(&mut self, from: &Self) {
        self.error_count = from.error_count;
        self.failure_counts.clone_from(&from.failure_counts);
    }
}

fn strength(window: &Window) -> (u64, Timestamp, Timestamp, FailoverReason, &WindowSource) {
    (window.epoch, window.until, window.set_at, window.reason, &window.source)
}
