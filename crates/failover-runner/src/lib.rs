//! Walks a chain of models and credentials until one answers.
//!
//! [`plan`] decides and does no I/O; everything else carries its steps out or shows them.

pub mod health;
pub mod plan;
pub mod simulate;
