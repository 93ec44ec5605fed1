//! Mapping there and back: what a request says arrives in the vendor's words, and what the vendor answers comes back,
//! for conversations and answers that nobody wrote by hand.

use super::{Report, Subject, World};
use crate::upstream::{Answer, Piece, Step};
use failover_provider::{
    AttemptLimits, ChatReply, ChatRequest, Image, ImageSource, Json, Message, Part, Reply, Role, Tool,
    ToolCall, ToolResult,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::fmt::Debug;

/// Conversations, and answers, that one run of the suite tries.
const ROUNDS: u32 = 24;
/// How often a failing one is made smaller.
const MAX_SHRINKS: u32 = 200;

/// What a request says, whoever's words it is written in. Texts of one speaker that follow each other are one.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Heard {
    /// Standing instructions, joined.
    pub system: String,
    /// The conversation.
    pub turns: Vec<Said>,
    /// Name, description and schema of each tool.
    pub tools: Vec<(String, Option<String>, Value)>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Bound on generated tokens.
    pub max_tokens: Option<u64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
}

/// One thing said.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Said {
    /// By the user.
    User(String),
    /// By the model.
    Assistant(String),
    /// An image, in base64.
    Image(String),
    /// The model's call of a tool: name and arguments.
    Call(String, Value),
    /// The result of the nth call of the conversation, from 0.
    Result(Option<usize>, String),
}

impl Heard {
    /// Adds to the standing instructions.
    pub fn system(&mut self, text: &str) {
        self.system.push_str(&plain(text));
    }

    /// Adds a text of the user, or of the model.
    pub fn text(&mut self, user: bool, text: &str) {
        let text = plain(text);
        if text.is_empty() {
            return;
        }
        match (self.turns.last_mut(), user) {
            (Some(Said::User(said)), true) | (Some(Said::Assistant(said)), false) => said.push_str(&text),
            (_, true) => self.turns.push(Said::User(text)),
            (_, false) => self.turns.push(Said::Assistant(text)),
        }
    }
}

/// Line breaks are how some vendors join texts.
fn plain(text: &str) -> String {
    text.replace('\n', "")
}

fn text() -> impl Strategy<Value = String> {
    "[a-z\"\\\\{}é漢🦀]{1,12}"
}

fn arguments() -> impl Strategy<Value = Value> {
    let value =
        prop_oneof![any::<i32>().prop_map(Value::from), text().prop_map(Value::from), Just(Value::Null)];
    vec(("[a-z]{1,6}", value), 0..3).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// What one turn holds: the speaker's texts, images, and calls with their results.
#[derive(Clone, Debug)]
enum Turn {
    System(String),
    User(Vec<String>, Vec<String>),
    Assistant(Vec<String>, Vec<(String, Value, String)>),
}

fn turn() -> impl Strategy<Value = Turn> {
    let call = ("[a-z_]{1,10}", arguments(), text());
    prop_oneof![
        text().prop_map(Turn::System),
        (vec(text(), 1..3), vec("[A-Za-z0-9]{4}", 0..2))
            .prop_map(|(texts, images)| Turn::User(texts, images)),
        (vec(text(), 1..3), vec(call, 0..3)).prop_map(|(texts, calls)| Turn::Assistant(texts, calls)),
    ]
}

fn request() -> impl Strategy<Value = ChatRequest> {
    let tool = ("[a-z_]{1,10}", option::of(text()));
    let sampling = (option::of(0_u8..=8), option::of(1_u8..=8), option::of(1_u64..4000), vec(text(), 0..3));
    (vec(turn(), 1..7), vec(tool, 0..3), sampling).prop_map(|(turns, tools, sampling)| {
        let mut request = ChatRequest::prompt("begin");
        let mut calls = 0;
        for turn in turns {
            request.messages.extend(messages(turn, &mut calls));
        }
        let schema = json!({"type": "object", "properties": {"at": {"type": "integer"}}});
        for (at, (name, description)) in tools.into_iter().enumerate() {
            let Ok(schema) = Json::of(&schema) else { continue };
            let mut tool = Tool::new(format!("{name}{at}"), schema);
            tool.description = description;
            request.tools.push(tool);
        }
        let (temperature, top_p, max_tokens, stop) = sampling;
        request.temperature = temperature.map(|eighths| f64::from(eighths) / 8.0);
        request.top_p = top_p.map(|eighths| f64::from(eighths) / 8.0);
        request.max_tokens = max_tokens;
        request.stop = stop;
        request
    })
}

fn messages(turn: Turn, calls: &mut usize) -> Vec<Message> {
    let texts = |texts: Vec<String>| texts.into_iter().map(Part::Text).collect::<Vec<_>>();
    match turn {
        Turn::System(text) => vec![Message::text(Role::System, text)],
        Turn::User(said, images) => {
            let mut parts = texts(said);
            parts.extend(images.into_iter().map(|data| {
                Part::Image(Image::new(ImageSource::Base64 { media_type: "image/png".into(), data }))
            }));
            vec![Message::new(Role::User, parts)]
        }
        Turn::Assistant(said, made) => {
            let (mut parts, mut results) = (texts(said), Vec::new());
            for (name, arguments, result) in made {
                *calls += 1;
                let id = format!("call|{calls}");
                parts.push(Part::ToolCall(ToolCall::new(&id, name, arguments.to_string())));
                results.push(Message::new(Role::Tool, vec![Part::ToolResult(ToolResult::text(id, result))]));
            }
            let said = Message::new(Role::Assistant, parts);
            std::iter::once(said).chain(results).collect()
        }
    }
}

/// What a neutral request says.
fn heard(request: &ChatRequest) -> Heard {
    let mut heard = Heard::default();
    let mut calls: Vec<&str> = Vec::new();
    for message in &request.messages {
        for part in &message.parts {
            match part {
                Part::Text(text) if message.role == Role::System => heard.system(text),
                Part::Text(text) => heard.text(message.role == Role::User, text),
                Part::Image(image) => {
                    if let ImageSource::Base64 { data, .. } = &image.source {
                        heard.turns.push(Said::Image(data.clone()));
                    }
                }
                Part::ToolCall(call) => {
                    calls.push(&call.id);
                    let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
                    heard.turns.push(Said::Call(call.name.clone(), arguments));
                }
                Part::ToolResult(result) => {
                    let of = calls.iter().position(|id| *id == result.call_id);
                    let texts: String = result.parts.iter().filter_map(text_of).collect();
                    heard.turns.push(Said::Result(of, plain(&texts)));
                }
                Part::File(_) | Part::Reasoning { .. } | Part::Opaque(_) => {}
            }
        }
    }
    let schema = |tool: &Tool| serde_json::from_str(tool.parameters.as_str()).unwrap_or_default();
    heard.tools = request
        .tools
        .iter()
        .map(|tool| (tool.name.clone(), tool.description.clone(), schema(tool)))
        .collect();
    heard.temperature = request.temperature;
    heard.top_p = request.top_p;
    heard.max_tokens = request.max_tokens;
    heard.stop.clone_from(&request.stop);
    heard
}

fn text_of(part: &Part) -> Option<&str> {
    if let Part::Text(text) = part { Some(text) } else { None }
}

/// Tries values of a strategy; a failing one is made smaller before it is reported.
async fn each<T: Debug + Clone, F>(strategy: impl Strategy<Value = T>, check: F) -> Report
where
    F: AsyncFn(&T) -> Report,
{
    let mut runner = TestRunner::deterministic();
    for _ in 0..ROUNDS {
        let mut tree = strategy.new_tree(&mut runner).map_err(|reason| reason.to_string())?;
        let Err(mut fault) = check(&tree.current()).await else { continue };
        let mut smallest = tree.current();
        let mut more = tree.simplify();
        for _ in 0..MAX_SHRINKS {
            if !more {
                break;
            }
            more = match check(&tree.current()).await {
                Ok(()) => tree.complicate(),
                Err(smaller) => {
                    (fault, smallest) = (smaller, tree.current());
                    tree.simplify()
                }
            };
        }
        return Err(format!("{fault}, for {smallest:?}"));
    }
    Ok(())
}

/// The request of the vendor says what the neutral one says.
#[expect(clippy::future_not_send, reason = "it stays on its test's thread")]
pub(super) async fn asks_for_what_is_asked(subject: &Subject) -> Report {
    let world = World::new(subject, Answer::text(["x"])).await?;
    let dialect = (subject.dialect)();
    each(request(), async |request: &ChatRequest| {
        let untouched = request.clone();
        let opened = world.open_with(request, AttemptLimits::none()).await;
        if *request != untouched {
            return Err("the request was changed".into());
        }
        let opened = opened.map_err(|failure| format!("not sent: {failure:?}"))?;
        let body = world.upstream.log().pop().map(|attempt| attempt.body).unwrap_or_default();
        let body: Value = serde_json::from_str(&body).map_err(|error| format!("no JSON: {error}"))?;
        // A dialect that does not read requests has nothing to say to it.
        let Some(got) = dialect.heard(&body) else { return Ok(()) };
        let mut expected = heard(request);
        let losses = match &opened {
            Reply::Complete(reply) => &reply.head.losses,
            Reply::Stream(stream) => &stream.head().losses,
        };
        // What an API has no place for is reported instead.
        if losses.iter().any(|loss| loss.what == "stop") {
            expected.stop.clear();
        }
        if got == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {got:?} in {body}")) }
    })
    .await
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let call = ("[a-zA-Z0-9]{9}", "[a-z_]{1,10}", arguments())
        .prop_map(|(id, name, arguments)| Piece::ToolCall { id, name, arguments: arguments.to_string() });
    (option::of(text()), vec(text(), 1..4), vec(call, 0..3)).prop_map(|(thought, texts, calls)| {
        let thought = thought.map(Piece::Reasoning);
        thought.into_iter().chain(texts.into_iter().map(Piece::Text)).chain(calls).collect()
    })
}

/// What of an answer every vendor has: thought, text, calls.
fn told(parts: &[Part]) -> (String, String, Vec<(String, Value)>) {
    let (mut thought, mut said, mut calls) = (String::new(), String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Reasoning { text, .. } => thought.push_str(text),
            Part::Text(text) => said.push_str(text),
            Part::ToolCall(call) => {
                let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
                calls.push((call.name.clone(), arguments));
            }
            Part::Image(_) | Part::File(_) | Part::ToolResult(_) | Part::Opaque(_) => {}
        }
    }
    (thought, said, calls)
}

/// The neutral answer says what the vendor's says, whole and in pieces.
#[expect(clippy::future_not_send, reason = "it stays on its test's thread")]
pub(super) async fn tells_what_is_answered(subject: &Subject) -> Report {
    each(pieces(), async |pieces: &Vec<Piece>| {
        let (mut thought, mut said, mut calls) = (String::new(), String::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Reasoning(text) => thought.push_str(text),
                Piece::Text(text) => said.push_str(text),
                Piece::ToolCall { name, arguments, .. } => {
                    calls.push((name.clone(), serde_json::from_str::<Value>(arguments).unwrap_or_default()));
                }
            }
        }
        let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
        for stream in [false, true] {
            let step = Step::from(Answer::new(pieces.clone()).finish(finish));
            let world = World::new(subject, step).await?;
            let reply =
                read(world.open(stream).await).await.map_err(|fault| format!("stream {stream}: {fault}"))?;
            let got = told(&reply.parts);
            // Not every dialect shows what was thought.
            if got.1 != said || got.2 != calls || (!got.0.is_empty() && got.0 != thought) {
                return Err(format!("stream {stream}: got {:?}", reply.parts));
            }
            if reply.finish.as_str() != finish {
                return Err(format!("stream {stream}: finish {:?}", reply.finish));
            }
        }
        Ok(())
    })
    .await
}

async fn read(reply: Result<Reply, failover_provider::AttemptFailure>) -> Result<ChatReply, String> {
    match reply {
        Ok(Reply::Complete(reply)) => Ok(reply),
        Ok(Reply::Stream(stream)) => stream.into_reply().await.map_err(|failure| format!("{failure:?}")),
        Err(failure) => Err(format!("{failure:?}")),
    }
}
