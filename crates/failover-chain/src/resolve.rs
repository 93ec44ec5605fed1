//! The rules, in the one place that applies them.

use crate::{
    Capabilities, ChainConfig, ChainError, Fallbacks, FallbacksKind, FallbacksOverride, ModelChainConfig,
    Origin, Reference, Rescue, Selection, SelectionSource, Unresolved,
};
use failover_types::{ModelRef, ProfileId};
use std::fmt;

/// Why a candidate is in the chain. Numbers are those of `docs/spec.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// H-1: it was requested.
    Requested,
    /// H-2: a configured fallback.
    Fallback,
    /// H-3: the configured primary, last, so that the run can settle back on the default.
    Primary,
    /// H-5: a fallback given for this run.
    Override,
    /// H-7: a fallback of the scheduled job's payload.
    Payload,
    /// H-8: a fallback of the image model.
    Image,
    /// H-10: for a request that overflowed or was refused elsewhere.
    Rescue,
}

impl Rule {
    /// The rule's number.
    pub const fn number(self) -> &'static str {
        match self {
            Self::Requested => "H-1",
            Self::Fallback => "H-2",
            Self::Primary => "H-3",
            Self::Override => "H-5",
            Self::Payload => "H-7",
            Self::Image => "H-8",
            Self::Rescue => "H-10",
        }
    }

    /// The rule in words, for explanations.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Requested => "the requested model is first",
            Self::Fallback => "configured fallback",
            Self::Primary => "the configured primary closes the chain",
            Self::Override => "fallback given for this run",
            Self::Payload => "fallback of the job's payload",
            Self::Image => "fallback of the image model",
            Self::Rescue => "configured for this reason only",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.number())
    }
}

/// One model that a run may try.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// The model.
    pub model: ModelRef,
    /// The credential that was named with it, where one was.
    pub profile: Option<ProfileId>,
    /// The rule that put it here.
    pub rule: Rule,
    /// Where it is written, where known.
    pub origin: Option<Origin>,
    /// What it can do, where known.
    pub capabilities: Capabilities,
}

/// What decided how the chain goes on behind the requested model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The source of the selection is strict by nature.
    StrictSource,
    /// A `fallbacks` setting applies.
    Configured {
        /// Which of its four forms it has.
        kind: FallbacksKind,
        /// Whose it is: the agent's, or the defaults'.
        agent: bool,
        /// Where it stands, where it does.
        origin: Option<Origin>,
    },
    /// Fallbacks were given for this run.
    Override,
    /// The job's payload has fallbacks of its own.
    Payload,
    /// The image chain.
    Image {
        /// Which of its four forms the setting has.
        kind: FallbacksKind,
        /// Where it stands, where it does.
        origin: Option<Origin>,
    },
    /// The chain of a rescue.
    Rescue,
}

impl Policy {
    /// A stable code.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::StrictSource => "strict_source",
            Self::Configured { .. } => "configured",
            Self::Override => "override",
            Self::Payload => "payload",
            Self::Image { .. } => "image",
            Self::Rescue => "rescue",
        }
    }

    /// Which form of a `fallbacks` setting applies and where it stands, where one applies.
    pub const fn setting(&self) -> Option<(FallbacksKind, Option<&Origin>)> {
        match self {
            Self::Configured { kind, origin, .. } | Self::Image { kind, origin } => {
                Some((*kind, origin.as_ref()))
            }
            Self::StrictSource | Self::Override | Self::Payload | Self::Rescue => None,
        }
    }
}

/// For explanations (requirement H-12).
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self {
            Self::StrictSource => return f.write_str("the selection is strict: no fallbacks apply"),
            Self::Override => return f.write_str("fallbacks were given for this run"),
            Self::Payload => return f.write_str("the job's payload has fallbacks of its own"),
            Self::Rescue => return f.write_str("the chain of a rescue"),
            Self::Configured { agent: true, .. } => "the agent's",
            Self::Configured { agent: false, .. } => "the defaults'",
            Self::Image { .. } => "the image model's",
        };
        let Some((kind, origin)) = self.setting() else { return Ok(()) };
        let form = match kind {
            FallbacksKind::Absent => "absent",
            FallbacksKind::Null => "null, the same as absent here",
            FallbacksKind::Empty => "an empty list, so explicitly none",
            FallbacksKind::List => "a list",
        };
        write!(f, "{whose} fallbacks apply: {form}")?;
        match origin {
            Some(origin) => write!(f, ", {origin}"),
            None => Ok(()),
        }
    }
}

/// The candidates of a run, in order: never empty, and none twice. The same model with another credential that is named
/// is another candidate; behind one that may use every credential it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    selection: Selection,
    policy: Policy,
    candidates: Vec<Candidate>,
    unresolved: Vec<Unresolved>,
}

impl Chain {
    /// What was asked for, and by whom.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// What decided how the chain goes on.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The candidates. The first one is the requested model, except in a rescue chain.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// References that name no model and so are not in the chain.
    pub fn unresolved(&self) -> &[Unresolved] {
        &self.unresolved
    }

    /// Where a model stands in the chain.
    pub fn position(&self, model: &ModelRef) -> Option<usize> {
        self.candidates.iter().position(|candidate| candidate.model == *model)
    }
}

/// Builds a chain: first come first kept, so that no model is in it twice.
struct Builder<'a> {
    config: &'a ChainConfig,
    candidates: Vec<Candidate>,
    unresolved: Vec<Unresolved>,
}

impl<'a> Builder<'a> {
    fn new(config: &'a ChainConfig) -> Self {
        Self { config, candidates: Vec::new(), unresolved: Vec::new() }
    }

    fn push(&mut self, model: ModelRef, profile: Option<ProfileId>, rule: Rule, origin: Option<Origin>) {
        let covers =
            |known: &Candidate| known.model == model && (known.profile.is_none() || known.profile == profile);
        if self.candidates.iter().any(covers) {
            return;
        }
        let capabilities = self.config.capabilities.get(&model).copied().unwrap_or_default();
        self.candidates.push(Candidate { model, profile, rule, origin, capabilities });
    }

    /// The requested model, and where one of `settings` names it. A session that goes on with a fallback keeps to the
    /// credential that is written with it.
    fn requested(&mut self, selection: &Selection, settings: &[&ModelChainConfig]) {
        let model = self.config.aliases.normalize(selection.model());
        let written = settings.iter().find_map(|of| self.config.written(&model, of));
        let profile = match (selection.profile(), selection.source()) {
            (None, SelectionSource::AutoOverride { .. }) => {
                written.and_then(|reference| self.config.read(reference).ok()?.profile)
            }
            (named, _) => named.cloned(),
        };
        self.push(model, profile, Rule::Requested, written.and_then(|reference| reference.origin.clone()));
    }

    fn references(&mut self, references: &[Reference], rule: Rule) {
        for reference in references {
            match self.config.aliases.read(&reference.text) {
                Ok(read) => self.push(read.model, read.profile, rule, reference.origin.clone()),
                Err(why) => self.unresolved.push(Unresolved { reference: reference.clone(), why }),
            }
        }
    }

    fn finish(self, selection: &Selection, policy: Policy) -> Chain {
        let Self { candidates, unresolved, .. } = self;
        Chain { selection: selection.clone(), policy, candidates, unresolved }
    }
}

/// The `fallbacks` setting that counts, and the primary that closes its chain.
struct Setting<'a> {
    fallbacks: &'a Fallbacks,
    primary: Option<&'a Reference>,
    agent: bool,
}

/// The agent's setting, or the defaults' where the agent has none of its own.
fn setting(config: &ChainConfig) -> Setting<'_> {
    let (agent, defaults) = (&config.agent, &config.defaults);
    let primary = agent.primary.as_ref().or(defaults.primary.as_ref());
    let own = match (&agent.fallbacks, &agent.primary) {
        // A primary without fallbacks is strict; nothing at all is the defaults.
        (Fallbacks::Absent, own_primary) => own_primary.is_some(),
        (Fallbacks::Null(_), _) => false,
        (Fallbacks::Empty(_) | Fallbacks::List(_), _) => true,
    };
    Setting { fallbacks: if own { &agent.fallbacks } else { &defaults.fallbacks }, primary, agent: own }
}

/// The setting of the model that the session fell back from: the defaults' chain for the defaults' primary, even if
/// the agent has got a primary of its own since.
fn setting_of<'a>(config: &'a ChainConfig, origin: &ModelRef) -> Setting<'a> {
    let is = |of: &ModelChainConfig| {
        let primary = of.primary.as_ref().and_then(|primary| config.aliases.read(&primary.text).ok());
        primary.is_some_and(|primary| primary.model == config.aliases.normalize(origin))
    };
    if is(&config.defaults) && !is(&config.agent) && config.agent.primary.is_some() {
        let defaults = &config.defaults;
        return Setting { fallbacks: &defaults.fallbacks, primary: defaults.primary.as_ref(), agent: false };
    }
    setting(config)
}

/// What the source of a selection allows behind the requested model.
enum Allowed<'a> {
    Nothing,
    Configured(Setting<'a>),
    Payload(&'a [Reference]),
}

fn allowed<'a>(selection: &'a Selection, config: &'a ChainConfig) -> Allowed<'a> {
    match selection.source() {
        SelectionSource::ConfiguredDefault | SelectionSource::AgentPrimary => {
            Allowed::Configured(setting(config))
        }
        SelectionSource::AutoOverride { origin } => Allowed::Configured(setting_of(config, origin)),
        SelectionSource::Cron { fallbacks: None } => Allowed::Configured(setting(config)),
        SelectionSource::Cron { fallbacks: Some(list) } => Allowed::Payload(list),
        SelectionSource::UserOverride
        | SelectionSource::LegacyOverride
        | SelectionSource::Heartbeat
        | SelectionSource::OneOff => Allowed::Nothing,
    }
}

/// The chain of a run.
///
/// The requested model is first (H-1). Fallbacks given for this run follow it, and nothing else (H-5), whatever the
/// source. Otherwise the source decides (H-7): nothing follows a strict one; else the configured fallbacks follow (H-2,
/// H-4) and the configured primary closes the chain (H-3). What cannot be read is left out and reported by
/// [`Chain::unresolved`] (H-6).
///
/// A bare model string starts nothing (H-9):
///
/// ```compile_fail,E0308
/// # use failover_chain::{ChainConfig, resolve};
/// resolve("openai/gpt-5", &ChainConfig::default(), None);
/// ```
pub fn resolve(selection: &Selection, config: &ChainConfig, fallbacks: Option<&FallbacksOverride>) -> Chain {
    let mut chain = Builder::new(config);
    chain.requested(selection, &[&config.agent, &config.defaults]);
    if let Some(given) = fallbacks {
        chain.references(&given.list, Rule::Override);
        return chain.finish(selection, Policy::Override);
    }
    let policy = match allowed(selection, config) {
        Allowed::Nothing => Policy::StrictSource,
        Allowed::Payload(list) => {
            chain.references(list, Rule::Payload);
            Policy::Payload
        }
        Allowed::Configured(Setting { fallbacks, primary, agent }) => {
            chain.references(fallbacks.references(), Rule::Fallback);
            chain.references(primary.map_or(&[], std::slice::from_ref), Rule::Primary);
            Policy::Configured { kind: fallbacks.kind(), agent, origin: fallbacks.origin().cloned() }
        }
    };
    chain.finish(selection, policy)
}

/// The chain of a run that reads images: the image model's own fallbacks, by the rules of [`resolve`].
///
/// `selection` is usually [`ChainConfig::image_selection`]; an image model that was chosen strictly stays alone.
///
/// # Errors
///
/// [`ChainError::NoImageModel`] where no image model is configured.
pub fn resolve_image(
    selection: &Selection,
    config: &ChainConfig,
    fallbacks: Option<&FallbacksOverride>,
) -> Result<Chain, ChainError> {
    let image = &config.image;
    if image.primary.is_none() && image.fallbacks.references().is_empty() {
        return Err(ChainError::NoImageModel);
    }
    let mut chain = Builder::new(config);
    chain.requested(selection, &[image]);
    if let Some(given) = fallbacks {
        chain.references(&given.list, Rule::Override);
        return Ok(chain.finish(selection, Policy::Override));
    }
    if let Allowed::Nothing = allowed(selection, config) {
        return Ok(chain.finish(selection, Policy::StrictSource));
    }
    chain.references(image.fallbacks.references(), Rule::Image);
    chain.references(image.primary.as_slice(), Rule::Primary);
    let (kind, origin) = (image.fallbacks.kind(), image.fallbacks.origin().cloned());
    Ok(chain.finish(selection, Policy::Image { kind, origin }))
}

/// The models to go on with after a request overflowed or was refused; `None` where that is off, where the selection
/// is strict by its source, or where nothing but the requested model is listed.
pub fn resolve_rescue(rescue: Rescue, selection: &Selection, config: &ChainConfig) -> Option<Chain> {
    if let Allowed::Nothing = allowed(selection, config) {
        return None;
    }
    let requested = config.aliases.normalize(selection.model());
    let mut chain = Builder::new(config);
    chain.references(config.rescue(rescue).references(), Rule::Rescue);
    chain.candidates.retain(|candidate| candidate.model != requested);
    (!chain.candidates.is_empty()).then(|| chain.finish(selection, Policy::Rescue))
}
