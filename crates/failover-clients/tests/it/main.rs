//! Real clients over real sockets, against an upstream that misbehaves: their errors tell what was said.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test helpers")]

mod async_openai;
mod aws;
mod genai;
mod reqwest;
mod rig;
mod support;
mod text;
