//! OpenAI's chat completions, as its clients speak them.

mod parse;
mod render;
mod stream;

pub(super) use parse::parse;
pub(super) use render::whole;
pub(super) use stream::Chunks;

/// Where vendor fields of this dialect are at home.
const HOME: &str = "openai";
/// `format` of an entry of `reasoning_details` that carries something of ours.
const FORMAT: &str = "failover";
