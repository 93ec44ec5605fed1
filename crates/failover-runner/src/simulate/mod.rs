//! Plays scripted scenarios through the plan in virtual time (requirement R-1).

mod engine;
mod timeline;

pub use engine::{Answer, Engine, World};
pub use timeline::{Entry, Timeline};
