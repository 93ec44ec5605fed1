//! A session keeps its credential: automatic pins are preferences, a person's pin is strict.

use crate::{LeftOutReason, Order, Slot, Why};
use failover_types::ProfileId;

/// Who pinned a profile to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a pin is the system's or a person's")]
pub enum PinSource {
    /// Rotation chose it.
    Auto,
    /// A person did.
    User,
}

/// The pin fields of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pin {
    /// The pinned profile.
    pub profile: ProfileId,
    /// Who pinned it.
    pub source: PinSource,
    /// The session's compaction count when it was pinned.
    pub compaction_count: u64,
}

impl Pin {
    /// What rotation writes after it chose `profile`.
    pub fn auto(profile: ProfileId, compaction_count: u64) -> Self {
        Self { profile, source: PinSource::Auto, compaction_count }
    }

    /// What a person's choice writes.
    pub fn user(profile: ProfileId) -> Self {
        Self { profile, source: PinSource::User, compaction_count: 0 }
    }
}

/// What a person's pin means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: the two settings of `userPin`")]
pub enum UserPinMode {
    /// This profile and no other.
    #[default]
    Strict,
    /// This profile first.
    Preferred,
}

/// Whom a run may try, in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The profiles to try, those that are out among them.
    pub slots: Vec<Slot>,
    /// Rotation is forbidden: a person pinned the only one.
    pub strict: bool,
    /// The session holds no automatic pin that still counts: pin the profile that answers.
    pub repin: bool,
    /// A person pinned a profile that is out: try it once all the same.
    pub force_probe: bool,
    /// Why the profile that a person pinned cannot be tried at all.
    pub unusable_pin: Option<LeftOutReason>,
}

/// Applies a session's pin to an order.
///
/// An automatic pin counts until the session was compacted since, or its profile is out; a person's pin counts until
/// the session layer drops it.
pub fn choose(order: &Order, pin: Option<&Pin>, compaction_count: u64, user_pin: UserPinMode) -> Choice {
    let mut choice = Choice {
        slots: order.slots.clone(),
        strict: false,
        repin: true,
        force_probe: false,
        unusable_pin: None,
    };
    let Some(pin) = pin else { return choice };
    let at = order.position(&pin.profile);
    let usable = at.and_then(|at| order.slots.get(at)).is_some_and(|slot| slot.availability.is_usable());
    match (pin.source, user_pin) {
        (PinSource::User, UserPinMode::Strict) => {
            choice.slots.retain(|slot| slot.profile == pin.profile);
            choice.strict = true;
            choice.repin = false;
            choice.force_probe = at.is_some() && !usable;
            choice.unusable_pin = at.is_none().then(|| {
                let left_out = order.left_out.iter().find(|out| out.profile == pin.profile);
                left_out.map_or(LeftOutReason::Unknown, |out| out.reason)
            });
        }
        (PinSource::User, UserPinMode::Preferred) => {
            choice.repin = false;
            choice.prefer(at.filter(|_| usable));
        }
        (PinSource::Auto, _) => {
            let holds = usable && compaction_count <= pin.compaction_count;
            choice.repin = !holds;
            choice.prefer(at.filter(|_| holds));
        }
    }
    for slot in &mut choice.slots {
        if slot.profile == pin.profile && !choice.repin {
            slot.why = Why::Pinned;
        }
    }
    choice
}

impl Choice {
    fn prefer(&mut self, at: Option<usize>) {
        if let Some(before) = at.and_then(|at| self.slots.get_mut(..=at)) {
            before.rotate_right(1);
        }
    }
}
