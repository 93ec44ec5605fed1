//! What is known of a failed call: the input of classification.

use serde::{Deserialize, Serialize};

/// Where an error came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Surface {
    /// A complete HTTP response with an error status, or a 200 with an error body.
    #[default]
    Http,
    /// An error event inside a stream.
    StreamEvent,
    /// The text of a client library's error.
    SdkMessage,
    /// The connection: DNS, TCP, TLS, a cut, a time limit.
    Transport,
    /// This machine: a lock, the disk, a missing program.
    Local,
    /// The caller cancelled.
    Cancelled,
}

/// One error of a chain of causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause<'a> {
    /// Its text.
    pub message: &'a str,
    /// Its status, where it has one.
    pub status: Option<u16>,
    /// Its code (`ECONNRESET`, `insufficient_quota`), where it has one.
    pub code: Option<&'a str>,
}

impl<'a> Cause<'a> {
    /// A cause that has nothing but a text.
    pub fn new(message: &'a str) -> Self {
        Self { message, status: None, code: None }
    }

    /// Adds a status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds a code.
    #[must_use]
    pub fn with_code(mut self, code: &'a str) -> Self {
        self.code = Some(code);
        self
    }
}

/// A failed call, as far as it is known. Everything is optional and borrowed: building one allocates nothing.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Signal<'a> {
    /// The provider's id, in lower case.
    pub provider: Option<&'a str>,
    /// Where the error came from.
    pub surface: Surface,
    /// HTTP status.
    pub status: Option<u16>,
    /// Header names and values; names in any case.
    pub headers: &'a [(&'a str, &'a str)],
    /// An error code that the client had apart from the body.
    pub code: Option<&'a str>,
    /// Body or message text, in any encoding.
    pub body: &'a [u8],
    /// The chain of causes, outermost first.
    pub causes: &'a [Cause<'a>],
}

impl<'a> Signal<'a> {
    /// A signal of which nothing is known but where it came from.
    pub fn new(surface: Surface) -> Self {
        Self { surface, ..Self::default() }
    }

    /// The text of an error, for clients that hand over nothing else.
    pub fn text(message: &'a str) -> Self {
        Self::new(Surface::SdkMessage).with_body(message.as_bytes())
    }

    /// Names the provider.
    #[must_use]
    pub fn with_provider(mut self, provider: &'a str) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Adds the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds the headers.
    #[must_use]
    pub fn with_headers(mut self, headers: &'a [(&'a str, &'a str)]) -> Self {
        self.headers = headers;
        self
    }

    /// Adds an error code.
    #[must_use]
    pub fn with_code(mut self, code: &'a str) -> Self {
        self.code = Some(code);
        self
    }

    /// Adds the body or message text.
    #[must_use]
    pub fn with_body(mut self, body: &'a [u8]) -> Self {
        self.body = body;
        self
    }

    /// Adds the chain of causes, outermost first.
    #[must_use]
    pub fn with_causes(mut self, causes: &'a [Cause<'a>]) -> Self {
        self.causes = causes;
        self
    }
}

/// An error that can say what it knows: what a caller's own error type implements to be classified.
pub trait AsSignal {
    /// Calls `with` with the signal. A callback, so that the signal may borrow from temporaries.
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R;
}
