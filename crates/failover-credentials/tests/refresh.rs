//! One call to the provider for all who wait, and what happens when things go wrong.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::panic,
    reason = "test helpers, and tasks that the tests wait for"
)]

mod fakes;
mod shared;

use failover_auth::RefreshPolicy;
use failover_credentials::{CredentialError, Credentials, RefreshFault};
use failover_store::{KeyValue, MemoryStore};
use failover_testkit::ManualClock;
use failover_types::{Clock, Credential, FailoverReason, Secret, SecretSource, Timestamp};
use fakes::{Breakable, Upstream};
use shared::{T0, login, process, profile, provider, store_login, stored_login};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct World {
    clock: Arc<ManualClock>,
    store: Arc<Breakable<MemoryStore>>,
    upstream: Arc<Upstream>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(T0));
        let memory = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let store = Arc::new(Breakable { store: memory, broken: AtomicBool::new(false) });
        Self { clock, store, upstream: Upstream::new() }
    }

    /// Another process on the same store.
    fn process(&self) -> Credentials {
        let store = Arc::clone(&self.store) as Arc<dyn KeyValue>;
        let upstream = Arc::clone(&self.upstream) as _;
        process(store, upstream, RefreshPolicy::default(), Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    /// Turns the clock whenever somebody waits for it, until `work` is done.
    async fn drive<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            done = work => done,
            () = async {
                loop {
                    self.clock.until_waiting(1).await;
                    tokio::task::yield_now().await;
                    self.clock.advance(Duration::from_millis(50));
                }
            } => unreachable!(),
        }
    }
}

fn hour() -> Timestamp {
    T0.after(Duration::from_hours(1))
}

// spec: A-19
#[tokio::test]
async fn eighteen_tasks_in_three_processes_make_one_call() {
    let world = World::new();
    let processes = [world.process(), world.process(), world.process()];
    store_login(&processes[0], login(0, T0)).await;
    let mut tasks = tokio::task::JoinSet::new();
    for credentials in &processes {
        for _ in 0..6 {
            let credentials = credentials.clone();
            tasks.spawn(async move { credentials.resolve(&profile()).await.unwrap() });
        }
    }
    let served = world.drive(tasks.join_all()).await;
    assert_eq!(served.len(), 18);
    assert!(served.iter().all(|resolved| resolved.secret.expose() == "access-1"));
    assert_eq!(world.upstream.calls(), 1);
    assert_eq!(stored_login(&processes[0]).await.refresh.expose(), "refresh-1");
}

// spec: A-19
#[tokio::test]
async fn a_fresh_token_costs_no_call_and_a_rejected_one_is_renewed() {
    let world = World::new();
    let credentials = world.process();
    store_login(&credentials, login(0, hour())).await;
    assert_eq!(credentials.resolve(&profile()).await.unwrap().secret.expose(), "access-0");
    assert_eq!(world.upstream.calls(), 0);
    let rejected = Secret::new("access-0");
    let renewed = credentials.resolve_again(&profile(), Some(&rejected)).await.unwrap();
    assert_eq!((renewed.secret.expose(), world.upstream.calls()), ("access-1", 1));
    let again = credentials.resolve_again(&profile(), Some(&rejected)).await.unwrap();
    assert_eq!(
        (again.secret.expose(), world.upstream.calls()),
        ("access-1", 1),
        "somebody renewed it already"
    );
}

// spec: A-19
#[tokio::test]
async fn the_new_pair_is_stored_before_it_is_given_out() {
    let world = World::new();
    let (credentials, other) = (world.process(), world.process());
    store_login(&credentials, login(0, T0)).await;
    let resolved = credentials.resolve(&profile()).await.unwrap();
    assert_eq!(stored_login(&other).await.access, resolved.secret);
}

// spec: A-19
#[tokio::test]
async fn a_caller_that_leaves_does_not_lose_the_pair() {
    let world = World::new();
    let credentials = world.process();
    store_login(&credentials, login(0, T0)).await;
    world.upstream.gate.forget_permits(1_000);
    let (resolving, name) = (credentials.clone(), profile());
    let leaves = tokio::spawn(async move { resolving.resolve(&name).await });
    // The call is under way once its time limit is being waited for.
    world.clock.until_waiting(1).await;
    leaves.abort();
    assert!(leaves.await.unwrap_err().is_cancelled());
    world.upstream.gate.add_permits(1);
    let resolved = credentials.resolve(&profile()).await.unwrap();
    assert_eq!((resolved.secret.expose(), world.upstream.calls()), ("access-1", 1));
}

// spec: A-19
#[tokio::test]
async fn a_network_failure_keeps_the_old_token_and_the_next_try_renews_it() {
    let world = World::new();
    let credentials = world.process();
    let nearly = T0.after(Duration::from_secs(30));
    store_login(&credentials, login(0, nearly)).await;
    world.upstream.fail_next(503);
    assert_eq!(credentials.resolve(&profile()).await.unwrap().secret.expose(), "access-0", "it still works");
    world.clock.set(nearly);
    world.upstream.fail_next(503);
    let error = credentials.resolve(&profile()).await.unwrap_err();
    assert_eq!(error.reason(), FailoverReason::Timeout);
    assert_eq!(stored_login(&credentials).await, login(0, nearly));
    assert_eq!(credentials.resolve(&profile()).await.unwrap().secret.expose(), "access-1");
}

// spec: A-19
#[tokio::test]
async fn a_silent_provider_is_given_half_a_lease() {
    let world = World::new();
    let credentials = world.process();
    store_login(&credentials, login(0, T0)).await;
    world.upstream.gate.forget_permits(1_000);
    let error = world.drive(credentials.resolve(&profile())).await.unwrap_err();
    assert_eq!(error.reason(), FailoverReason::Timeout);
    assert_eq!(world.clock.now(), T0.after(Duration::from_secs(30)));
}

// spec: A-19
#[tokio::test]
async fn invalid_grant_is_permanent_and_a_plain_refusal_is_not() {
    let world = World::new();
    let credentials = world.process();
    store_login(&credentials, login(7, T0)).await;
    let error = credentials.resolve(&profile()).await.unwrap_err();
    assert!(
        matches!(error, CredentialError::Refresh(RefreshFault::Refused { permanent: true, .. })),
        "{error}"
    );
    assert_eq!(error.reason(), FailoverReason::AuthPermanent);
    world.upstream.fail_next(403);
    assert_eq!(credentials.resolve(&profile()).await.unwrap_err().reason(), FailoverReason::Auth);
}

// spec: A-19
#[tokio::test]
async fn reuse_is_judged_after_reading_what_another_program_stored() {
    let world = World::new();
    let (credentials, other) = (world.process(), world.process());
    store_login(&credentials, login(0, T0)).await;
    // Another program, which knows no leases, spends the token while our call is under way, then stores its pair.
    world.upstream.gate.forget_permits(1_000);
    let resolving = credentials.clone();
    let waits = tokio::spawn(async move { resolving.resolve(&profile()).await.unwrap() });
    world.clock.until_waiting(1).await;
    let generation = world.upstream.spend_elsewhere();
    store_login(&other, login(generation, hour())).await;
    world.upstream.gate.add_permits(1);
    assert_eq!(waits.await.unwrap().secret.expose(), "access-1");
    assert_eq!(world.upstream.calls(), 1);
}

// spec: A-25
#[tokio::test]
async fn a_pair_that_cannot_be_stored_serves_from_memory_until_it_can() {
    let world = World::new();
    let (credentials, other) = (world.process(), world.process());
    store_login(&credentials, login(0, T0)).await;
    world.store.broken.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        assert_eq!(credentials.resolve(&profile()).await.unwrap().secret.expose(), "access-1");
    }
    assert_eq!((stored_login(&credentials).await, world.upstream.calls()), (login(0, T0), 1));
    // The lease is kept all the while, far beyond its own length, so nobody spends the old token again.
    let end = T0.after(Duration::from_mins(10));
    while world.clock.now() < end {
        world.clock.until_waiting(1).await;
        world.clock.advance_to_next();
        tokio::task::yield_now().await;
    }
    let error = world.drive(other.resolve(&profile())).await.unwrap_err();
    assert_eq!((error.reason(), world.upstream.calls()), (FailoverReason::Timeout, 1));
    // In memory it is even renewed again.
    world.clock.advance(Duration::from_hours(1));
    assert_eq!(credentials.resolve(&profile()).await.unwrap().secret.expose(), "access-2");
    world.store.broken.store(false, Ordering::SeqCst);
    let stored = async {
        while stored_login(&other).await.refresh.expose() != "refresh-2" {
            tokio::task::yield_now().await;
        }
    };
    world.drive(stored).await;
    assert_eq!(world.drive(other.resolve(&profile())).await.unwrap().secret.expose(), "access-2");
    assert_eq!(world.upstream.calls(), 2);
}

// spec
#[tokio::test]
async fn what_cannot_be_resolved_says_why() {
    let world = World::new();
    let credentials = world.process();
    let error = credentials.resolve(&profile()).await.unwrap_err();
    assert!(matches!(error, CredentialError::Missing { .. }), "{error}");
    let token = SecretSource::Literal(Secret::new("tok-hidden"));
    let token = Credential::Token { provider: provider(), token, expires: Some(T0) };
    credentials.profiles().put(&profile(), &token, T0).await.unwrap();
    let error = credentials.resolve(&profile()).await.unwrap_err();
    assert!(matches!(error, CredentialError::Expired { .. }), "{error}");
    assert!(!format!("{error:?} {error}").contains("hidden"));
}
