//! OpenAI's chat completions, as its clients speak them.

use failover_provider::Dialect;

mod parse;
mod render;
mod stream;

pub(super) use parse::parse;
pub(super) use render::whole;
pub(super) use stream::Chunks;

/// The dialect.
const DIALECT: Dialect = Dialect::OpenAiChat;
/// `format` of an entry of `reasoning_details` that carries something of ours.
const FORMAT: &str = "failover";
