//! A streamed answer in the client's dialect.

use super::chat::Chunks;
use super::write::put_comment;
use super::{ClientDialect, ErrorBody, Meta};
use super::{messages, responses};
use bytes::BytesMut;
use failover_provider::ReplyEvent;

/// Writes the events of one streamed answer. Whatever is written is whole: a buffer may be sent after any call.
#[derive(Debug)]
pub struct StreamRenderer {
    form: Form,
    /// The last event was written.
    over: bool,
}

#[derive(Debug)]
enum Form {
    Chat(Chunks),
    Messages(messages::Events),
    Responses(responses::Events),
}

impl StreamRenderer {
    /// A renderer before its first event.
    pub fn new(dialect: ClientDialect, meta: Meta) -> Self {
        let form = match dialect {
            ClientDialect::Chat => Form::Chat(Chunks::new(meta)),
            ClientDialect::Messages => Form::Messages(messages::Events::new(meta)),
            ClientDialect::Responses => Form::Responses(responses::Events::new(meta)),
        };
        Self { form, over: false }
    }

    /// Says that the provider's own bytes go out in this dialect, of a response that it calls `id` and whose model it calls
    /// `model`: what is written here goes on with that response.
    pub fn adopt(&mut self, id: Option<&str>, model: Option<&str>) {
        match &mut self.form {
            Form::Responses(events) => events.adopt(id, model),
            Form::Chat(_) | Form::Messages(_) => {}
        }
    }

    /// Takes note of bytes that went out as they came.
    pub fn passed(&mut self, bytes: &[u8]) {
        match &mut self.form {
            Form::Responses(events) => events.passed(bytes),
            Form::Chat(_) | Form::Messages(_) => {}
        }
    }

    /// Writes what comes before the first content. The first event does it too: whoever has the token counts of the
    /// prompt by then pushes them first.
    pub fn start(&mut self, out: &mut BytesMut) {
        match &mut self.form {
            Form::Chat(chunks) => chunks.start(out),
            Form::Messages(events) => events.start(out),
            Form::Responses(events) => events.start(out),
        }
    }

    /// Writes an event. `Finish` writes the dialect's whole ending, with the last token counts; nothing follows it.
    pub fn push(&mut self, event: &ReplyEvent, out: &mut BytesMut) {
        if self.over {
            return;
        }
        self.over = matches!(event, ReplyEvent::Finish(_));
        match &mut self.form {
            Form::Chat(chunks) => chunks.push(event, out),
            Form::Messages(events) => events.push(event, out),
            Form::Responses(events) => events.push(event, out),
        }
    }

    /// Writes that the answer failed: an error event, and never a normal end. Nothing follows it.
    pub fn fail(&mut self, error: &ErrorBody, out: &mut BytesMut) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        match &mut self.form {
            Form::Chat(_) => Chunks::fail(error, out),
            Form::Messages(_) => messages::Events::fail(error, out),
            Form::Responses(events) => events.fail(error, out),
        }
    }

    /// Writes something that clients pass over.
    pub fn keep_alive(&self, out: &mut BytesMut) {
        match &self.form {
            Form::Chat(_) | Form::Responses(_) => put_comment(out),
            Form::Messages(events) => events.keep_alive(out),
        }
    }

    /// Whether the ending was written.
    pub fn is_over(&self) -> bool {
        self.over
    }
}
