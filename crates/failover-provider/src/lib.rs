//! What a provider adapter implements, and the neutral types it speaks.
//!
//! An adapter makes **one attempt** and says honestly how it went: no retry, no fallback, no waiting of its own.
//! Whoever calls it ([`ProviderAdapter::open`]) decides what comes next from the [`AttemptFailure`], which keeps
//! everything that classification needs. This crate has no runtime and no HTTP client in its dependencies.

mod adapter;
mod causes;
mod chat;
mod failure;
mod file;
mod ids;
mod json;
mod losses;
mod mapped;
mod native;
mod opaque;
mod reply;
mod scope;

pub use adapter::{LimitProbe, ProbeError, ProviderAdapter, RefreshError, Reset, TokenRefresher};
pub use causes::io_code;
pub use chat::{
    ChatRequest, Effort, Image, ImageSource, Message, Part, ResponseFormat, Role, Tool, ToolCall, ToolChoice,
    ToolResult,
};
pub use failure::{
    AttemptFailure, BODY_HEAD_BYTES, BODY_TAIL_BYTES, BodyCapture, FailureCause, FailureDetails, Limit,
    Progress,
};
pub use file::{File, FileSource};
pub use ids::{IdMap, ToolIds};
pub use json::{Fields, Json, JsonError};
pub use losses::Losses;
pub use mapped::{Mapped, Sampling, Turns};
pub use native::{Dialect, Native, NativeError, NativeFrame, ReadFrame};
pub use opaque::{Bound, DialectHeader, Home, Opaque, Origin};
pub use reply::{
    ChatReply, FinishReason, Incomplete, Loss, LossReason, RECEIVED_CAP_BYTES, Reply, ReplyEvent, ReplyHead,
    ReplyStream, ToolCallDelta, Usage,
};
pub use scope::{AttemptLimits, AttemptScope};
