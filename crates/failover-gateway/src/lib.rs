//! An HTTP server in front of an [`Engine`](failover::Engine): any OpenAI or Anthropic client points its base URL here
//! and gets failover.
//!
//! [`Gateway`] is made from a config and a store and survives reloads; [`serve`] answers on a listener until it is told to
//! stop, and drains. Nothing reaches a client before the first content, so a total failure has a true status; what
//! breaks off later ends as an error event of the client's dialect, never as a normal end.

mod admin;
mod board;
mod body;
mod chat;
pub mod dialect;
mod failure;
mod gateway;
mod gather;
mod guard;
mod held;
mod io;
mod metrics;
mod record;
mod relay;
mod reload;
mod rescue;
mod routes;
mod server;
mod service;
mod settings;
mod telemetry;
mod token;

pub use gateway::{Gateway, GatewayBuilder, GatewayError, Made};
pub use routes::RouteError;
pub use server::{Drained, serve};
pub use token::{NewToken, NoRandomness};
