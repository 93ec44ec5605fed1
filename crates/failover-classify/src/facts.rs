//! Properties of a signal as a whole.

use crate::rule::Fact;
use crate::view::View;
use crate::{RetryHint, Tokens, guard};

/// The last char boundary at or before `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// What facts are derived from.
pub(crate) struct Known<'a> {
    pub(crate) view: &'a View,
    pub(crate) status: Option<u16>,
    pub(crate) hint: Option<&'a RetryHint>,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) body_len: usize,
    /// The front of the body as text.
    pub(crate) body: &'a str,
    /// Whether the signal says nothing beside its text: no error status, no code, no cancel, no connection.
    pub(crate) text_only: bool,
}

/// Words that only repeat a status or name the wrapper.
const STATUS_WORDS: [&str; 70] = [
    "http",
    "https",
    "error",
    "errors",
    "err",
    "code",
    "status",
    "statuscode",
    "response",
    "request",
    "bad",
    "api",
    "apierror",
    "badrequesterror",
    "no",
    "body",
    "the",
    "a",
    "an",
    "with",
    "failed",
    "call",
    "model",
    "llm",
    "received",
    "from",
    "server",
    "client",
    "is",
    "of",
    "null",
    "none",
    "message",
    "type",
    "true",
    "false",
    "object",
    "occurred",
    "exception",
    "returned",
    "got",
    "to",
    "for",
    "url",
    "post",
    "get",
    "unprocessable",
    "entity",
    "content",
    "details",
    "provider",
    "apistatuserror",
    "invalid",
    "empty",
    "retry",
    "title",
    "unexpected",
    "unprocessableentityerror",
    "path",
    "timestamp",
    "upstream",
    "and",
    "in",
    "was",
    "calling",
    "openai",
    "anthropic",
    "chat",
    "completion",
    "completions",
];

impl Known<'_> {
    pub(crate) fn holds(&self, fact: Fact) -> bool {
        match fact {
            Fact::EmptyBody => self.view.bytes().iter().all(u8::is_ascii_whitespace),
            Fact::Bare => self.bare(),
            Fact::Worded => !self.bare(),
            Fact::Html => self.view.html,
            Fact::HasHint => self.stated(),
            Fact::NoHint => !self.stated(),
            Fact::AloneTooLarge => self.tokens.is_some_and(|tokens| {
                matches!((tokens.observed, tokens.allowed), (Some(asked), Some(limit)) if asked > limit)
            }),
            Fact::EmptyAnswer => empty_answer(self.view.bytes()),
            Fact::Short => self.body_len <= 400,
            Fact::Tiny => self.body_len <= 32,
            Fact::Prose => self.prose(),
            Fact::NoStatus => self.status.is_none(),
            Fact::Record => self.text_only && guard::is_record(self.body),
            Fact::Speech => self.text_only && !guard::reports(self.body) && guard::is_speech(self.body),
            Fact::Plain => self.text_only && !guard::reports(self.body),
        }
    }

    /// A list in Markdown, or a text of many sentences, without anything structured in it.
    fn prose(&self) -> bool {
        let text = self.body;
        let marks = ["\n- ", "\n* ", "\n1. ", "\n2. ", "\n3. "]
            .iter()
            .map(|mark| text.matches(mark).count())
            .sum::<usize>();
        let marks = marks + usize::from(text.starts_with("- "));
        marks >= 2 && !text.contains('{') && !text.contains("\n    at ")
    }

    /// Header names have hyphens, fields and texts have none.
    fn stated(&self) -> bool {
        self.hint.is_some_and(|hint| !hint.source.contains('-'))
    }

    fn bare(&self) -> bool {
        let text = self.view.slice(0..400);
        if text.len() >= 400 {
            return false;
        }
        String::from_utf8_lossy(text)
            .split(|ch: char| !ch.is_alphabetic())
            .filter(|word| word.len() > 1)
            .all(|word| STATUS_WORDS.contains(&word))
    }
}

fn has(text: &[u8], what: &str) -> bool {
    text.windows(what.len()).any(|window| window == what.as_bytes())
}

/// A complete answer of any dialect that says nothing and calls nothing.
fn empty_answer(text: &[u8]) -> bool {
    let text = text.get(..text.len().min(8192)).unwrap_or_default();
    // Nothing but comments of a stream, which keep the connection open.
    let squeezed_comments = || {
        let text = String::from_utf8_lossy(text);
        text.trim_start().starts_with(':')
            && text.split(": ").all(|part| {
                matches!(part.trim(), "" | "keep alive" | "ping" | "keepalive" | "openrouter processing")
            })
    };
    if squeezed_comments() {
        return true;
    }
    if !text
        .iter()
        .find(|byte| !byte.is_ascii_whitespace())
        .is_some_and(|byte| *byte == b'{' || *byte == b'd')
    {
        return false;
    }
    let squeezed: Vec<u8> = text.iter().copied().filter(|byte| *byte != b' ').collect();
    let text = squeezed.as_slice();
    if text == b"data:[done]" {
        return true;
    }
    if has(text, "\"toolcalls\":[{")
        || has(text, "\"tooluse\"")
        || has(text, "\"functioncall\":{")
        || has(text, "\"error\":{")
    {
        return false;
    }
    let choices = has(text, "\"choices\":[]")
        || has(text, "\"choices\":null")
        || has(text, "\"choices\":[")
            && (has(text, "\"content\":\"\"") || has(text, "\"content\":null"))
            && !has(text, "\"finishreason\":\"contentfilter\"");
    let content = has(text, "\"type\":\"message\"") && has(text, "\"content\":[]")
        || has(text, "\"output\":[]") && has(text, "\"completed\"")
        || text == b"{\"text\":\"\"}"
        || text == b"{}";
    let gemini = has(text, "\"candidates\":[]")
        || has(text, "\"candidates\":[{")
            && !has(text, "\"text\":")
            && has(text, "\"finishreason\":\"stop\"");
    let ollama =
        has(text, "\"done\":true") && (has(text, "\"response\":\"\"") || has(text, "\"content\":\"\""));
    choices || content || gemini || ollama
}
