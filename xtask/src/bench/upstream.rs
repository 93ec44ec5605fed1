//! A scripted upstream, as cheap as it can be: it shares its core with the load.

use super::{io, runtime};
use crate::run::Outcome;
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Pieces of a streamed answer.
pub(super) const TOKENS: usize = 36;
pub(super) const REFUSAL: &str = r#"{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#;

/// What an address answers.
#[derive(Clone, Copy)]
enum Role {
    Answers,
    Refuses,
}

/// Prints the addresses of one that answers and one that refuses, then serves for ever.
pub(crate) fn main(_args: &[String]) -> Outcome {
    runtime()?.block_on(async {
        let mut served = JoinSet::new();
        let mut line = String::new();
        for role in [Role::Answers, Role::Refuses] {
            let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| io("bind", error))?;
            let address = listener.local_addr().map_err(|error| io("bind", error))?;
            line = format!("{line} {address}");
            served.spawn(listen(listener, role));
        }
        println!("{}", line.trim());
        std::io::stdout().flush().map_err(|error| io("stdout", error))?;
        served.join_all().await;
        Ok(())
    })
}

async fn listen(listener: TcpListener, role: Role) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((tcp, _)) = accepted {
                let _ = tcp.set_nodelay(true);
                connections.spawn(connection(tcp, role));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

pub(super) fn whole(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into()
}

pub(super) fn completion() -> String {
    let text = "All work and no play makes Jack a dull boy. ".repeat(8);
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1764490000,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}","refusal":null}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":21,"completion_tokens":88,"total_tokens":109}}}}"#
    )
}

/// A chunk of HTTP with one event in it.
fn event(data: &str) -> Vec<u8> {
    let frame = format!("data: {data}\n\n");
    format!("{:x}\r\n{frame}\r\n", frame.len()).into()
}

fn token(delta: &str, finish: &str) -> Vec<u8> {
    event(&format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764490000,"model":"m","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]}}"#
    ))
}

/// The pieces of a streamed answer, head first.
pub(super) fn pieces() -> Vec<Vec<u8>> {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut pieces = vec![head.to_vec(), token(r#"{"role":"assistant","content":""}"#, "null")];
    pieces.extend((0..TOKENS).map(|at| token(&format!(r#"{{"content":"word{at} "}}"#), "null")));
    pieces.push(token("{}", r#""stop""#));
    pieces.push(event(
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764490000,"model":"m","choices":[],"usage":{"prompt_tokens":21,"completion_tokens":37,"total_tokens":58}}"#,
    ));
    let mut end = event("[DONE]");
    end.extend_from_slice(b"0\r\n\r\n");
    pieces.push(end);
    pieces
}

async fn connection(mut tcp: TcpStream, role: Role) {
    let answer = whole("200 OK", &completion());
    let refusal = whole("429 Too Many Requests", REFUSAL);
    let pieces = pieces();
    let mut read = Vec::with_capacity(16 * 1024);
    loop {
        let Some(length) = request(&mut tcp, &mut read).await else { return };
        let streamed = find(read.get(..length).unwrap_or_default(), b"\"stream\":true");
        let held = find(read.get(..length).unwrap_or_default(), b"\"hold\"");
        read.drain(..length);
        let written = match role {
            Role::Refuses => tcp.write_all(&refusal).await,
            Role::Answers if held => {
                for piece in pieces.iter().take(4) {
                    if tcp.write_all(piece).await.is_err() {
                        return;
                    }
                }
                // Nothing more comes until the other side leaves.
                let _ = tcp.read(&mut [0; 64]).await;
                return;
            }
            Role::Answers if streamed => stream(&mut tcp, &pieces).await,
            Role::Answers => tcp.write_all(&answer).await,
        };
        if written.is_err() {
            return;
        }
    }
}

/// One write a piece, others in between, as a model's tokens come.
pub(super) async fn stream(tcp: &mut TcpStream, pieces: &[Vec<u8>]) -> std::io::Result<()> {
    for piece in pieces {
        tcp.write_all(piece).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Reads until a whole request is there, and says how long it is.
pub(super) async fn request(tcp: &mut TcpStream, read: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(length) = super::load::message(read)
            && read.len() >= length
        {
            return Some(length);
        }
        if tcp.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
}

pub(super) fn find(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|window| window == what)
}
