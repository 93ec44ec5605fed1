//! Which credential next, and for how long not that one.
//!
//! Everything here is a pure function of its arguments: `now` is passed in, nothing is read and nothing is
//! written. A driver loads [`UsageStats`] from its store, folds an [`Outcome`] into it with [`next_usage`], and
//! swaps the result back in; [`order`] says whom to try, [`choose`] applies the session's pin.
//!
//! A failure that changes nothing gives back equal statistics, so a driver compares before it writes: thousands
//! of failures inside one window cost one write.

mod availability;
mod keys;
mod lease;
mod merge;
mod openclaw;
mod order;
mod outcome;
mod pin;
mod policy;
mod profile;
mod reduce;
mod refresh;
mod skip;
mod steer;
mod usage;

pub use availability::{Availability, availability, infer_reason, soonest_expiry};
pub use keys::{probe_lease_key, profile_usage_key, provider_usage_key};
pub use lease::{Lease, LeaseClaim, LeaseTerms, ProbeKind, ProbePolicy, next_probe, probe_due, recovering};
pub use merge::merge;
pub use openclaw::{FlatUsage, Imported};
pub use order::{LeftOut, LeftOutReason, Order, OrderRequest, OrderSource, Slot, Why, order};
pub use outcome::{AttemptTag, Deadline, DeadlineKind, Failure, Outcome, Success};
pub use pin::{Choice, Pin, PinSource, UserPinMode, choose};
pub use policy::{CooldownOptions, CooldownPolicy, PolicyError};
pub use profile::{ConfiguredProfile, Profile, ProfileSet, auth_aliases};
pub use reduce::next_usage;
pub use refresh::{HowFresh, Refresh, RefreshEnd, RefreshEvent, RefreshFailure, RefreshPolicy, RefreshStep};
pub use skip::SkipCache;
pub use steer::{ClearScope, TooManyPauses, clear, pause, resume, secret_stored, with_reset};
pub use usage::{Pause, UsageError, UsageStats, Window, WindowClass, WindowScope, WindowSource};
