//! Many runs at once.

use crate::common::{T0, model};
use crate::driver::{ClientError, classifier, run_spec, status, with_clock};
use failover_auth::UserPinMode;
use failover_runner::plan::RunPolicy;
use failover_runner::{Attempt, RunSession, Runner, StoredSession};
use failover_session::{SessionEntry, SessionKey, Sessions, StoredSelection};
use failover_store::{KeyValue, MemoryStore};
use failover_testkit::ManualClock;
use failover_types::{AgentId, Clock, RunId, SessionId};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const RUNS: u64 = 1_000;
const SESSIONS: u64 = 50;
/// The primary is down for two minutes, then up for one.
const DOWN: u64 = 120;
const CYCLE: u64 = 180;

/// Four runs in a row share a session, and overlap in it.
fn session_of(n: u64) -> u64 {
    n / 4 % SESSIONS
}

fn turns(entry: &SessionEntry) -> u64 {
    entry.field("turns").map_or(0, |raw| raw.get().parse().unwrap())
}

/// A thousand runs on fifty sessions within ten minutes, over a primary that comes and goes.
// spec: R-14, S-3, S-5, S-11, A-18
#[tokio::test]
async fn a_flapping_primary_loses_no_update_and_is_hardly_called_while_it_is_down() {
    let clock = Arc::new(ManualClock::new(T0));
    let store: Arc<dyn KeyValue> = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let sessions = Sessions::new(Arc::clone(&store));
    let runner = Runner::builder(classifier())
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .store(Arc::clone(&store), AgentId::main())
        .build();
    let calls = Mutex::new(BTreeMap::<u64, u64>::new());
    let notices = Mutex::new(Vec::new());
    let runs = (0..RUNS).map(|n| {
        let (clock, sessions, runner, calls, notices) = (&clock, &sessions, &runner, &calls, &notices);
        async move {
            clock.sleep_until(T0.after(Duration::from_millis(n * 600))).await;
            let id = SessionId::new(format!("s{}", session_of(n))).unwrap();
            let key = SessionKey::new(AgentId::main(), id);
            let name = format!("r{n}");
            let run = RunId::new(&name).unwrap();
            let open =
                StoredSession::open(sessions.clone(), key.clone(), run, UserPinMode::Strict, clock.now());
            let session = Arc::new(open.await.unwrap());
            let spec = run_spec(&name, &["a/m", "b/m"], &RunPolicy::default());
            let answer = runner
                .start(spec)
                .session(Arc::clone(&session) as Arc<dyn RunSession>)
                .run(|attempt: Attempt| async move {
                    let began = clock.now().since(T0).as_secs();
                    let down = attempt.model == model("a/m") && began % CYCLE < DOWN;
                    let takes = if down { Duration::from_millis(50) } else { Duration::from_secs(3) };
                    clock.sleep_until(clock.now().after(takes)).await;
                    if down {
                        *calls.lock().unwrap().entry(began / CYCLE).or_default() += 1;
                        return Err(status(503));
                    }
                    Ok::<_, ClientError>(attempt.model)
                })
                .await
                .unwrap();
            // An unrelated writer on the same entry.
            let written = sessions
                .update(&key, |entry| {
                    let next = RawValue::from_string((turns(entry) + 1).to_string()).unwrap();
                    entry.with_field("turns", Some(next)).ok()
                })
                .await;
            assert!(written.is_ok());
            notices.lock().unwrap().extend(answer.notices.into_iter().map(|notice| (session_of(n), notice)));
        }
    });
    with_clock(&clock, futures_util::future::join_all(runs)).await;

    for n in 0..SESSIONS {
        let key = SessionKey::new(AgentId::main(), SessionId::new(format!("s{n}")).unwrap());
        let entry = sessions.get(&key).await.unwrap().unwrap();
        assert_eq!(turns(&entry), RUNS / SESSIONS, "no update is lost");
        assert!(entry.claims().is_empty(), "{}", entry.to_json());
        let whole = match entry.selection() {
            StoredSelection::Nothing => true,
            StoredSelection::Auto { model: stands, origin } => {
                stands == model("b/m") && origin == Some(model("a/m"))
            }
            _ => false,
        };
        assert!(whole, "{}", entry.to_json());
        // Moves and returns come in turns, beginning with a move.
        let notices = notices.lock().unwrap();
        let mine: Vec<String> =
            notices.iter().filter(|(of, _)| *of == n).map(|(_, notice)| notice.to_string()).collect();
        for (index, text) in mine.iter().enumerate() {
            assert_eq!(text.contains("cleared"), index % 2 == 1, "{mine:?}");
        }
    }
    // Per outage of two minutes: the windows of 30 s and 60 s, the retry in place, the probes.
    let calls = calls.into_inner().unwrap();
    assert!(calls.len() >= 3 && calls.values().all(|count| *count <= 9), "{calls:?}");
}
