//! OpenAI's responses, as its clients speak them.

use failover_provider::Dialect;

mod object;
mod parse;
mod stream;

pub(super) use object::whole;
pub(super) use parse::parse;
pub(super) use stream::Events;

/// The dialect.
const DIALECT: Dialect = Dialect::OpenAiResponses;
