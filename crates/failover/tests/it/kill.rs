//! A process that runs fallbacks over a store on disk is killed at random points (requirements S-6, R-12).
//!
//! The victim is this test binary itself. It writes into a log what it is about to do and what it has done: what the
//! system call took over survives the process, so the log says what each session may be on.

#![expect(
    clippy::disallowed_methods,
    reason = "a real process on a real clock, which its parent talks to by variables"
)]

use crate::common::turn;
use async_trait::async_trait;
use failover::classify::{ProviderRules, RuleTable, Surface, standard_tables};
use failover::config::load_text;
use failover::provider::{
    AttemptFailure, AttemptScope, ChatReply, ChatRequest, FinishReason, Part, ProviderAdapter, Reply,
};
use failover::runner::SystemClock;
use failover::session::{SessionEntry, SessionKey, StoredSelection, recover, select_default, select_user};
use failover::store_sled::SledStore;
use failover::types::{AgentId, ModelRef, ProviderId, SessionId, Timestamp};
use failover::{Engine, Setup};
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

const CONFIG: &str = r#"{ agents: { defaults: { model: {
  primary: "acme/a", fallbacks: ["dead/x", "openai/b", "groq/c"],
} } } }"#;
const DIR: &str = "FAILOVER_KILL_DIR";
const ROUNDS: &str = "FAILOVER_KILL_ROUNDS";
const SESSIONS: [&str; 4] = ["s0", "s1", "s2", "s3"];
/// How long a victim may take to start: a loaded machine reads the whole store first.
const PATIENCE: Duration = Duration::from_mins(2);
/// What a person of a session chooses: a model, or what is configured. Only the latter falls back.
const CHOICES: [&str; 6] = ["openai/b", "default", "default", "groq/c", "default", "default"];

/// A number below `most` that nobody can foresee.
fn any(most: u64) -> u64 {
    RandomState::new().hash_one(Instant::now()) % most
}

async fn a_moment() {
    tokio::time::sleep(Duration::from_micros(any(3_000))).await;
}

fn key(session: &str) -> SessionKey {
    SessionKey::new(AgentId::main(), SessionId::new(session).unwrap())
}

fn variable(name: &str) -> Option<String> {
    std::env::vars().find(|(set, _)| set == name).map(|(_, value)| value)
}

/// One line is one write, so that a killed writer leaves whole lines.
#[derive(Clone)]
struct Log(Arc<File>);

impl Log {
    fn open(dir: &Path) -> Self {
        Self(Arc::new(OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap()))
    }

    fn say(&self, line: &str) {
        (&*self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// Answers with some of its calls, and then says so first.
struct Fickle {
    id: ProviderId,
    rules: RuleTable,
    per_cent: u64,
    log: Log,
}

#[async_trait]
impl ProviderAdapter for Fickle {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn rules(&self) -> &dyn ProviderRules {
        &self.rules
    }

    async fn open(&self, request: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        a_moment().await;
        if any(100) >= self.per_cent {
            // It rests nobody, so that every run walks on.
            let failure = AttemptFailure::new(self.id.clone(), Surface::Http).with_status(404);
            return Err(failure.with_body(br#"{"error":{"message":"model not found"}}"#));
        }
        if let Some(Part::Text(session)) = request.messages.last().and_then(|last| last.parts.last()) {
            self.log.say(&format!("answered {session} {}", scope.model));
        }
        Ok(Reply::Complete(ChatReply::new(vec![Part::Text("hello".to_owned())], FinishReason::Stop)))
    }
}

async fn engine(dir: &Path, log: &Log) -> Engine {
    let clock = Arc::new(SystemClock::new());
    let store = SledStore::open(dir.join("state"), Arc::clone(&clock) as _).unwrap();
    let mut builder = Engine::builder(load_text("failover.json5", CONFIG).unwrap())
        .clock(clock)
        .store(Arc::new(store))
        .environment(Arc::new(|_| Some("sk-test".to_owned())));
    for (id, per_cent) in [("acme", 15), ("dead", 0), ("openai", 50), ("groq", 60)] {
        let rules = standard_tables().into_iter().next().unwrap();
        let id = ProviderId::new(id).unwrap();
        builder = builder.adapter(Arc::new(Fickle { id, rules, per_cent, log: log.clone() }));
    }
    let Setup { engine, .. } = builder.build().await.unwrap();
    engine
}

/// Turn after turn.
async fn talk(engine: Engine, session: &'static str) {
    let mut turn = turn(session);
    turn.request = ChatRequest::prompt(session);
    loop {
        // Whether anybody answers is chance.
        drop(engine.chat(&turn).await);
    }
}

/// A person who changes their mind, and a host that counts.
async fn meddle(engine: Engine, session: &'static str, log: Log) {
    let now = Timestamp::from_millis(1);
    for choice in CHOICES.into_iter().cycle() {
        for _ in 0..10 {
            a_moment().await;
            let count = |entry: &SessionEntry| {
                let next = RawValue::from_string((turns(entry) + 1).to_string()).unwrap();
                entry.with_field("turns", Some(next)).ok()
            };
            let (entry, _) = engine.sessions().update(&key(session), count).await.unwrap();
            log.say(&format!("counted {session} {}", turns(&entry)));
        }
        log.say(&format!("choosing {session} {choice}"));
        let choose = |entry: &SessionEntry| {
            Some(match choice.parse() {
                Ok(model) => select_user(entry, &model, now),
                Err(_) => select_default(entry, &"acme/a".parse().unwrap(), now),
            })
        };
        engine.sessions().update(&key(session), choose).await.unwrap();
        log.say(&format!("chose {session} {choice}"));
    }
}

fn turns(entry: &SessionEntry) -> u64 {
    entry.field("turns").map_or(0, |raw| raw.get().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the victim of the test below, and no test by itself"]
async fn victim() {
    let Some(dir) = variable(DIR).map(PathBuf::from) else { return };
    let log = Log::open(&dir);
    let engine = engine(&dir, &log).await;
    let mut tasks = tokio::task::JoinSet::new();
    for session in SESSIONS {
        tasks.spawn(talk(engine.clone(), session));
        tasks.spawn(meddle(engine.clone(), session, log.clone()));
    }
    log.say("ready");
    // Nobody outlives a parent that forgot them.
    tokio::time::sleep(2 * PATIENCE).await;
}

/// Gone when dropped, also where an assertion fails.
struct Victim(Child);

impl Victim {
    fn start(dir: &Path) -> Self {
        let command = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "kill::victim"])
            .env(DIR, dir)
            .stdout(std::process::Stdio::null())
            .spawn();
        Self(command.unwrap())
    }

    /// SIGKILL: nothing of the process runs any more.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What the log says that a session may be on.
#[derive(Debug, Default)]
struct Told {
    /// The choice that was acknowledged, and those that may have come through after it.
    choices: Vec<String>,
    answered: HashSet<ModelRef>,
    counted: u64,
}

impl Told {
    /// Until somebody has chosen, the default holds: a kill may come between saying a first choice and making it.
    fn begin() -> Self {
        Self { choices: vec!["default".to_owned()], ..Self::default() }
    }
}

/// What was told of each session, and how often a victim was ready.
fn read_log(dir: &Path) -> (HashMap<String, Told>, usize) {
    let mut told: HashMap<String, Told> = HashMap::new();
    let mut ready = 0;
    for line in std::fs::read_to_string(dir.join("log")).unwrap_or_default().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, session, value] = words[..] else {
            ready += usize::from(line == "ready");
            continue;
        };
        let told = told.entry(session.to_owned()).or_insert_with(Told::begin);
        match what {
            "choosing" => told.choices.push(value.to_owned()),
            "chose" => told.choices = vec![value.to_owned()],
            "answered" => drop(told.answered.insert(value.parse().unwrap())),
            "counted" => told.counted = value.parse().unwrap(),
            _ => unreachable!("{line}"),
        }
    }
    (told, ready)
}

/// The session is on what somebody chose or on a fallback that answered, and nothing of others was lost.
fn check(session: &str, entry: &SessionEntry, told: &Told) {
    assert_eq!(entry.claims(), [], "{session}: an unproven override is left");
    let may_be = |choice: &str| told.choices.iter().any(|told| told == choice);
    let by_default = may_be("default");
    match entry.selection() {
        StoredSelection::User { model } => {
            assert!(may_be(&model.to_string()), "{session}: {model}, {told:?}");
        }
        StoredSelection::Nothing => assert!(by_default, "{session}: {told:?}"),
        StoredSelection::Auto { model, origin } => {
            assert!(by_default, "{session}: {model} in place of {told:?}");
            assert!(told.answered.contains(&model), "{session}: {model} never answered, {told:?}");
            assert_eq!(origin, "acme/a".parse().ok(), "{session}");
        }
        other @ (StoredSelection::Legacy { .. } | StoredSelection::Unreadable { .. }) => {
            unreachable!("{session}: nobody writes {other:?}")
        }
    }
    let turns = turns(entry);
    assert!(turns == told.counted || turns == told.counted + 1, "{session}: {turns}, {told:?}");
}

// spec: S-6, R-12, S-5
#[tokio::test]
async fn killed_at_random_points_every_session_is_on_a_choice_or_a_proven_fallback() {
    let rounds: usize = variable(ROUNDS).map_or(20, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let (mut in_the_middle, mut overridden, mut round) = (0, 0, 0);
    // Which moment a kill meets is chance: a few rounds may miss every fallback, so it goes on until one was met.
    while round < rounds || (in_the_middle == 0 || overridden == 0) && round < 20 * rounds {
        round += 1;
        let mut victim = Victim::start(dir.path());
        let patience = Instant::now() + PATIENCE;
        while read_log(dir.path()).1 < round {
            assert!(Instant::now() < patience, "the victim does not start");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(any(150))).await;
        victim.kill();

        let (told, _) = read_log(dir.path());
        let log = Log::open(dir.path());
        let engine = engine(dir.path(), &log).await;
        let mut left = Vec::new();
        for (session, told) in &told {
            let entry = engine.sessions().get(&key(session)).await.unwrap().unwrap_or_default();
            in_the_middle += usize::from(!entry.claims().is_empty());
            // What the session's next run would do once the dead run's lease is over.
            let next = recover(&entry, |_| true).unwrap_or_else(|| entry.clone());
            check(session, &next, told);
            overridden += usize::from(matches!(next.selection(), StoredSelection::Auto { .. }));
            left.push((session, told));
        }
        engine.recover_sessions().await.unwrap();
        for (session, told) in left {
            let entry = engine.sessions().get(&key(session)).await.unwrap().unwrap_or_default();
            check(session, &entry, told);
            // A count that came through without being told is told now: the next victim may leave one more.
            log.say(&format!("counted {session} {}", turns(&entry)));
        }
    }
    // Otherwise nothing was put to the test.
    assert!(in_the_middle > 0, "no round was killed in the middle of a fallback");
    assert!(overridden > 0, "no session was left on a proven fallback");
    report(&format!(
        "{round} kills: {in_the_middle} sessions were in the middle of a fallback, {overridden} on a proven one"
    ));
}

#[expect(clippy::print_stdout, reason = "the long run is there to be read")]
fn report(line: &str) {
    println!("{line}");
}
