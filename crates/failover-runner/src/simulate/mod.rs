//! Plays scripted scenarios through the plan in virtual time (requirement R-1).

mod engine;
mod play;
mod scenario;
mod timeline;

pub use engine::{Answer, Engine, World};
pub use play::play;
pub use scenario::{
    Compaction, Happening, Scenario, ScenarioError, ScenarioEvent, Script, ScriptRule, ScriptedFailure,
    ScriptedRun, SessionChoice,
};
pub use timeline::{Entry, Timeline};
