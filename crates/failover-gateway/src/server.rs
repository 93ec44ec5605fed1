//! Connections: accepted, bounded, served, and drained.

use crate::gateway::Gateway;
use crate::io::Patient;
use crate::service;
use failover::types::Clock;
use futures_util::FutureExt;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What a client of HTTP/2 says first; no method of HTTP/1 begins like it.
const PREFACE: &[u8] = b"PRI ";
/// How soon a beginning that could still be either protocol is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Pause after the system had no handle for a connection.
const NO_HANDLE: Duration = Duration::from_millis(50);
const MAX_STREAMS: u32 = 256;
/// How often a silent HTTP/2 connection is asked whether anybody is there, and how long the answer may take.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(20));
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// How the drain went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Connections that were still at work when the time was up, and were cut.
    pub cut: usize,
}

/// Serves until `shutdown` completes, then lets what is under way come to its end, for as long as the config allows.
/// State that the store has not seen is written last.
///
/// # Cancel safety
///
/// Not cancel safe: every connection is cut when the future is dropped.
pub async fn serve(
    listener: TcpListener,
    gateway: Gateway,
    shutdown: impl Future<Output = ()> + Send,
) -> Drained {
    let (stop, stopped) = watch::channel(false);
    let local = listener.local_addr().ok();
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let clock = Arc::clone(gateway.clock());
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((tcp, _)) => {
                    if connections.len() >= gateway.state().settings.limits.connections {
                        gateway.metrics().refused_connection();
                        // Best effort: a client that cannot be told sees a closed connection.
                        let _ = tcp.try_write(FULL);
                        continue;
                    }
                    let local = tcp.local_addr().ok().or(local);
                    connections.spawn(connection(tcp, local, gateway.clone(), stopped.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    clock.sleep_until(clock.now().after(NO_HANDLE)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    gateway.begin_drain();
    let _ = stop.send(true);
    let limit = gateway.state().settings.limits.drain;
    let mut end = clock.sleep_until(clock.now().after(limit));
    let mut cut = 0;
    loop {
        tokio::select! {
            ended = connections.join_next() => if ended.is_none() { break },
            () = &mut end => {
                cut = connections.len();
                connections.shutdown().await;
                break;
            }
        }
    }
    drop(end);
    gateway.finish().await;
    Drained { cut }
}

/// Which protocol a client speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// Looks at the first bytes without taking them. `None` where none come in time.
async fn protocol(tcp: &TcpStream, clock: &dyn Clock, limit: Duration) -> Option<Protocol> {
    let look = async {
        let mut first = [0; PREFACE.len()];
        loop {
            let seen = tcp.peek(&mut first).await.ok()?;
            let begun = first.get(..seen).unwrap_or_default();
            if begun.is_empty() {
                return None;
            }
            if begun == PREFACE {
                return Some(Protocol::Http2);
            }
            if !PREFACE.starts_with(begun) {
                return Some(Protocol::Http1);
            }
            clock.sleep_until(clock.now().after(LOOK_AGAIN)).await;
        }
    };
    tokio::select! {
        biased;
        protocol = look => protocol,
        () = clock.sleep_until(clock.now().after(limit)) => None,
    }
}

async fn connection(
    tcp: TcpStream,
    local: Option<SocketAddr>,
    gateway: Gateway,
    mut stopped: watch::Receiver<bool>,
) {
    // Small writes are whole events: they must not wait for each other.
    let _ = tcp.set_nodelay(true);
    let limits = gateway.state().settings.limits;
    let clock = Arc::clone(gateway.clock());
    let spoken = tokio::select! {
        spoken = protocol(&tcp, &*clock, limits.header) => spoken,
        _ = stopped.wait_for(|stop| *stop) => None,
    };
    let Some(spoken) = spoken else { return };
    let _open = gateway.metrics().connection();
    // A server that only this machine reaches asks for the right name; one in the open asks for a token.
    let loopback = local.is_none_or(|local| local.ip().to_canonical().is_loopback());
    let io = Patient::new(tcp, Arc::clone(&clock), limits.write);
    let service = service_fn(|request| service::handle(&gateway, request, loopback).map(Ok::<_, Infallible>));
    // What went wrong with a connection is between it and its client; requests are accounted for one by one.
    match spoken {
        Protocol::Http1 => {
            let mut served = pin!(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(limits.header)
                    .max_buf_size(limits.header_bytes)
                    .serve_connection(io, service)
            );
            tokio::select! {
                biased;
                _ = served.as_mut() => return,
                _ = stopped.wait_for(|stop| *stop) => {}
            }
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
        Protocol::Http2 => {
            let header_bytes = u32::try_from(limits.header_bytes).unwrap_or(u32::MAX);
            let mut served = pin!(
                http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .max_header_list_size(header_bytes)
                    .max_concurrent_streams(MAX_STREAMS)
                    .keep_alive_interval(PING.0)
                    .keep_alive_timeout(PING.1)
                    .serve_connection(io, service)
            );
            tokio::select! {
                biased;
                _ = served.as_mut() => return,
                _ = stopped.wait_for(|stop| *stop) => {}
            }
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}
