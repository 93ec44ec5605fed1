//! HTTP for provider adapters: a transport of one method, limits by origin, and server-sent events.
//!
//! Nothing here retries, follows redirects, or decides. An [`Exchange`] is one request and its response; when it
//! fails it hands back an [`AttemptFailure`](failover_provider::AttemptFailure) that keeps everything.

mod answer;
mod client;
mod error;
mod exchange;
mod frames;
mod lines;
mod proxy;
mod replay;
mod segment;
mod sse;
mod target;
mod timer;
mod transport;

pub use answer::{Answered, Decode, Fault, Framing, Passing, receive, receive_native};
pub use client::{BuildError, HyperTransport, TransportConfig};
pub use error::{TransportError, TransportErrorKind};
pub use exchange::{Exchange, MAX_ANSWER_BYTES};
pub use frames::{Glance, Look};
pub use proxy::{ProxyConfig, ProxyError};
pub use replay::replay;
pub use segment::path_segment;
pub use sse::{EventTooLong, MAX_EVENT_BYTES, SseEvent, SseParser};
pub use target::{Target, TargetConfig, TargetError, add_dialect_headers, add_features};
pub use timer::Timer;
pub use transport::{Connected, ResponseBody, Transport};
