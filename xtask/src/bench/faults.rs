//! A scripted upstream with faults: the first part of a path says which.

use super::upstream::{REFUSAL, completion, pieces, request, stream, whole};
use super::{io, runtime};
use crate::run::Outcome;
use std::io::Write;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Every fault, by the name of its path and of its provider.
pub(super) const FAULTS: [&str; 8] =
    ["limited", "busy", "broken-server", "reset", "cut", "garbage", "silent", "breaks-off"];
/// It answers.
pub(super) const GOOD: &str = "good";
/// It answers a token at a time, with this between them.
pub(super) const SLOW: &str = "slow";
const PACE: Duration = Duration::from_secs(1);
/// A stream that breaks off has said so many pieces.
const SAID: usize = 6;

/// Prints its address, then serves for ever.
pub(crate) fn main(_args: &[String]) -> Outcome {
    runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| io("bind", error))?;
        println!("{}", listener.local_addr().map_err(|error| io("bind", error))?);
        std::io::stdout().flush().map_err(|error| io("stdout", error))?;
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => if let Ok((tcp, _)) = accepted {
                    let _ = tcp.set_nodelay(true);
                    connections.spawn(connection(tcp));
                },
                Some(_) = connections.join_next() => {}
            }
        }
    })
}

/// The first part of the path of a request.
fn kind(request: &[u8]) -> String {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    String::from_utf8_lossy(line).split('/').nth(1).unwrap_or_default().to_owned()
}

async fn connection(mut tcp: TcpStream) {
    let pieces = pieces();
    let mut read = Vec::with_capacity(4 * 1024);
    while let Some(length) = request(&mut tcp, &mut read).await {
        let asked = read.get(..length).unwrap_or_default();
        let (kind, streamed) = (kind(asked), super::upstream::find(asked, b"\"stream\":true"));
        read.drain(..length);
        let answered = match kind.as_str() {
            "limited" => tcp.write_all(&whole("429 Too Many Requests", REFUSAL)).await,
            "busy" => {
                let body = r#"{"error":{"message":"The server is overloaded","type":"server_error"}}"#;
                tcp.write_all(&whole("503 Service Unavailable", body)).await
            }
            "broken-server" => tcp.write_all(&whole("500 Internal Server Error", "{}")).await,
            "reset" => return,
            "cut" => {
                let answer = whole("200 OK", &completion());
                let half = answer.get(..answer.len() / 2).unwrap_or_default();
                let _ = tcp.write_all(half).await;
                return;
            }
            "garbage" => tcp.write_all(&whole("200 OK", "<html>no</html>")).await,
            "silent" => {
                let _ = tcp.read(&mut [0; 64]).await;
                return;
            }
            "breaks-off" if streamed => {
                let begun: Vec<u8> = pieces.iter().take(SAID).flatten().copied().collect();
                let _ = tcp.write_all(&begun).await;
                return;
            }
            SLOW => slowly(&mut tcp, &pieces).await,
            _ if streamed => stream(&mut tcp, &pieces).await,
            _ => tcp.write_all(&whole("200 OK", &completion())).await,
        };
        if answered.is_err() {
            return;
        }
    }
}

async fn slowly(tcp: &mut TcpStream, pieces: &[Vec<u8>]) -> std::io::Result<()> {
    for piece in pieces {
        tcp.write_all(piece).await?;
        #[expect(clippy::disallowed_methods, reason = "the pace of the script")]
        tokio::time::sleep(PACE).await;
    }
    Ok(())
}
