//! Anthropic's messages, as its clients speak them.

mod parse;
mod render;
mod stream;

pub(super) use parse::parse;
pub(super) use render::whole;
pub(super) use stream::Events;

/// Where vendor fields of this dialect are at home.
const HOME: &str = "anthropic";
/// The block whose `data` carries what clients cannot read.
const REDACTED: &str = "redacted_thinking";
