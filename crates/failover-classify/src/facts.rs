//! Properties of a signal as a whole.

use crate::reading::Reading;
use crate::rule::Fact;
use crate::view::is_letter;
use crate::{Surface, guard};
use memchr::memmem;

/// The last char boundary at or before `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Words that only repeat a status or name the wrapper, in the order of their letters.
const STATUS_WORDS: [&str; 70] = [
    "a",
    "an",
    "and",
    "anthropic",
    "api",
    "apierror",
    "apistatuserror",
    "bad",
    "badrequesterror",
    "body",
    "call",
    "calling",
    "chat",
    "client",
    "code",
    "completion",
    "completions",
    "content",
    "details",
    "empty",
    "entity",
    "err",
    "error",
    "errors",
    "exception",
    "failed",
    "false",
    "for",
    "from",
    "get",
    "got",
    "http",
    "https",
    "in",
    "invalid",
    "is",
    "llm",
    "message",
    "model",
    "no",
    "none",
    "null",
    "object",
    "occurred",
    "of",
    "openai",
    "path",
    "post",
    "provider",
    "received",
    "request",
    "response",
    "retry",
    "returned",
    "server",
    "status",
    "statuscode",
    "the",
    "timestamp",
    "title",
    "to",
    "true",
    "type",
    "unexpected",
    "unprocessable",
    "unprocessableentityerror",
    "upstream",
    "url",
    "was",
    "with",
];

impl Reading<'_> {
    /// Whether the property holds. What costs more than a look is found out once.
    pub(crate) fn holds(&self, fact: Fact) -> bool {
        let bare = || *self.bare.get_or_init(|| self.view().bytes().len() < SHORT && bare(self.text()));
        match fact {
            Fact::EmptyBody => !self.view().html && self.view().bytes().iter().all(u8::is_ascii_whitespace),
            Fact::Bare => bare(),
            Fact::Worded => !bare(),
            Fact::Html => self.view().html,
            Fact::HasHint => self.stated(),
            Fact::NoHint => !self.stated(),
            Fact::AloneTooLarge => self.tokens().is_some_and(|tokens| {
                matches!((tokens.observed, tokens.allowed), (Some(asked), Some(limit)) if asked > limit)
            }),
            Fact::EmptyAnswer => *self
                .empty_answer
                .get_or_init(|| self.answers_nothing()),
            Fact::Short => self.signal.body.len() <= 400,
            Fact::Tiny => self.signal.body.len() <= 32,
            Fact::Prose => *self.prose.get_or_init(|| prose(&self.source.head)),
            Fact::NoStatus => self.status.is_none(),
            Fact::Record => {
                self.text_only() && guard::is_record(self.front())
                    || self.served() && guard::is_data(self.front())
            }
            Fact::Speech => self.text_only() && guard::is_speech(self.front()),
            Fact::Plain => self.plain(),
            Fact::Weighs(reason) => self.weighed().is_some_and(|weighed| weighed.reason == reason),
            Fact::Outweighs(reason) => {
                self.weighed().is_some_and(|weighed| weighed.reason == reason && weighed.outweighs)
            }
        }
    }

    fn answers_nothing(&self) -> bool {
        let text = self.view().bytes();
        // A status says that the call came back, so this is what it came back with.
        let is_nothing =
            self.signal.status.is_some() && matches!(text.trim_ascii(), b"null" | b"[]" | b"\"\"");
        is_nothing || only_comments(self.view().slice(0..ANSWER_REACH)) || empty_answer(self.squeezed())
    }

    /// The front of the body as text, as far as facts look.
    fn front(&self) -> &str {
        self.source.head.get(..floor(&self.source.head, 4096)).unwrap_or_default()
    }

    /// Whether the signal says nothing beside its text: no error status, no code, no cancel, no connection, no
    /// failure of the caller's own.
    fn text_only(&self) -> bool {
        let signal = &self.signal;
        signal.code.is_none()
            && signal.status.is_none_or(|status| status < 100)
            && !matches!(signal.surface, Surface::Transport | Surface::Cancelled | Surface::Local)
    }

    /// Whether the call went through as far as its status says.
    fn served(&self) -> bool {
        self.signal.code.is_none() && self.signal.status.is_none_or(|status| status < 300)
    }

    fn plain(&self) -> bool {
        *self.plain.get_or_init(|| self.text_only() && !guard::reports(self.front()))
    }

    /// Header names have hyphens, fields and texts have none.
    fn stated(&self) -> bool {
        self.hint().is_some_and(|hint| !hint.source.contains('-'))
    }
}

/// Longer texts say something.
const SHORT: usize = 400;

/// Whether a short text says nothing beyond its status.
fn bare(text: &str) -> bool {
    without_class(text)
        .split(|ch: char| !is_letter(ch))
        .filter(|word| word.len() > 1)
        .all(|word| STATUS_WORDS.binary_search(&word).is_ok())
}

/// A text without the name of an exception's class at its front, which says what failed, not why.
fn without_class(text: &str) -> &str {
    memchr::memchr_iter(b':', text.as_bytes())
        .find_map(|at| Some((text.get(..at)?, text.get(at + 1..)?.strip_prefix(' ')?)))
        .filter(|(class, _)| {
            !class.contains(' ') && (class.ends_with("exception") || class.ends_with("error"))
        })
        .map_or(text, |(_, rest)| rest)
}

/// A list in Markdown, or a text of many sentences, without anything structured in it.
fn prose(text: &str) -> bool {
    let text = text.get(..floor(text, 4096)).unwrap_or_default();
    let bytes = text.as_bytes();
    let marks = memchr::memchr_iter(b'\n', bytes)
        .map(|at| bytes.get(at + 1..).unwrap_or_default())
        .filter(|line| {
            line.starts_with(b"- ")
                || line.starts_with(b"* ")
                || matches!(line, [b'1'..=b'3', b'.', b' ', ..])
        })
        .count();
    let marks = marks + usize::from(text.starts_with("- "));
    marks >= 2 && !text.contains('{') && !text.contains("\n    at ")
}

/// An answer is looked at this far.
const ANSWER_REACH: usize = 8192;
/// An answer that has none of the fields of an answer is no longer.
const SHORTEST_ANSWERS: usize = 40;

/// Fields without which nothing longer than a few bytes is a complete answer.
pub(crate) fn answer_words() -> impl Iterator<Item = &'static str> {
    ["\"choices\"", "\"content\"", "\"output\"", "\"candidates\"", "\"done\""].into_iter()
}

/// The text without spaces, if it may be a complete answer.
pub(crate) fn squeeze(text: &[u8], has_fields: bool, into: &mut Vec<u8>) {
    into.clear();
    let begins = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(begins, Some(b'{' | b'd')) && (has_fields || text.len() <= SHORTEST_ANSWERS) {
        let mut rest = text.get(..ANSWER_REACH).unwrap_or(text);
        while let Some(at) = memchr::memchr(b' ', rest) {
            let (word, after) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            into.extend_from_slice(word);
            rest = after.get(1..).unwrap_or_default();
        }
        into.extend_from_slice(rest);
    }
}

/// Nothing but comments of a stream, which keep the connection open.
fn only_comments(text: &[u8]) -> bool {
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
        && String::from_utf8_lossy(text).split(": ").all(|part| {
            matches!(part.trim(), "" | "keep alive" | "ping" | "keepalive" | "openrouter processing")
        })
}

/// Whether a squeezed text is a complete answer of any dialect that says nothing and calls nothing.
fn empty_answer(text: &[u8]) -> bool {
    let has = |what: &str| memmem::find(text, what.as_bytes()).is_some();
    if text.is_empty() {
        return false;
    }
    if text == b"data:[done]" {
        return true;
    }
    if has("\"toolcalls\":[{") || has("\"tooluse\"") || has("\"functioncall\":{") || has("\"error\":{") {
        return false;
    }
    let choices = has("\"choices\":[]")
        || has("\"choices\":null")
        || has("\"choices\":[")
            && (has("\"content\":\"\"") || has("\"content\":null"))
            && !has("\"finishreason\":\"contentfilter\"")
            // DeepSeek: of the system, not of the balance.
            && !has("\"finishreason\":\"insufficientsystemresource\"");
    let content = has("\"type\":\"message\"") && has("\"content\":[]")
        || has("\"output\":[]") && has("\"completed\"")
        || text == b"{\"text\":\"\"}"
        || text == b"{}";
    let gemini = has("\"candidates\":[]")
        || has("\"candidates\":[{")
            && !has("\"text\":")
            && (has("\"finishreason\":\"stop\"")
                || has("\"finishreason\":\"maxtokens\"")
                || has("\"finishreason\":\"other\"")
                || has("\"finishreason\":\"finishreasonunspecified\""));
    let ollama = has("\"done\":true") && (has("\"response\":\"\"") || has("\"content\":\"\""));
    choices || content || gemini || ollama
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_in_order() {
        assert!(STATUS_WORDS.is_sorted());
    }
}
