//! Connections, and carrying out steps on them.

use super::dialect::{Asked, Dialect, Frame};
use super::http::{Request, chunk, head, read_request};
use super::step::{Act, Answer, Respond, Step};
use super::{Attempt, Shared, key_hash};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Headers that carry a key: kept out of the log.
const KEY_HEADERS: &[&str] =
    &["authorization", "api-key", "x-api-key", "x-goog-api-key", "x-amz-security-token"];

/// Accepts until it is aborted; its connections end with it.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Out of file handles and the like: the client sees it, the script need not.
                let Ok((stream, _)) = accepted else { continue };
                let shared = Arc::clone(&shared);
                number += 1;
                connections.spawn(async move {
                    let (buffer, entries) = (Vec::new(), Vec::new());
                    let mut connection = Connection { number, stream, shared, buffer, entries };
                    // A client that breaks off is what tests do; the log says so.
                    let abandoned = connection.serve().await.is_err();
                    connection.close(abandoned);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// What follows a step.
#[derive(PartialEq, Eq)]
enum Next {
    KeepAlive,
    Close,
}

struct Connection {
    number: u64,
    stream: TcpStream,
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    /// Places in the log of what came on this connection.
    entries: Vec<usize>,
}

impl Connection {
    async fn serve(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        loop {
            match read_request(&mut self.stream, &mut self.buffer).await {
                Ok(Some(request)) => {
                    if self.answer(request).await? == Next::Close {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    if error.kind() == io::ErrorKind::InvalidData {
                        // What servers say to a TLS handshake on a plain port.
                        self.stream.write_all(&head(400, &[])).await?;
                    }
                    return Err(error);
                }
            }
        }
    }

    fn close(&self, abandoned: bool) {
        let now = self.shared.clock.now();
        self.shared.update(|state| {
            for entry in &self.entries {
                if let Some(attempt) = state.log.get_mut(*entry) {
                    attempt.closed_at = attempt.closed_at.or(Some(now));
                }
            }
            if let Some(attempt) = self.entries.last().and_then(|entry| state.log.get_mut(*entry)) {
                attempt.abandoned = abandoned;
            }
        });
    }

    async fn answer(&mut self, request: Request) -> io::Result<Next> {
        let shared = Arc::clone(&self.shared);
        let read = shared.dialects.iter().find_map(|dialect| Some((dialect, dialect.read(&request)?)));
        let Some((dialect, asked)) = read else {
            let none = r#"{"error":{"message":"no such endpoint","type":"invalid_request_error"}}"#;
            self.log(request, &Asked::default(), "no such endpoint");
            let respond = Respond::new(404).header("content-type", "application/json").body(none);
            return self.perform(respond_acts(&respond)).await;
        };
        let step = self.next_step(&asked);
        self.log(request, &asked, &describe(&step));
        let acts = match &step {
            Step::Answer(answer) if asked.stream => stream_acts(dialect.as_ref(), &asked, answer),
            Step::Answer(answer) => complete_acts(dialect.as_ref(), &asked, answer),
            Step::Respond(respond) => respond_acts(respond),
            Step::Raw(acts) => acts.iter().cloned().chain([Act::Close]).collect(),
        };
        self.perform(acts).await
    }

    fn next_step(&self, asked: &Asked) -> Step {
        let key = asked.key.as_deref().map(key_hash);
        let mut state = self.shared.state();
        let fitting = state.scripts.iter_mut().filter(|script| script.on.fits(&asked.model, key.as_deref()));
        let step = fitting.max_by_key(|script| script.on.weight()).and_then(|script| {
            let step = script.steps.get(script.next.min(script.steps.len().saturating_sub(1))).cloned();
            script.next = script.next.saturating_add(1);
            step
        });
        step.unwrap_or_else(|| Step::text(format!("this is {}", asked.model)))
    }

    fn log(&mut self, request: Request, asked: &Asked, step: &str) {
        let attempt = Attempt {
            at: self.shared.clock.now(),
            connection: self.number,
            model: asked.model.clone(),
            key_hash: asked.key.as_deref().map(key_hash),
            stream: asked.stream,
            target: request.target,
            headers: request
                .headers
                .into_iter()
                .filter(|(name, _)| !KEY_HEADERS.contains(&name.as_str()))
                .collect(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
            step: step.to_owned(),
            ..Attempt::default()
        };
        let entry = self.shared.update(|state| {
            state.log.push(attempt);
            state.log.len() - 1
        });
        self.entries.push(entry);
    }

    async fn perform(&mut self, acts: Vec<Act>) -> io::Result<Next> {
        let mut answered = false;
        for act in acts {
            match act {
                // Inside answers, errors have become bytes by now.
                Act::Error(error) => self.stream.write_all(error.as_bytes()).await?,
                Act::Send(bytes) => {
                    self.stream.write_all(&bytes).await?;
                    if !std::mem::replace(&mut answered, true) {
                        self.answered();
                    }
                }
                Act::Wait(pause) => self.wait(pause).await?,
                Act::Stall => return self.until_client_closes().await,
                Act::Close => {
                    self.stream.shutdown().await?;
                    return Ok(Next::Close);
                }
                Act::Reset => {
                    self.stream.set_zero_linger()?;
                    return Ok(Next::Close);
                }
            }
        }
        Ok(Next::KeepAlive)
    }

    fn answered(&self) {
        let now = self.shared.clock.now();
        self.shared.update(|state| {
            if let Some(attempt) = self.entries.last().and_then(|entry| state.log.get_mut(*entry)) {
                attempt.answered_at = Some(now);
            }
        });
    }

    async fn wait(&mut self, pause: Duration) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let until = shared.clock.now().after(pause);
        tokio::select! {
            () = shared.clock.sleep_until(until) => Ok(()),
            gone = self.until_client_closes() => gone.map(|_| ()),
        }
    }

    /// Reads on; never completes with success, because a client that leaves here leaves in the middle.
    async fn until_client_closes(&mut self) -> io::Result<Next> {
        while self.stream.read_buf(&mut self.buffer).await? > 0 {}
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

fn describe(step: &Step) -> String {
    match step {
        Step::Answer(answer) => match answer.acts.as_slice() {
            [] if answer.pieces.is_empty() => "answers with nothing".into(),
            [] => "answers".into(),
            [(pieces, act), ..] => format!("{} after {pieces} pieces", describe_act(act)),
        },
        Step::Respond(respond) => format!("status {}", respond.status),
        Step::Raw(acts) => acts.first().map_or("closes", describe_act).into(),
    }
}

fn describe_act(act: &Act) -> &'static str {
    match act {
        Act::Send(_) => "sends raw bytes",
        Act::Error(_) => "sends an error event",
        Act::Wait(_) => "waits",
        Act::Stall => "falls silent",
        Act::Close => "closes",
        Act::Reset => "resets",
    }
}

fn header(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn pause(pause: Duration) -> Option<Act> {
    (!pause.is_zero()).then_some(Act::Wait(pause))
}

fn respond_acts(respond: &Respond) -> Vec<Act> {
    let mut headers = respond.headers.clone();
    headers.push(header("content-length", respond.body.len().to_string()));
    let mut bytes = head(respond.status, &headers);
    bytes.extend_from_slice(&respond.body);
    pause(respond.delay).into_iter().chain([Act::Send(bytes)]).collect()
}

fn complete_acts(dialect: &dyn Dialect, asked: &Asked, answer: &Answer) -> Vec<Act> {
    let mut answer = answer.clone();
    for (_, act) in &mut answer.acts {
        // A body that is not streamed has no events: the error stands in it as it is.
        if let Act::Error(error) = act {
            *act = Act::Send(error.clone().into_bytes());
        }
    }
    let mut first = dialect.complete(asked, &answer);
    let second = first.split_off(first.len() / 2);
    let (before, inside): (Vec<_>, Vec<_>) =
        answer.acts.iter().cloned().partition(|(pieces, _)| *pieces == 0);
    let sent = |acts: &[(usize, Act)]| -> usize {
        acts.iter().map(|(_, act)| if let Act::Send(bytes) = act { bytes.len() } else { 0 }).sum()
    };
    let length = first.len() + second.len() + sent(&before) + sent(&inside);
    let mut headers = answer.headers.clone();
    headers.push(header("content-type", answer.content_type.as_deref().unwrap_or("application/json")));
    headers.push(header("content-length", length.to_string()));
    pause(answer.delay)
        .into_iter()
        .chain([Act::Send(head(200, &headers))])
        .chain(before.into_iter().map(|(_, act)| act))
        .chain([Act::Send(first)])
        .chain(inside.into_iter().map(|(_, act)| act))
        .chain([Act::Send(second)])
        .collect()
}

fn stream_acts(dialect: &dyn Dialect, asked: &Asked, answer: &Answer) -> Vec<Act> {
    let mut headers = answer.headers.clone();
    headers.push(header("content-type", answer.content_type.as_deref().unwrap_or(dialect.stream_type())));
    headers.push(header("transfer-encoding", "chunked"));
    let mut acts: Vec<Act> =
        pause(answer.delay).into_iter().chain([Act::Send(head(200, &headers))]).collect();
    let frames = dialect.frames(asked, answer);
    let mut content = 0;
    let placed = |acts: &mut Vec<Act>, content: usize| {
        for (_, act) in answer.acts.iter().filter(|(pieces, _)| *pieces == content) {
            acts.push(match act {
                Act::Send(bytes) => Act::Send(chunk(bytes)),
                Act::Error(error) => Act::Send(chunk(&dialect.error_event(error))),
                Act::Wait(_) | Act::Stall | Act::Close | Act::Reset => act.clone(),
            });
        }
    };
    let mut started = false;
    for Frame { kind, bytes } in frames {
        // Acts "after n pieces" come before whatever follows the nth piece.
        if kind != super::FrameKind::Start && !std::mem::replace(&mut started, true) {
            placed(&mut acts, 0);
        }
        if answer.without.contains(&kind) {
            continue;
        }
        acts.extend(pause(answer.drip));
        acts.push(Act::Send(chunk(&bytes)));
        if kind == super::FrameKind::Content {
            content += 1;
            placed(&mut acts, content);
        }
    }
    acts.push(if answer.left_open { Act::Stall } else { Act::Send(chunk(b"")) });
    acts
}
