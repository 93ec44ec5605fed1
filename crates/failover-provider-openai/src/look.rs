//! One look at each chunk of a stream that is passed on as it came: content, finish, usage, error, and no more.

use crate::wire::{Counts, Ending, ending};
use failover_http::{Answered, Fault, Glance, Look};
use failover_provider::{FinishReason, ReplyEvent};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Whether a field holds anything: neither null nor an empty text, list or object.
#[derive(Clone, Copy, Debug, Default)]
struct Filled(bool);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FilledVisitor).map(Self)
    }
}

struct FilledVisitor;

impl<'de> Visitor<'de> for FilledVisitor {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(!text.is_empty())
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut filled = false;
        while items.next_element::<IgnoredAny>()?.is_some() {
            filled = true;
        }
        Ok(filled)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        let mut filled = false;
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            filled = true;
        }
        Ok(filled)
    }
}

/// As [`Filled`]; and the text itself, where it stands in the chunk as it is read.
#[derive(Clone, Copy, Debug, Default)]
struct Content<'a> {
    filled: bool,
    text: Option<&'a str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
        Ok(Content { filled: !text.is_empty(), text: Some(text) })
    }

    fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
        Ok(Content { filled: !text.is_empty(), text: None })
    }

    fn visit_unit<E>(self) -> Result<Content<'de>, E> {
        Ok(Content::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content<'de>, E> {
        Ok(Content { filled: true, text: None })
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content<'de>, E> {
        Ok(Content { filled: true, text: None })
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content<'de>, E> {
        Ok(Content { filled: true, text: None })
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content<'de>, E> {
        Ok(Content { filled: true, text: None })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Content<'de>, A::Error> {
        FilledVisitor.visit_seq(items).map(|filled| Content { filled, text: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Content<'de>, A::Error> {
        FilledVisitor.visit_map(fields).map(|filled| Content { filled, text: None })
    }
}

/// What stands around the text of a chunk that says nothing but text. Most chunks of a stream differ from the one before in
/// their text only, and say the same then: that is seen without reading them as JSON.
struct Around {
    before: Box<str>,
    after: Box<str>,
}

impl Around {
    /// What stands around `text`, which is a part of `data`.
    fn new(data: &str, text: &str) -> Option<Self> {
        let from = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
        let (before, rest) = data.split_at_checked(from)?;
        let after = rest.strip_prefix(text)?;
        // Any text may stand between two quotes.
        let quoted = before.ends_with('"') && after.starts_with('"');
        quoted.then(|| Self { before: before.into(), after: after.into() })
    }

    /// The text of another chunk, where it is the same otherwise.
    fn text<'a>(&self, data: &'a str) -> Option<&'a str> {
        data.strip_prefix(&*self.before)?.strip_suffix(&*self.after).filter(|text| is_inside_quotes(text))
    }
}

/// Whether this may stand between the quotes of a string of JSON. Escapes by number are left to the parser.
fn is_inside_quotes(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let fits = match byte {
            b'\\' => {
                matches!(bytes.next(), Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'))
            }
            b'"' => false,
            _ => byte >= b' ',
        };
        if !fits {
            return false;
        }
    }
    true
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Counts>,
    error: Filled,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    index: u32,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
    error: Filled,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Content<'a>,
    refusal: Filled,
    reasoning_content: Filled,
    reasoning: Filled,
    reasoning_details: Filled,
    tool_calls: Filled,
    function_call: Filled,
    audio: Filled,
}

impl Delta<'_> {
    fn is_content(&self) -> bool {
        self.content.filled || self.is_more_than_text()
    }

    fn is_more_than_text(&self) -> bool {
        [
            self.refusal,
            self.reasoning_content,
            self.reasoning,
            self.reasoning_details,
            self.tool_calls,
            self.function_call,
            self.audio,
        ]
        .iter()
        .any(|field| field.0)
    }
}

/// Data that is one JSON object; clients stumble over anything else.
pub(crate) fn object<'a, T: Deserialize<'a>>(data: &'a str) -> Option<T> {
    data.starts_with('{').then(|| serde_json::from_str(data).ok()).flatten()
}

/// Looks at chunks.
pub(crate) struct Glancer {
    /// The usage was asked for here, not by the caller: it must not see it.
    keep_usage: bool,
    /// Choices that have begun, and those that are over, by index; a caller may have asked for several.
    begun: u64,
    over: u64,
    finish: Option<FinishReason>,
    /// Of the chunk before, where it said nothing but text.
    around: Option<Around>,
}

impl Glancer {
    /// `asked` says that the usage was asked for here, and not by the caller.
    pub(crate) fn new(asked: bool) -> Self {
        Self { keep_usage: asked, begun: 0, over: 0, finish: None, around: None }
    }

    fn choice(&mut self, choice: &Choice<'_>, answered: &mut Answered) -> Result<bool, Fault> {
        let bit = 1_u64.checked_shl(choice.index).unwrap_or(1 << 63);
        self.begun |= bit;
        if let Some(word) = choice.finish_reason.as_deref().filter(|word| !word.is_empty()) {
            match ending(word) {
                Ending::Failed(word) => return Err(Fault::Finish(word)),
                Ending::Finished(finish) if choice.index == 0 || self.finish.is_none() => {
                    self.finish = Some(finish);
                }
                Ending::Finished(_) => {}
            }
            self.over |= bit;
            if self.begun == self.over {
                answered.finish.clone_from(&self.finish);
            }
        } else if self.begun != self.over {
            // Another choice began after the first was over.
            answered.finish = None;
        }
        Ok(choice.delta.as_ref().is_some_and(Delta::is_content))
    }
}

impl Look for Glancer {
    fn look(&mut self, event: &str, data: &str, answered: &mut Answered) -> Result<Glance, Fault> {
        if event == "error" {
            return Err(Fault::Error(data.to_owned()));
        }
        if data == "[DONE]" {
            answered.done = true;
            // Without its finish marker the answer is not complete, and must not look so.
            return Ok(if answered.finish.is_some() { Glance::Other } else { Glance::Withhold });
        }
        if let Some(text) = self.around.as_ref().and_then(|around| around.text(data)) {
            return Ok(if text.is_empty() { Glance::Other } else { Glance::Content });
        }
        self.around = None;
        let Some(chunk) = object::<Chunk<'_>>(data) else {
            tracing::warn!(bytes = data.len(), "skipped a malformed event of a stream");
            return Ok(Glance::Withhold);
        };
        let choices = chunk.choices.as_deref().unwrap_or_default();
        if chunk.error.0 || choices.iter().any(|choice| choice.error.0) {
            return Err(Fault::Error(data.to_owned()));
        }
        let head = &mut answered.head;
        if head.id.is_none() {
            head.id = chunk.id.map(|id| id.get().trim_matches('"').to_owned()).filter(|id| id != "null");
        }
        if head.model.is_none() {
            head.model = chunk.model.map(Cow::into_owned);
        }
        let mut content = false;
        for choice in choices {
            content |= self.choice(choice, answered)?;
        }
        if let ([choice], None) = (choices, &chunk.usage)
            && choice.finish_reason.as_deref().is_none_or(str::is_empty)
            && let Some(delta) = choice.delta.as_ref().filter(|delta| !delta.is_more_than_text())
            && let Some(text) = delta.content.text
        {
            self.around = Around::new(data, text);
        }
        let counts = chunk.usage.is_some();
        if let Some(counts) = chunk.usage {
            answered.ready.push_back(ReplyEvent::Usage(counts.usage()));
        }
        Ok(match content {
            true => Glance::Content,
            false if counts && choices.is_empty() && self.keep_usage => Glance::Withhold,
            false => Glance::Other,
        })
    }

    fn sentinel(&self) -> &'static [u8] {
        b"data: [DONE]\n\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn glance(data: &str) -> Result<Glance, Fault> {
        Glancer::new(true).look("", data, &mut Answered::default())
    }

    #[test_case(r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#, Glance::Other; "opening")]
    #[test_case(r#"{"choices":[{"delta":{"content":"a\"b"}}]}"#, Glance::Content; "text")]
    #[test_case(r#"{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0}]}}]}"#, Glance::Content; "call")]
    #[test_case(r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#, Glance::Content; "reasoning")]
    #[test_case(r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#, Glance::Withhold; "usage that only we want")]
    #[test_case(r#"{"choices":[{"#, Glance::Withhold; "malformed")]
    #[test_case("[]", Glance::Withhold; "no object")]
    #[test_case("", Glance::Withhold; "empty")]
    #[test_case("[DONE]", Glance::Withhold; "sentinel without finish marker")]
    fn looks(data: &str, expected: Glance) {
        assert_eq!(glance(data).unwrap(), expected);
    }

    #[test_case(r#"{"error":{"message":"no"}}"#; "error")]
    #[test_case(r#"{"choices":[{"delta":{"content":"x"},"error":{"code":502}}]}"#; "in a choice")]
    #[test_case(r#"{"choices":[{"delta":{},"finish_reason":"network_error"}]}"#; "finish word")]
    fn faults(data: &str) {
        assert!(glance(data).is_err());
    }

    /// What one glancer says of chunks that follow each other is what a fresh one says of each.
    #[test_case(&["a", "b", "", "\\n", "c\\\"d", "\\u00e9", "e", "\\", "f", "g\",\"x\":\"h", "\u{1}", "é", "\\q", "i"])]
    fn chunks_that_differ_in_their_text_only_are_seen_as_what_they_are(texts: &[&str]) {
        let mut glancer = Glancer::new(true);
        for text in texts {
            let data = format!(
                r#"{{"id":"1","choices":[{{"index":0,"delta":{{"content":"{text}"}}}}],"usage":null}}"#
            );
            let seen = glancer.look("", &data, &mut Answered::default()).unwrap();
            assert_eq!(seen, glance(&data).unwrap(), "{data}");
        }
        let other = r#"{"id":"1","choices":[{"index":0,"delta":{"content":"i"},"finish_reason":"stop"}]}"#;
        let mut answered = Answered::default();
        glancer.look("", other, &mut answered).unwrap();
        assert_eq!(answered.finish, Some(FinishReason::Stop));
        assert!(glancer.around.is_none());
    }

    #[test]
    fn several_choices_are_over_when_all_are() {
        let (mut glancer, mut answered) = (Glancer::new(false), Answered::default());
        let mut take = |data: &str| {
            glancer.look("", data, &mut answered).unwrap();
            answered.finish.clone()
        };
        assert_eq!(take(r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#), None);
        assert_eq!(take(r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#), None);
        assert_eq!(take(r#"{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}"#), None);
        let last = take(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
        assert_eq!(last, Some(FinishReason::Stop));
    }
}
