//! A reverse proxy that only forwards: the least that hyper can do.

use super::{io, runtime, text};
use crate::run::Outcome;
use http::Uri;
use http::uri::{Authority, Scheme};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io::Write;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Forwards everything to `--to`, and prints where it listens.
pub(crate) fn main(args: &[String]) -> Outcome {
    let to: Authority = text(args, "--to")?.parse().map_err(|error| io("--to", error))?;
    runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| io("bind", error))?;
        println!("{}", listener.local_addr().map_err(|error| io("bind", error))?);
        std::io::stdout().flush().map_err(|error| io("stdout", error))?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => if let Ok((tcp, _)) = accepted {
                    let _ = tcp.set_nodelay(true);
                    let (client, to) = (client.clone(), to.clone());
                    let service = service_fn(move |request| forward(client.clone(), to.clone(), request));
                    connections.spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(tcp), service));
                },
                Some(_) = connections.join_next() => {}
            }
        }
    })
}

async fn forward(
    client: Client<HttpConnector, Incoming>,
    to: Authority,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(to);
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    client.request(request).await
}
