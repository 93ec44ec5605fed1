//! How an attempt failed, with everything that classification needs.

use crate::Incomplete;
use failover_classify::{AsSignal, Cause, Signal, Surface};
use failover_types::{ProviderId, Secret};
use memchr::memmem;
use std::fmt;
use std::ops::Deref;

/// How much of a body's start is kept: as much as the classifier reads.
pub const BODY_HEAD_BYTES: usize = 64 * 1024;
/// How much of a body's end is kept besides.
pub const BODY_TAIL_BYTES: usize = 4 * 1024;

/// Secrets shorter than this are not struck out: they would match half of every text.
const MIN_SECRET_BYTES: usize = 6;
const STRUCK_OUT: &str = "[redacted]";

/// How far an attempt had come when it failed. Later stages compare greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "whether to repeat an attempt hangs on it")]
pub enum Progress {
    /// Nothing of the request has left this machine.
    #[default]
    NotSent,
    /// The request may have reached the provider, wholly or in part; nothing came back.
    Sent,
    /// A response began.
    Answered,
    /// Content was delivered to the caller.
    Delivered,
}

/// Which time limit ended an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a silent provider is handled unlike a slow connection")]
pub enum Limit {
    /// Name resolution, TCP and TLS took too long.
    Connect,
    /// No response began.
    FirstByte,
    /// A response began, but no content came.
    FirstContent,
    /// Content stopped coming.
    Idle,
    /// The deadline of the whole attempt passed.
    Deadline,
}

impl Limit {
    /// The limit's name in codes and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::FirstByte => "first_byte",
            Self::FirstContent => "first_content",
            Self::Idle => "idle",
            Self::Deadline => "deadline",
        }
    }
}

/// One error of a chain of causes, owned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailureCause {
    /// Its text.
    pub message: String,
    /// Its status, where it has one.
    pub status: Option<u16>,
    /// Its code (`ECONNRESET`), where it has one.
    pub code: Option<String>,
}

impl FailureCause {
    /// A cause that has nothing but a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Adds a code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }
}

/// What is known of a failed attempt. Read it through [`AttemptFailure`].
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailureDetails {
    /// Who failed.
    pub provider: ProviderId,
    /// Where the error came from.
    pub surface: Surface,
    /// HTTP status, where a response came.
    pub status: Option<u16>,
    /// Response headers.
    pub headers: Vec<(String, String)>,
    /// An error code that is not in the body: a transport error's name, the limit that fired, a finish reason.
    pub code: Option<String>,
    /// The raw body or event: its first 64 KiB and its last 4 KiB, known secrets struck out.
    pub body: Vec<u8>,
    /// The chain of causes, outermost first.
    pub causes: Vec<FailureCause>,
    /// How far the attempt had come.
    pub progress: Progress,
    /// The limit that fired, where one did.
    pub limit: Option<Limit>,
    /// What had been delivered, where content had begun.
    pub incomplete: Option<Incomplete>,
}

/// How an attempt failed. Small to move; its fields are those of [`FailureDetails`].
///
/// Neither `Debug` nor `Display` shows the body, header values or causes: those may quote the request.
#[derive(Clone, PartialEq, Eq)]
pub struct AttemptFailure(Box<FailureDetails>);

impl AttemptFailure {
    /// A failure of which only the provider and the surface are known.
    pub fn new(provider: ProviderId, surface: Surface) -> Self {
        Self(Box::new(FailureDetails {
            provider,
            surface,
            status: None,
            headers: Vec::new(),
            code: None,
            body: Vec::new(),
            causes: Vec::new(),
            progress: Progress::NotSent,
            limit: None,
            incomplete: None,
        }))
    }

    /// Adds the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Adds the response headers.
    #[must_use]
    pub fn with_headers(mut self, headers: Vec<(String, String)>) -> Self {
        self.0.headers = headers;
        self
    }

    /// Adds an error code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.0.code = Some(code.into());
        self
    }

    /// Adds the body, cut to its first 64 KiB and last 4 KiB.
    #[must_use]
    pub fn with_body(mut self, body: &[u8]) -> Self {
        let mut capture = BodyCapture::new();
        capture.push(body);
        self.0.body = capture.into_bytes();
        self
    }

    /// Adds the chain of causes, outermost first.
    #[must_use]
    pub fn with_causes(mut self, causes: Vec<FailureCause>) -> Self {
        self.0.causes = causes;
        self
    }

    /// Says how far the attempt had come.
    #[must_use]
    pub fn with_progress(mut self, progress: Progress) -> Self {
        self.0.progress = progress;
        self
    }

    /// Names the limit that fired.
    #[must_use]
    pub fn with_limit(mut self, limit: Limit) -> Self {
        self.0.limit = Some(limit);
        self
    }

    /// Adds what had been delivered; that is the [`Progress::Delivered`] stage.
    #[must_use]
    pub fn with_incomplete(mut self, incomplete: Incomplete) -> Self {
        self.0.incomplete = Some(incomplete);
        self.with_progress(Progress::Delivered)
    }

    /// Strikes known secrets out of body, headers, code and causes. Adapters do this to every failure: providers
    /// quote the key that they refuse.
    #[must_use]
    pub fn without_secrets<'s>(mut self, secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        for secret in secrets {
            let secret = secret.expose();
            if secret.len() < MIN_SECRET_BYTES {
                continue;
            }
            let strike = |text: &mut String| {
                if text.contains(secret) {
                    *text = text.replace(secret, STRUCK_OUT);
                }
            };
            self.0.body = strike_body(std::mem::take(&mut self.0.body), secret.as_bytes());
            self.0.headers.iter_mut().for_each(|(_, value)| strike(value));
            self.0.code.iter_mut().for_each(strike);
            for cause in &mut self.0.causes {
                strike(&mut cause.message);
                cause.code.iter_mut().for_each(strike);
            }
        }
        self
    }

    /// Whether the provider may have seen the request.
    pub fn may_have_been_sent(&self) -> bool {
        self.0.progress >= Progress::Sent
    }
}

/// Strikes a secret out of a body, also where the body was cut in the middle of it.
fn strike_body(mut head: Vec<u8>, secret: &[u8]) -> Vec<u8> {
    let mut tail = head.split_off(head.len().min(BODY_HEAD_BYTES));
    let cut = !tail.is_empty();
    let seam: Vec<u8> = last(&head, secret.len()).iter().chain(first(&tail, secret.len())).copied().collect();
    if memmem::find(&seam, secret).is_some() {
        head.append(&mut tail);
    } else if cut {
        let longest =
            |ends: &dyn Fn(usize) -> bool| (MIN_SECRET_BYTES..secret.len()).rev().find(|at| ends(*at));
        if let Some(at) = longest(&|at| head.ends_with(first(secret, at))) {
            head.truncate(head.len() - at);
            head.extend_from_slice(STRUCK_OUT.as_bytes());
        }
        if let Some(at) = longest(&|at| tail.starts_with(last(secret, at))) {
            tail.splice(..at, STRUCK_OUT.bytes());
        }
    }
    let mut struck = strike_bytes(&head, secret);
    struck.extend(strike_bytes(&tail, secret));
    struck
}

fn first(bytes: &[u8], count: usize) -> &[u8] {
    bytes.split_at(count.min(bytes.len())).0
}

fn last(bytes: &[u8], count: usize) -> &[u8] {
    bytes.split_at(bytes.len().saturating_sub(count)).1
}

fn strike_bytes(mut body: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut struck = Vec::with_capacity(body.len());
    while let Some(found) = memmem::find(body, secret) {
        let (before, rest) = body.split_at(found);
        struck.extend_from_slice(before);
        struck.extend_from_slice(STRUCK_OUT.as_bytes());
        body = last(rest, rest.len() - secret.len());
    }
    struck.extend_from_slice(body);
    struck
}

impl Deref for AttemptFailure {
    type Target = FailureDetails;

    fn deref(&self) -> &FailureDetails {
        &self.0
    }
}

impl AsSignal for AttemptFailure {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let causes: Vec<Cause<'_>> = self
            .causes
            .iter()
            .map(|owned| {
                let mut cause = Cause::new(&owned.message);
                cause.status = owned.status;
                cause.code = owned.code.as_deref();
                cause
            })
            .collect();
        let mut signal = Signal::new(self.surface)
            .with_provider(self.provider.as_str())
            .with_headers(&headers)
            .with_body(&self.body)
            .with_causes(&causes);
        signal.status = self.status;
        signal.code = self.code.as_deref();
        with(&signal)
    }
}

impl fmt::Display for AttemptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.surface {
            Surface::StreamEvent => "failed inside its answer",
            Surface::Transport => "could not be reached or broke off",
            Surface::Cancelled => "was cancelled",
            Surface::Local => "could not be asked",
            Surface::Http | Surface::SdkMessage | _ => "refused or failed",
        };
        write!(f, "{} {how}", self.provider)?;
        if let Some(status) = self.status {
            write!(f, ", status {status}")?;
        }
        if let Some(limit) = self.limit {
            write!(f, ", {} limit", limit.as_str())?;
        }
        Ok(())
    }
}

impl fmt::Debug for AttemptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptFailure")
            .field("provider", &self.provider)
            .field("surface", &self.surface)
            .field("status", &self.status)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .field("causes", &self.causes.len())
            .field("progress", &self.progress)
            .field("limit", &self.limit)
            .field("incomplete", &self.incomplete.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FailureDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailureDetails").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl std::error::Error for AttemptFailure {}

/// Takes a body of any length and keeps its first 64 KiB and its last 4 KiB.
#[derive(Clone, Debug, Default)]
pub struct BodyCapture {
    head: Vec<u8>,
    tail: Vec<u8>,
    seen: u64,
}

impl BodyCapture {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.seen = self.seen.saturating_add(bytes.len() as u64);
        let room = BODY_HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let kept = rest.split_at(rest.len().saturating_sub(BODY_TAIL_BYTES)).1;
        let surplus = (self.tail.len() + kept.len()).saturating_sub(BODY_TAIL_BYTES);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(kept);
    }

    /// How many bytes were pushed.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What was kept.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.head.append(&mut self.tail);
        self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn failure() -> AttemptFailure {
        AttemptFailure::new(ProviderId::new("acme").unwrap(), Surface::Http)
    }

    // spec: P-4
    #[test]
    fn the_signal_has_everything() {
        let failure = failure()
            .with_status(429)
            .with_headers(vec![("retry-after".into(), "7".into())])
            .with_code("quota")
            .with_body(b"{}")
            .with_causes(vec![FailureCause::new("outer").with_code("ECONNRESET")]);
        failure.with_signal(|signal| {
            assert_eq!(signal.provider, Some("acme"));
            assert_eq!((signal.status, signal.code, signal.body), (Some(429), Some("quota"), &b"{}"[..]));
            assert_eq!(signal.headers, [("retry-after", "7")]);
            assert_eq!(signal.causes, [Cause::new("outer").with_code("ECONNRESET")]);
        });
    }

    // spec: C-23
    #[test]
    fn known_secrets_are_struck_out_everywhere() {
        let secrets = [Secret::new("sk-hidden-1234"), Secret::new("abc")];
        let failure = failure()
            .with_body(b"wrong key sk-hidden-1234; sk-hidden-1234, abc")
            .with_headers(vec![("x".into(), "sk-hidden-1234".into())])
            .with_causes(vec![FailureCause::new("sent sk-hidden-1234")])
            .without_secrets(&secrets);
        assert_eq!(failure.body, b"wrong key [redacted]; [redacted], abc", "a short secret is left alone");
        assert_eq!(failure.headers.first().unwrap().1, "[redacted]");
        assert_eq!(failure.causes.first().unwrap().message, "sent [redacted]");
    }

    // spec: C-23
    #[test]
    fn a_secret_at_the_cut_is_struck_out_too() {
        let secret = Secret::new("sk-hidden-1234");
        let at_the_seam = |before: usize, len: usize| {
            let mut body = vec![b' '; len];
            let from = BODY_HEAD_BYTES - before;
            body.splice(from..from + 14, *b"sk-hidden-1234");
            failure().with_body(&body).without_secrets([&secret]).body.clone()
        };
        let whole = at_the_seam(7, BODY_HEAD_BYTES + 100);
        assert_eq!(whole.iter().filter(|byte| **byte != b' ').count(), STRUCK_OUT.len(), "not cut at all");
        let cut = at_the_seam(8, BODY_HEAD_BYTES + BODY_TAIL_BYTES + 100);
        assert_eq!(last(&cut, BODY_TAIL_BYTES + 10), [b"[redacted]", &[b' '; BODY_TAIL_BYTES][..]].concat());
        let mut body = vec![b' '; BODY_HEAD_BYTES + BODY_TAIL_BYTES + 100];
        let from = body.len() - BODY_TAIL_BYTES - 4;
        body.splice(from..from + 14, *b"sk-hidden-1234");
        let cut = failure().with_body(&body).without_secrets([&secret]).body.clone();
        assert!(memmem::find(&cut, b"dden-1234").is_none() && memmem::find(&cut, b"[redacted]").is_some());
    }

    // spec: A-3
    #[test]
    fn printing_shows_no_foreign_text() {
        let failure = failure().with_status(401).with_body(b"the prompt").with_code("the prompt");
        assert!(!format!("{failure:?} {failure}").contains("prompt"));
    }

    #[test_case(10; "short")]
    #[test_case(BODY_HEAD_BYTES + 10; "a little more than the head")]
    #[test_case(1 << 20; "long")]
    fn a_capture_keeps_both_ends_however_it_is_fed(len: usize) {
        let body: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let whole = failure().with_body(&body).body.clone();
        let mut pieces = BodyCapture::new();
        body.chunks(777).for_each(|chunk| pieces.push(chunk));
        assert_eq!(pieces.seen(), len as u64);
        let pieces = pieces.into_bytes();
        assert_eq!(pieces, whole);
        assert_eq!(pieces.len(), len.min(BODY_HEAD_BYTES + BODY_TAIL_BYTES));
        assert!(body.starts_with(pieces.get(..pieces.len().min(BODY_HEAD_BYTES)).unwrap()));
        assert_eq!(pieces.last(), body.last());
    }
}
