//! An HTTP server in front of an [`Engine`](failover::Engine): any OpenAI or Anthropic client points its base URL here
//! and gets failover.

pub mod dialect;
