//! Recorded answers, for the tests of decoders.

use crate::answer::Parser;
use crate::{Answered, Decode, Fault};
use std::fmt;

/// Reads a recorded answer to its end: one that was `streamed`, as it came over the wire, or one that came whole.
///
/// # Errors
///
/// What the decoder finds wrong with it; and an event that is too long.
pub fn replay(mut decoder: impl Decode, recorded: &str, streamed: bool) -> Result<Answered, Fault> {
    let mut answered = Answered::default();
    if !streamed {
        decoder.whole(recorded.trim(), &mut answered)?;
        return Ok(answered);
    }
    let mut parser = Parser::new(decoder.framing());
    let pushed = parser.push(recorded.as_bytes());
    parser.end();
    while let Some(event) = parser.next_event() {
        decoder.event(&event, &mut answered)?;
    }
    pushed.map_err(|error| Fault::Error(error.to_string()))?;
    Ok(answered)
}

/// Its head, an event a line, and how it ended.
impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.head)?;
        for event in &self.ready {
            writeln!(f, "{event:?}")?;
        }
        write!(f, "{:?}, done {}", self.finish, self.done)
    }
}
