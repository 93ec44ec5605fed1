//! Reads when to come back: from headers, from fields of a body, from texts in several languages.

mod duration;
mod headers;
mod text;
pub(crate) mod wall;
mod words;
mod zones;

use crate::hint::LONGEST;
use crate::reading::Reading;
use crate::{RetryHint, RetryWhen};

pub(crate) use words::words;

/// What the windows of the headers say: sent beside failures of every kind, so only a rate limit asks for it.
pub(crate) use headers::windows;

/// Whether a provider can mean it: a span of more than 31 days is nonsense. Of a time only a clock can tell.
fn is_sane(when: &RetryWhen) -> bool {
    !matches!(when, RetryWhen::After(span) if *span > LONGEST)
}

/// The best statement of the signal. Headers that say nothing else speak first, then fields, then text.
pub(crate) fn read(reading: &Reading<'_>) -> Option<RetryHint> {
    let headers = reading.signal.headers;
    let front = text::Front::of(reading);
    let field = front.fields();
    if let Some(mut hint) = headers::explicit(headers) {
        if hint.also.is_none() {
            hint.also =
                field.as_ref().map(|other| other.when.clone()).filter(|when| kind(when) != kind(&hint.when));
        }
        return Some(hint);
    }
    match (field, front.said()) {
        (Some(mut field), Some(said)) => {
            if field.also.is_none() && kind(&field.when) != kind(&said.when) {
                field.also = Some(said.when);
            }
            Some(field)
        }
        (Some(hint), None) | (None, Some(hint)) => Some(hint),
        (None, None) => None,
    }
}

fn kind(when: &RetryWhen) -> u8 {
    match when {
        RetryWhen::After(_) => 0,
        RetryWhen::At(_) => 1,
        RetryWhen::Wall { .. } => 2,
    }
}
