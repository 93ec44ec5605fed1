//! Anthropic's messages, as its clients speak them.

use failover_provider::Dialect;

mod parse;
mod render;
mod stream;

pub(super) use parse::parse;
pub(super) use render::whole;
pub(super) use stream::Events;

/// The dialect.
const DIALECT: Dialect = Dialect::AnthropicMessages;
/// The name of what a text has besides itself: where it is from.
const CITATIONS: &str = "citations";
/// The block whose `data` carries what clients cannot read.
const REDACTED: &str = "redacted_thinking";
