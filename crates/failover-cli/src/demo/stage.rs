//! One scene on its stage: an upstream, an engine with a store on disk, and a session.

use super::clock::SceneClock;
use super::scenes::{Act, FIRST_KEY, SECOND_KEY, Scene};
use crate::exit::{Exit, Failure, chain};
use crate::show::{DIM, Form, NEXT, Show, cut};
use crate::time;
use failover::provider::{AttemptFailure, ChatRequest, Reply};
use failover::runner::{Answer, RunError};
use failover::session::{ProbePolicy, SessionKey, select_user, status};
use failover::store_sled::SledStore;
use failover::types::{AgentId, Clock, ModelSelector, SessionId};
use failover::{Engine, Setup, Turn};
use failover_testkit::upstream::Upstream;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use tempfile::TempDir;

/// Everything that a scene needs.
pub(crate) struct Stage {
    scene: &'static Scene,
    upstream: Upstream,
    engine: Engine,
    clock: Arc<SceneClock>,
    session: SessionId,
    show: Arc<Show<anstream::AutoStream<std::io::Stdout>>>,
    form: Form,
    _state: TempDir,
}

/// How a scene ended.
pub(crate) struct Report {
    /// What came of it, a line each.
    pub(crate) lines: Vec<String>,
    /// Whether it ended as the scene tells.
    pub(crate) as_told: bool,
    /// The same for machines.
    pub(crate) json: Value,
}

/// What a turn gave, in words and for machines.
#[derive(Default)]
struct Told {
    served: Option<String>,
    text: Option<String>,
    error: Option<String>,
    usable_again_in_ms: Option<u64>,
    notices: Vec<String>,
}

fn broken(what: &str, error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Busy, format!("{what}: {}", chain(error)))
}

impl Stage {
    /// Builds the stage of a scene; nothing of an earlier one is left.
    pub(crate) async fn set(scene: &'static Scene, machine: bool) -> Result<Self, Failure> {
        let clock = Arc::new(SceneClock::new());
        let upstream = Upstream::start(Arc::clone(&clock) as Arc<dyn Clock>)
            .await
            .map_err(|error| broken("cannot listen on loopback", &error))?;
        (scene.script)(&upstream);
        let state =
            TempDir::new().map_err(|error| broken("cannot make a directory for the state", &error))?;
        let store = SledStore::open(state.path().join("state"), Arc::clone(&clock) as Arc<dyn Clock>)
            .map_err(|error| broken("cannot open the store", &error))?;
        let config = config(&upstream.base_url(), scene.keys);
        let loaded = failover::config::load_text("demo.json5", &config)
            .map_err(|error| broken("the demo's config is wrong", &error))?;
        let form = if machine { Form::Kept } else { Form::Lines };
        let show = Arc::new(Show::new(form, anstream::stdout()));
        let built = Engine::builder(loaded)
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .store(Arc::new(store))
            .environment(Arc::new(key))
            .observer(Arc::clone(&show) as _)
            .build();
        let Setup { engine, .. } = built.await.map_err(|error| broken("the demo cannot start", &error))?;
        let session = SessionId::new("demo").map_err(|error| broken("the demo cannot start", &error))?;
        Ok(Self { scene, upstream, engine, clock, session, show, form, _state: state })
    }

    /// Plays it to the end.
    pub(crate) async fn play(self) -> Result<Report, Failure> {
        let mut told = Told::default();
        let mut notices = Vec::new();
        let mut asked = 0;
        for act in self.scene.acts {
            match act {
                Act::Ask => {
                    asked += 1;
                    self.say(&format!("The user asks{}.", if asked > 1 { " again" } else { "" }));
                    told = self.ask().await;
                }
                Act::AskAndPick { during, pick } => {
                    asked += 1;
                    self.say("The user asks.");
                    let (answer, picked) = tokio::join!(self.ask(), self.pick(during, pick));
                    picked?;
                    told = answer;
                }
                Act::Pass(span) => {
                    self.clock.skip(*span);
                    self.say(&format!("{} pass (the demo's clock is put forward).", time::duration(*span)));
                }
                Act::Change(change) => {
                    change(&self.upstream);
                    self.say("The provider is well again.");
                }
            }
            for notice in told.notices.drain(..) {
                self.print(&format!("  {NEXT}told{NEXT:#}   {notice}"));
                notices.push(notice);
            }
        }
        Ok(self.report(told, notices).await)
    }

    fn say(&self, text: &str) {
        self.print(&format!("  {DIM}·{DIM:#}      {text}"));
    }

    fn print(&self, line: &str) {
        if self.form == Form::Lines {
            let mut out = anstream::stdout();
            // A reader that went away is noticed by the scenes' own writes.
            let _ = writeln!(out, "{line}");
        }
    }

    async fn ask(&self) -> Told {
        let request = ChatRequest::prompt("Why is the sky blue?").with_stream(true);
        let turn = Turn::new(request).in_session(self.session.clone());
        match self.engine.chat(&turn).await {
            Ok(Answer { value, model, notices, .. }) => Told {
                served: Some(model.to_string()),
                text: text(value).await,
                notices: notices.iter().map(ToString::to_string).collect(),
                ..Told::default()
            },
            Err(error) => self.untold(&error),
        }
    }

    fn untold(&self, error: &RunError<AttemptFailure>) -> Told {
        let again = error.soonest().map(|at| failover::types::millis(at.since(self.clock.now())));
        Told { error: Some(error.to_string()), usable_again_in_ms: again, ..Told::default() }
    }

    /// Waits until `during` is being asked, then chooses as a person does.
    async fn pick(&self, during: &str, pick: &str) -> Result<(), Failure> {
        self.upstream.until(|log| log.iter().any(|attempt| attempt.model == during)).await;
        let choice: ModelSelector =
            pick.parse().map_err(|error| broken("the demo's pick is wrong", &error))?;
        let key = SessionKey::new(AgentId::main(), self.session.clone());
        let now = self.clock.now();
        let picked =
            self.engine.sessions().update(&key, |entry| Some(select_user(entry, &choice, now))).await;
        picked.map_err(|error| broken("the session cannot be written", &error))?;
        self.say(&format!("Meanwhile the user picks {pick}."));
        Ok(())
    }

    async fn report(&self, told: Told, notices: Vec<String>) -> Report {
        let calls: Vec<(&str, usize)> =
            self.scene.calls.iter().map(|(model, _)| (*model, self.upstream.count(model))).collect();
        let as_told = told.served.as_deref() == self.scene.served && calls == self.scene.calls;
        let key = SessionKey::new(AgentId::main(), self.session.clone());
        let entry = self.engine.sessions().get(&key).await.ok().flatten().unwrap_or_default();
        let session = status(&entry, None, &ProbePolicy::default(), self.clock.now());
        let mut lines = Vec::new();
        match (&told.served, &told.error) {
            (Some(model), _) => {
                lines.push(format!("{model}: “{}”", told.text.as_deref().unwrap_or_default()));
            }
            (None, Some(error)) => lines.extend(error.split("; ").map(|part| cut(part, 70))),
            (None, None) => {}
        }
        if let Some(ms) = told.usable_again_in_ms {
            lines.push(format!("usable again in {}", time::duration(std::time::Duration::from_millis(ms))));
        }
        lines.push(self.scene.lesson.to_owned());
        let json = json!({
            "scene": self.scene.name,
            "title": self.scene.title,
            "asTold": as_told,
            "served": told.served,
            "answer": told.text,
            "error": told.error,
            "usableAgainInMs": told.usable_again_in_ms,
            "notices": notices,
            "calls": calls.iter().map(|(model, count)| ((*model).to_owned(), json!(count))).collect::<serde_json::Map<_, _>>(),
            "session": { "selected": session.selected, "source": session.source, "answering": session.answering },
            "decisions": self.show.take(),
        });
        Report { lines, as_told, json }
    }
}

async fn text(reply: Reply) -> Option<String> {
    match reply {
        Reply::Complete(reply) => Some(reply.text()),
        Reply::Stream(stream) => stream.into_reply().await.ok().map(|reply| reply.text()),
    }
}

/// The demo's keys; they open nothing.
fn key(name: &str) -> Option<String> {
    let value = match name {
        "DEMO_FIRST" => FIRST_KEY,
        "DEMO_SECOND" => SECOND_KEY,
        "DEMO_GROQ" => "demo-groq",
        "DEMO_MISTRAL" => "demo-mistral",
        _ => return None,
    };
    Some(value.to_owned())
}

/// The config, as an operator would write it.
fn config(url: &str, keys: usize) -> String {
    let second =
        if keys > 1 { "'openai:second': { provider: 'openai', key: '${DEMO_SECOND}' }," } else { "" };
    let order = if keys > 1 { "'openai:first', 'openai:second'" } else { "'openai:first'" };
    format!(
        "{{
  auth: {{
    profiles: {{ 'openai:first': {{ provider: 'openai', key: '${{DEMO_FIRST}}' }}, {second} }},
    order: {{ openai: [{order}] }},
  }},
  agents: {{ defaults: {{
    model: {{ primary: 'openai/gpt-5', fallbacks: ['groq/llama', 'mistral/large'] }},
    limits: {{ firstByteMs: 700, idleMs: 5000 }},
  }} }},
  models: {{ providers: {{
    openai: {{ baseUrl: '{url}' }},
    groq: {{ baseUrl: '{url}', apiKey: '${{DEMO_GROQ}}' }},
    mistral: {{ baseUrl: '{url}', apiKey: '${{DEMO_MISTRAL}}' }},
  }} }},
}}"
    )
}
