//! OpenAI's responses, as its clients speak them.

mod object;
mod parse;
mod stream;

pub(super) use object::whole;
pub(super) use parse::parse;
pub(super) use stream::Events;

/// Where vendor fields of this dialect are at home.
const HOME: &str = "openai";
