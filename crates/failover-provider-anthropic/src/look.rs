//! One look at each event of a stream that is passed on as it came: content, stop reason, usage, error, and no more.

use crate::decode::{Counter, Counts, finish};
use failover_http::{Answered, Fault, Glance, Look};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    usage: Option<Counts>,
    error: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    usage: Option<Counts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    thinking: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    thinking: Cow<'a, str>,
    #[serde(borrow)]
    signature: Cow<'a, str>,
    #[serde(borrow)]
    partial_json: Cow<'a, str>,
    citation: Option<IgnoredAny>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
}

/// Looks at events.
#[derive(Debug, Default)]
pub(crate) struct Glancer {
    counter: Counter,
    /// The block at hand is the API's own: its input is read when it ends.
    own: bool,
}

impl Look for Glancer {
    fn look(&mut self, event: &str, data: &str, answered: &mut Answered) -> Result<Glance, Fault> {
        if event == "error" {
            return Err(Fault::Error(data.to_owned()));
        }
        // Clients stumble over anything but an object.
        let event = data.starts_with('{').then(|| serde_json::from_str::<Event<'_>>(data).ok()).flatten();
        let Some(event) = event else {
            tracing::warn!(bytes = data.len(), "skipped a malformed event of a stream");
            return Ok(Glance::Withhold);
        };
        if event.error.is_some() || event.kind == "error" {
            return Err(Fault::Error(data.to_owned()));
        }
        let content = match event.kind.as_ref() {
            "content_block_delta" => event.delta.is_some_and(|delta| {
                delta.citation.is_some()
                    || [delta.text, delta.thinking, delta.signature, delta.partial_json]
                        .iter()
                        .any(|more| !more.is_empty())
            }),
            "content_block_start" => {
                let block = event.content_block.unwrap_or_default();
                self.own = !["", "text", "thinking", "tool_use"].contains(&block.kind.as_ref());
                match block.kind.as_ref() {
                    "" => false,
                    "text" => !block.text.is_empty(),
                    "thinking" => !block.thinking.is_empty(),
                    _ => true,
                }
            }
            "content_block_stop" => std::mem::take(&mut self.own),
            "message_start" => {
                let message = event.message.unwrap_or_default();
                answered.head.id = message.id.map(Cow::into_owned);
                answered.head.model = message.model.map(Cow::into_owned);
                self.counter.count(message.usage, answered);
                false
            }
            "message_delta" => {
                let word = event.delta.and_then(|delta| delta.stop_reason);
                answered.finish = word.as_deref().map(finish).or(answered.finish.take());
                self.counter.count(event.usage, answered);
                false
            }
            "message_stop" => {
                answered.done = true;
                if answered.finish.is_none() {
                    // Without its finish marker the answer is not complete, and must not look so.
                    return Ok(Glance::Withhold);
                }
                false
            }
            _ => false,
        };
        Ok(if content { Glance::Content } else { Glance::Other })
    }

    fn sentinel(&self) -> &'static [u8] {
        b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    }
}
