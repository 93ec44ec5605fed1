//! The table of requirement R-2: what a failure of a lane, blamed on a scope, leads to.
//!
//! This is the only place that turns a reason into a course of action, and it has no wildcard: a new lane or a
//! new scope does not compile until somebody has decided what it means.

use failover_types::{FailoverReason, Lane, Scope};

/// Whose health suffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum Blame {
    /// Nobody's: nothing is recorded.
    Nobody,
    /// This model on this profile.
    Model,
    /// This profile, for all of its models.
    Profile,
    /// The provider as a whole.
    Provider,
}

/// How many other profiles of the provider may be tried before the next model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum Rotate {
    /// None.
    No,
    /// `rateLimitedProfileRotations`.
    RateLimited,
    /// `overloadedProfileRotations`, each after `overloadedBackoffMs`.
    Overloaded,
    /// `transientProfileRotations`.
    Transient,
    /// Every other usable one.
    All,
}

/// What comes once rotation is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum Then {
    /// The next candidate.
    NextModel,
    /// The next candidate of another provider.
    NextProvider,
    /// One repair of the request without what was lost, else returned.
    RepairOrReturn,
    /// Returned to the caller, unless a [`Remedy`] is configured.
    Return,
    /// Raised as it is.
    Raise,
}

/// Which retry of the same profile and model may come before everything else (requirement R-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum InPlace {
    /// None.
    No,
    /// After a short wait that the provider asked for, where no other profile is usable.
    AfterHint,
    /// At once, where the failure is known to be harmless to repeat.
    AtOnce,
}

/// A course of action: one cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Action {
    /// Whose health suffers.
    pub blame: Blame,
    /// The retry of the same profile and model.
    pub in_place: InPlace,
    /// How many other profiles may be tried.
    pub rotate: Rotate,
    /// What comes then.
    pub then: Then,
}

const fn cell(blame: Blame, in_place: InPlace, rotate: Rotate, then: Then) -> Action {
    Action { blame, in_place, rotate, then }
}

/// The next model; nobody suffers.
const NEXT: Action = cell(Blame::Nobody, InPlace::No, Rotate::No, Then::NextModel);
/// Another profile might be allowed what this one is not; nobody suffers (requirement A-16).
const OTHER_PROFILE: Action = cell(Blame::Nobody, InPlace::No, Rotate::All, Then::NextModel);
/// Another provider; nobody suffers.
const NEXT_PROVIDER: Action = cell(Blame::Nobody, InPlace::No, Rotate::No, Then::NextProvider);
/// Another provider; this one suffers.
const OUTAGE: Action = cell(Blame::Provider, InPlace::No, Rotate::No, Then::NextProvider);
/// The model suffers; another profile would not help.
const MODEL: Action = cell(Blame::Model, InPlace::No, Rotate::No, Then::NextModel);
/// The request is returned.
const RETURN: Action = cell(Blame::Nobody, InPlace::No, Rotate::No, Then::Return);
/// The request is repaired or returned.
const REPAIR: Action = cell(Blame::Nobody, InPlace::No, Rotate::No, Then::RepairOrReturn);
/// The failure is raised.
const RAISE: Action = cell(Blame::Nobody, InPlace::No, Rotate::No, Then::Raise);

/// A window on the model, the profile, or both in turn; some other profiles; the next model.
const fn window(blame: Blame, in_place: InPlace, rotate: Rotate) -> Action {
    cell(blame, in_place, rotate, Then::NextModel)
}

/// One row: the lane's cells for the scopes request, model, credential, provider.
#[rustfmt::skip]
#[expect(clippy::match_same_arms, reason = "one row per lane, also where two lanes are alike")]
const fn row(lane: Lane) -> [Action; 4] {
    use {Blame as B, InPlace as P, Rotate as R};
    match lane {
        // lane                 request  model                                          credential                                     provider
        Lane::RateLimit     => [NEXT,    window(B::Model, P::AfterHint, R::RateLimited), window(B::Profile, P::AfterHint, R::RateLimited), OUTAGE],
        Lane::Overloaded    => [NEXT,    window(B::Model, P::No, R::Overloaded),         window(B::Profile, P::No, R::Overloaded),         OUTAGE],
        Lane::Transient     => [NEXT,    window(B::Model, P::AtOnce, R::No),             window(B::Profile, P::AtOnce, R::Transient),      OUTAGE],
        Lane::Billing       => [NEXT,    MODEL,                                          window(B::Profile, P::No, R::All),                OUTAGE],
        Lane::Auth          => [NEXT,    MODEL,                                          window(B::Profile, P::No, R::All),                OUTAGE],
        Lane::AuthPermanent => [NEXT,    MODEL,                                          window(B::Profile, P::No, R::All),                OUTAGE],
        Lane::Model         => [NEXT,    NEXT,                                           OTHER_PROFILE,                                    NEXT_PROVIDER],
        Lane::Opaque        => [NEXT,    NEXT,                                           NEXT,                                             NEXT_PROVIDER],
        Lane::Session       => [REPAIR,  REPAIR,                                         REPAIR,                                           REPAIR],
        Lane::Request       => [RETURN,  RETURN,                                         RETURN,                                           RETURN],
        Lane::Raised        => [RAISE,   RAISE,                                          RAISE,                                            RAISE],
    }
}

/// What a failure of `lane`, blamed on `scope`, leads to.
pub const fn action(lane: Lane, scope: Scope) -> Action {
    let [request, model, credential, provider] = row(lane);
    match scope {
        Scope::Request => request,
        Scope::Model => model,
        Scope::Credential => credential,
        Scope::Provider => provider,
    }
}

/// What may still save a request that would be returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum Remedy {
    /// The caller's repair hook, once per run (requirement R-5).
    Repair,
    /// The chain for prompts that are too long (requirement H-10).
    OverflowChain,
    /// The chain for refused content (requirement H-10).
    RefusalChain,
}

/// The remedies of [`Then::Return`]. A reason that is not listed is returned at once.
const REMEDIES: [(FailoverReason, Remedy); 3] = [
    (FailoverReason::Format, Remedy::Repair),
    (FailoverReason::ContextOverflow, Remedy::OverflowChain),
    (FailoverReason::ContentRefusal, Remedy::RefusalChain),
];

/// What may still save a request that failed for `reason`.
pub(super) fn remedy(reason: FailoverReason) -> Option<Remedy> {
    REMEDIES.iter().find(|(of, _)| *of == reason).map(|(_, remedy)| *remedy)
}

/// What may be done with a candidate whose profiles are all out, by the lane of why they are (requirement R-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum WhenOut {
    /// The provider is skipped: asking again cannot help.
    SkipProvider,
    /// The provider is skipped, but the primary may be probed.
    ProbePrimary,
    /// The primary may be probed, and so may a sibling model of the same provider.
    ProbeTransient,
}

/// The table of requirement R-6.
pub const fn when_out(lane: Lane) -> WhenOut {
    match lane {
        Lane::Auth | Lane::AuthPermanent => WhenOut::SkipProvider,
        Lane::Billing => WhenOut::ProbePrimary,
        Lane::RateLimit
        | Lane::Overloaded
        | Lane::Transient
        | Lane::Model
        | Lane::Opaque
        | Lane::Session
        | Lane::Request
        | Lane::Raised => WhenOut::ProbeTransient,
    }
}

/// Whether a failed probe of this lane has used up its provider's only probe of the run (requirement R-6).
pub(super) const fn spends_probe(lane: Lane) -> bool {
    match lane {
        Lane::RateLimit
        | Lane::Overloaded
        | Lane::Transient
        | Lane::Billing
        | Lane::Opaque
        | Lane::Raised => true,
        Lane::Model | Lane::Request | Lane::Session | Lane::Auth | Lane::AuthPermanent => false,
    }
}
