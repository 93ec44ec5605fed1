//! Requests in a closed loop: each connection sends its next one when it has its answer.

use super::{io, number, runtime, text};
use crate::run::{Faults, Outcome};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};

/// What came of a load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// Answers that were whole and good.
    pub(super) answers: u64,
    /// Answers that were not.
    pub(super) bad: u64,
    /// How long it took, in seconds.
    pub(super) seconds: f64,
    /// Median time to the end of an answer, in microseconds.
    pub(super) median_us: f64,
    /// The 99th of a hundred, in microseconds.
    pub(super) p99_us: f64,
}

/// Length of the message at the start of `read`, its body included; `None` where its head is not whole. A body in
/// chunks is whole when its last chunk is: it has then the length that was read.
pub(super) fn message(read: &[u8]) -> Option<usize> {
    let head = read.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(read.get(..head)?).ok()?;
    for line in text.split("\r\n") {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            return Some(head + value.trim().parse::<usize>().ok()?);
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return if read.ends_with(b"\r\n0\r\n\r\n") { Some(read.len()) } else { Some(usize::MAX) };
        }
    }
    Some(head)
}

/// What clients speak: the path, what the messages are called, what must be said besides, and how a stream ends.
const DIALECTS: [(&str, &str, &str, &[u8]); 3] = [
    ("chat/completions", "messages", "", b"data: [DONE]"),
    ("messages", "messages", r#","max_tokens":1024"#, b"message_stop"),
    ("responses", "input", "", b"response.completed"),
];

/// The one that is asked for with `--dialect`, or the first.
fn dialect(args: &[String]) -> Result<(&'static str, &'static str, &'static str, &'static [u8]), Faults> {
    let Ok(name) = text(args, "--dialect") else { return Ok(DIALECTS[0]) };
    let found = DIALECTS.into_iter().find(|(path, ..)| *path == name);
    found.ok_or_else(|| Faults::one(format!("--dialect: nobody speaks {name}")))
}

/// The names that `--dialect` takes.
pub(super) fn dialects() -> impl Iterator<Item = &'static str> {
    DIALECTS.into_iter().map(|(path, ..)| path)
}

fn request(args: &[String], extra: &str) -> Result<(String, Vec<u8>), Faults> {
    let address = text(args, "--address")?.to_owned();
    let model = text(args, "--model")?;
    let (path, messages, more, _) = dialect(args)?;
    let prompt = "The quick brown fox jumps over the lazy dog. ".repeat(10);
    let system = if path == "messages" {
        ""
    } else {
        r#"{"role":"system","content":"You are a helpful assistant."},"#
    };
    let body = format!(
        r#"{{"model":"{model}","{messages}":[{system}{{"role":"user","content":"{prompt}"}}],"temperature":0.7{more}{extra}}}"#
    );
    let length = body.len();
    let head = format!(
        "POST /v1/{path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    Ok((address, [head.into_bytes(), body.into_bytes()].concat()))
}

#[expect(clippy::disallowed_methods, reason = "what is measured is the machine's time")]
fn now() -> Instant {
    Instant::now()
}

/// Sends requests for a while and prints a [`Report`].
pub(crate) fn main(args: &[String]) -> Outcome {
    let streamed = args.iter().any(|arg| arg == "--stream");
    let (address, request) = request(args, if streamed { r#","stream":true"# } else { "" })?;
    let end = if streamed { dialect(args)?.3 } else { b"" };
    let connections: usize = number(args, "--connections")?;
    let span = Duration::from_millis(number(args, "--millis")?);
    let request: Rc<[u8]> = request.into();
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    let begun = now();
    for _ in 0..connections {
        let (address, request) = (address.clone(), Rc::clone(&request));
        tasks.spawn_local_on(async move { client(&address, &request, begun + span, end).await }, &local);
    }
    let done = runtime()?.block_on(local.run_until(tasks.join_all()));
    let seconds = begun.elapsed().as_secs_f64();
    let mut report = Report { seconds, ..Report::default() };
    let mut times = Vec::new();
    for (mut own, bad) in done {
        times.append(&mut own);
        report.bad += bad;
    }
    times.sort_unstable();
    report.answers = times.len() as u64;
    let at = |share: usize| times.get(times.len() * share / 100).map_or(0.0, |nanos| *nanos as f64 / 1_000.0);
    (report.median_us, report.p99_us) = (at(50), at(99));
    let json = serde_json::to_string(&report).map_err(|error| io("report", error))?;
    println!("{json}");
    Ok(())
}

/// Times of the good answers, in nanoseconds, and the number of the others.
async fn client(address: &str, request: &[u8], until: Instant, end: &[u8]) -> (Vec<u64>, u64) {
    let (mut times, mut bad) = (Vec::new(), 0);
    while now() < until {
        let Ok(mut tcp) = TcpStream::connect(address).await else {
            bad += 1;
            continue;
        };
        let _ = tcp.set_nodelay(true);
        let mut read = Vec::with_capacity(32 * 1024);
        while now() < until {
            let begun = now();
            read.clear();
            if tcp.write_all(request).await.is_err() || !answer(&mut tcp, &mut read).await {
                bad += 1;
                break;
            }
            let good =
                read.starts_with(b"HTTP/1.1 200") && (end.is_empty() || super::upstream::find(&read, end));
            if good {
                times.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            } else {
                bad += 1;
            }
        }
    }
    (times, bad)
}

async fn answer(tcp: &mut TcpStream, read: &mut Vec<u8>) -> bool {
    loop {
        match tcp.read_buf(read).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
        if message(read).is_some_and(|length| read.len() >= length) {
            return true;
        }
    }
}

/// Opens streams, prints how many have begun, and holds them until its input ends.
pub(crate) fn hold(args: &[String]) -> Outcome {
    let (address, request) = request(args, r#","stream":true,"metadata":{"hold":"yes"}"#)?;
    let connections: usize = number(args, "--connections")?;
    runtime()?.block_on(async {
        let mut held = Vec::new();
        for _ in 0..connections {
            let mut tcp = TcpStream::connect(&address).await.map_err(|error| io("connect", error))?;
            tcp.write_all(&request).await.map_err(|error| io("write", error))?;
            let mut read = Vec::new();
            while !super::upstream::find(&read, b"word1 ") {
                if tcp.read_buf(&mut read).await.map_err(|error| io("read", error))? == 0 {
                    return Err(Faults::one(format!("no stream: {}", String::from_utf8_lossy(&read))));
                }
            }
            held.push(tcp);
        }
        println!("{}", held.len());
        std::io::stdout().flush().map_err(|error| io("stdout", error))?;
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        Ok(())
    })
}
