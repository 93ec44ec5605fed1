//! One look at each event of a stream that is passed on as it came: content, end, usage, error, and no more.

use super::decode::finish;
use super::wire::{Counts, Incomplete, Piece};
use crate::look::object;
use failover_http::{Answered, Fault, Glance, Look};
use failover_provider::ReplyEvent;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    error: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    incomplete_details: Option<Incomplete>,
    usage: Option<Counts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    content: Option<Vec<Piece>>,
}

/// Looks at events.
#[derive(Debug, Default)]
pub(super) struct Glancer {
    calls: bool,
}

impl Glancer {
    /// Whether an item that is complete says something: reasoning alone does not.
    fn says(item: &Item<'_>) -> bool {
        match item.kind.as_ref() {
            "reasoning" => false,
            "message" => item.content.iter().flatten().any(Piece::says),
            _ => true,
        }
    }
}

impl Look for Glancer {
    fn look(&mut self, event: &str, data: &str, answered: &mut Answered) -> Result<Glance, Fault> {
        let fault = || Err(Fault::Error(data.to_owned()));
        if event == "error" {
            return fault();
        }
        if data == "[DONE]" {
            answered.done = true;
            // Without its finish marker the answer is not complete, and must not look so.
            return Ok(if answered.finish.is_some() { Glance::Other } else { Glance::Withhold });
        }
        let Some(event) = object::<Event<'_>>(data) else {
            tracing::warn!(bytes = data.len(), "skipped a malformed event of a stream");
            return Ok(Glance::Withhold);
        };
        let kind = event.kind.as_ref();
        if event.error.is_some() || ["error", "response.failed", "response.cancelled"].contains(&kind) {
            return fault();
        }
        if let Some(response) = event.response {
            answered.head.id = answered.head.id.take().or(response.id.map(Cow::into_owned));
            answered.head.model = answered.head.model.take().or(response.model.map(Cow::into_owned));
            if matches!(kind, "response.completed" | "response.incomplete") {
                let reason =
                    response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
                answered.finish = Some(finish(response.status.as_deref(), reason, self.calls));
                answered.ready.extend(response.usage.map(|counts| ReplyEvent::Usage(counts.usage())));
                answered.done = true;
            }
        }
        let call = event.item.as_ref().is_some_and(|item| item.kind == "function_call");
        self.calls |= call;
        let content = match kind {
            "response.output_item.added" => call,
            "response.output_item.done" => event.item.as_ref().is_some_and(Self::says),
            _ => {
                kind.rsplit('.').next() == Some("delta")
                    && event.delta.is_some_and(|delta| delta.get() != "\"\"")
            }
        };
        Ok(if content { Glance::Content } else { Glance::Other })
    }

    /// The last event is the end.
    fn sentinel(&self) -> &'static [u8] {
        b""
    }
}
