//! Endurance: thousands of streams at a time, then minutes of mixed faults, with an eye on memory and on every answer.

use super::faults::{FAULTS, GOOD, SLOW};
use super::gateway::{CORES, Server, free_port};
use super::load::message;
use super::process::Process;
use super::upstream::{TOKENS, completion, find};
use super::{io, number, runtime};
use crate::run::{Faults, Outcome, root};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Connections that ask all the time.
const CONNECTIONS: u64 = 48;
/// Clients that send their head a byte at a time.
const SLOW_CLIENTS: usize = 16;
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_mins(1);
/// How much memory may grow from the first part of the minutes to the last one: a tenth, and this many bytes.
const SLACK: f64 = 2.0 * 1_048_576.0;

/// How requests ended, by fault and ending.
type Tally = BTreeMap<(&'static str, &'static str), u64>;

/// `[--minutes N] [--streams N] [--built DIR]`
pub(crate) fn main(args: &[String]) -> Outcome {
    let minutes: f64 = number(args, "--minutes").unwrap_or(10.0);
    let streams: usize = number(args, "--streams").unwrap_or(2_000);
    let release = super::gateway::release(args)?;
    let home = root().join("target/bench-gateway");
    fs::create_dir_all(&home).map_err(|error| io("target", error))?;
    let args = ["bench".to_owned(), "faults".to_owned()];
    let (_upstream, line) = Process::telling(CORES.1, &release.join("xtask"), &args)?;
    let address = format!("127.0.0.1:{}", free_port()?);
    let mut server = Server::failover(&release, &home, &config(line.trim()), &address)?;
    runtime()?.block_on(async {
        many_streams(&server, &address, streams).await?;
        minutes_of_faults(&mut server, &address, Duration::from_secs_f64(minutes * 60.0)).await
    })
}

fn config(upstream: &str) -> String {
    let kinds = || FAULTS.iter().chain([&GOOD, &SLOW]);
    let provider = |kind: &&str| {
        format!(
            r#""{kind}": {{ baseUrl: "http://{upstream}/{kind}/v1", apiKey: "${{BENCH_KEY}}", api: "openai-completions", models: [{{ id: "m" }}] }}"#
        )
    };
    let route = |kind: &&str| format!(r#""{kind}": {{ chain: ["{kind}/m", "{GOOD}/m"] }}"#);
    let (providers, routes): (Vec<String>, Vec<String>) =
        (kinds().map(provider).collect(), kinds().map(route).collect());
    // Of two faults health does not hear, so that every request meets them; the others rest between two tries.
    format!(
        r#"{{ models: {{ providers: {{ {} }} }},
  agents: {{ defaults: {{ limits: {{ firstByteMs: 5000 }} }} }},
  classifier: {{ rules: [{{ id: "bench", reason: "model_not_found", status: 429 }}, {{ id: "bench-2", reason: "model_not_found", status: 503 }}] }},
  gateway: {{ limits: {{ headerMs: 20000 }}, routes: {{ {} }} }} }}"#,
        providers.join(",\n"),
        routes.join(", ")
    )
}

fn head(address: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n{body}")
        .into()
}

fn question(model: &str, streamed: bool) -> String {
    format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"hi"}}],"stream":{streamed}}}"#)
}

/// Reads until the answer is whole. `None` where it never is.
async fn answer(tcp: &mut TcpStream, read: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(length) = message(read).filter(|length| read.len() >= *length) {
            return Some(length);
        }
        match tokio::time::timeout(PATIENCE, tcp.read_buf(read)).await {
            Ok(Ok(read)) if read > 0 => {}
            _ => return None,
        }
    }
}

/// Whether every token is there, in order, and the end.
fn is_whole_stream(read: &[u8]) -> bool {
    let mut rest = read;
    for at in 0..TOKENS {
        let word = format!("\"word{at} \"");
        let Some(found) = rest.windows(word.len()).position(|window| window == word.as_bytes()) else {
            return false;
        };
        rest = rest.get(found + word.len()..).unwrap_or_default();
    }
    find(rest, b"data: [DONE]")
}

/// What an answer is worth.
fn judge(kind: &str, streamed: bool, read: &[u8]) -> &'static str {
    let good = read.starts_with(b"HTTP/1.1 200");
    match (good, streamed) {
        (true, true) if is_whole_stream(read) => "answered",
        // Its beginning had been passed on, so that nobody else could answer; the client is told.
        (true, true) if kind == "breaks-off" && find(read, b"\"error\"") => "broke off, and said so",
        (true, false) if read.ends_with(completion().as_bytes()) => "answered",
        _ => "WRONG",
    }
}

async fn many_streams(server: &Server, address: &str, count: usize) -> Outcome {
    let before = server.process.memory()?;
    let begun = now();
    let mut clients = JoinSet::new();
    for _ in 0..count {
        let address = address.to_owned();
        clients.spawn(async move {
            let mut tcp = TcpStream::connect(&address).await.ok()?;
            tcp.write_all(&head(&address, &question(SLOW, true))).await.ok()?;
            let mut read = Vec::new();
            while !find(&read, b"\"word0 \"") {
                tokio::time::timeout(PATIENCE, tcp.read_buf(&mut read))
                    .await
                    .ok()?
                    .ok()
                    .filter(|read| *read > 0)?;
            }
            let first = now();
            answer(&mut tcp, &mut read).await?;
            let whole = is_whole_stream(&read);
            if !whole {
                println!(
                    "no whole stream: {}",
                    String::from_utf8_lossy(&read).chars().take(400).collect::<String>()
                );
            }
            whole.then(|| (first, now()))
        });
    }
    let (mut whole, mut most) = (Vec::new(), 0.0_f64);
    while let Some(ended) = clients.join_next().await {
        most = most.max(server.process.memory()?);
        whole.extend(ended.ok().flatten());
    }
    let last_begun = whole.iter().map(|(first, _)| *first).max().unwrap_or(begun);
    let at_once = whole.iter().filter(|(_, ended)| *ended >= last_begun).count();
    println!(
        "{count} streams: {} whole, {at_once} of them open at once, {:.1} s; memory {:.1} MiB before, {:.1} MiB at most, {:.1} KiB a stream",
        whole.len(),
        begun.elapsed().as_secs_f64(),
        before / 1_048_576.0,
        most / 1_048_576.0,
        (most - before) / 1_024.0 / count as f64,
    );
    if whole.len() < count || at_once < count {
        return Err(Faults::one("not every stream came whole, and all at once"));
    }
    Ok(())
}

async fn minutes_of_faults(server: &mut Server, address: &str, span: Duration) -> Outcome {
    let until = now() + span;
    let mut clients = JoinSet::new();
    for seed in 0..CONNECTIONS {
        clients.spawn(client(address.to_owned(), seed, until));
    }
    for _ in 0..SLOW_CLIENTS {
        clients.spawn(slow_client(address.to_owned(), until));
    }
    let mut samples = Vec::new();
    while now() < until {
        pause(Duration::from_secs(1)).await;
        samples.push(server.process.memory()?);
        if !server.process.lives() {
            return Err(Faults::one("the server is gone"));
        }
    }
    let mut tally = Tally::new();
    for (what, count) in clients.join_all().await.into_iter().flatten() {
        *tally.entry(what).or_default() += count;
    }
    println!("\n| fault | ending | requests |\n| --- | --- | ---: |");
    for ((kind, ending), count) in &tally {
        println!("| {kind} | {ending} | {count} |");
    }
    // The first fifth warms up: pools fill, health learns.
    let fifth = samples.len() / 5;
    let part = |at: usize| {
        let part = samples.iter().skip(at * fifth).take(fifth.max(1)).copied();
        super::gateway::median(part.collect()).unwrap_or_default()
    };
    let parts: Vec<f64> = (0..5).map(part).collect();
    let shown: Vec<String> = parts.iter().map(|bytes| format!("{:.1}", bytes / 1_048_576.0)).collect();
    println!("\nmemory, medians of the five fifths of {:.0} s: {} MiB", span.as_secs_f64(), shown.join(", "));
    if tally.keys().any(|(_, ending)| *ending == "WRONG" || *ending == "LOST") {
        return Err(Faults::one("answers were wrong or lost"));
    }
    match parts.as_slice() {
        [_, early, .., late] if *late > early * 1.1 + SLACK => Err(Faults::one("memory grows")),
        _ => Ok(()),
    }
}

/// Asks by turns for everything, in an order of its own; leaves now and then, and sends nonsense.
async fn client(address: String, seed: u64, until: Instant) -> Tally {
    let mut tally = Tally::new();
    let mut turn = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut open: Option<TcpStream> = None;
    while now() < until {
        turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let roll = turn >> 33;
        let kinds = FAULTS.len() as u64 + 2;
        let kind = FAULTS.get((roll % kinds) as usize).copied().unwrap_or(GOOD);
        let streamed = (roll / kinds).is_multiple_of(2);
        let ending = match (roll / kinds / 2) % 64 {
            0 => nonsense(&address, roll).await,
            1 | 2 => leave(&address, kind).await,
            _ => ask(&mut open, &address, kind, streamed).await,
        };
        *tally.entry((kind, ending)).or_default() += 1;
    }
    tally
}

async fn ask(open: &mut Option<TcpStream>, address: &str, kind: &str, streamed: bool) -> &'static str {
    let Some(mut tcp) = (match open.take() {
        Some(tcp) => Some(tcp),
        None => TcpStream::connect(address).await.ok(),
    }) else {
        return "LOST";
    };
    let mut read = Vec::with_capacity(4 * 1024);
    if tcp.write_all(&head(address, &question(kind, streamed))).await.is_err()
        || answer(&mut tcp, &mut read).await.is_none()
    {
        return "LOST";
    }
    *open = Some(tcp);
    judge(kind, streamed, &read)
}

/// Goes away in the middle of an answer.
async fn leave(address: &str, kind: &str) -> &'static str {
    let Ok(mut tcp) = TcpStream::connect(address).await else { return "LOST" };
    let _ = tcp.write_all(&head(address, &question(kind, true))).await;
    let _ = tokio::time::timeout(Duration::from_millis(5), tcp.read(&mut [0; 64])).await;
    "left"
}

/// Sends what is no request, and must be told so or be left.
async fn nonsense(address: &str, roll: u64) -> &'static str {
    let all: [&[u8]; 4] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1\r\n\r\n{",
        b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    ];
    let Ok(mut tcp) = TcpStream::connect(address).await else { return "LOST" };
    let _ = tcp.write_all(all.get((roll >> 20) as usize % all.len()).unwrap_or(&all[0])).await;
    let mut read = Vec::new();
    match tokio::time::timeout(PATIENCE, tcp.read_to_end(&mut read)).await {
        Ok(_) if !read.starts_with(b"HTTP/1.1 2") => "nonsense was refused",
        _ => "WRONG",
    }
}

/// Sends a head a byte at a time until it is cut off, again and again.
async fn slow_client(address: String, until: Instant) -> Tally {
    let mut tally = Tally::new();
    while now() < until {
        let Ok(mut tcp) = TcpStream::connect(&address).await else { continue };
        for byte in b"POST /v1/chat/completions HTTP/1.1\r\nx-slow: ".iter().chain([b'x'; 512].iter()) {
            if now() >= until || tcp.write_all(&[*byte]).await.is_err() {
                break;
            }
            pause(Duration::from_millis(200)).await;
        }
        let ending = if now() < until { "slow head was cut off" } else { "slow head, at the end" };
        *tally.entry(("slow client", ending)).or_default() += 1;
    }
    tally
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> Instant {
    Instant::now()
}
