//! Times are milliseconds since the Unix epoch: no time crate in any public signature.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A point in time, in milliseconds since the Unix epoch. Arithmetic saturates: absurd clocks do not panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The epoch itself.
    pub const ZERO: Self = Self(0);
    /// The last representable time.
    pub const MAX: Self = Self(u64::MAX);

    /// From milliseconds since the epoch.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This time plus `wait`; fractions of a millisecond round up, so that nobody comes back too early.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(millis(wait)))
    }

    /// This time minus `span`, not before the epoch.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(millis(span)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// `wait` in whole milliseconds, rounded up and saturating.
pub fn millis(wait: Duration) -> u64 {
    let whole = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let fraction = !wait.subsec_nanos().is_multiple_of(1_000_000);
    whole.saturating_add(u64::from(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_a_millisecond_rounds_up() {
        assert_eq!(millis(Duration::from_micros(1)), 1);
        assert_eq!(millis(Duration::from_millis(1)), 1);
        assert_eq!(millis(Duration::from_micros(1_001)), 2);
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp::MAX.after(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO.before(Duration::MAX), Timestamp::ZERO);
        assert_eq!(Timestamp::ZERO.after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO.since(Timestamp::MAX), Duration::ZERO);
    }
}
