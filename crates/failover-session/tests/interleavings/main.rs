//! Two runs, a person, a reset and an unrelated writer on one session: every interleaving of a small configuration,
//! and random ones of a larger one against a store that loses swaps.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "test helpers"
)]

mod exhaustive;
mod random;
mod rules;
mod world;
