//! What deciding costs, and a whole run with everything but the provider.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use failover_auth::CooldownPolicy;
use failover_classify::{AsSignal, Classifier, Signal, Surface};
use failover_runner::health::{Health, Preference};
use failover_runner::plan::{
    AttemptEnd, Candidate, Event, Failed, LeaseAnswer, Plan, RecordAnswer, RunSpec, Slot, Slots, Standing,
    Step,
};
use failover_runner::{Attempt, Runner, SystemClock};
use failover_store::MemoryStore;
use failover_types::{AgentId, Clock, FailoverReason, ProfileId, RunId, Timestamp};
use std::hint::black_box;
use std::sync::Arc;

const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn chain(length: usize) -> Vec<Candidate> {
    (0..length).map(|n| Candidate::new(format!("p{n}/m").parse().unwrap())).collect()
}

fn spec(length: usize) -> RunSpec {
    RunSpec::new(RunId::new("run").unwrap(), chain(length))
}

/// Walks to the last candidate, which answers; gives the number of steps.
fn walk(mut plan: Plan, slots: &Slots, last: usize) -> u32 {
    let mut steps = 0;
    loop {
        let event = match plan.next_step() {
            Step::Decision(_) => continue,
            Step::Done(_) => return steps,
            Step::OrderProfiles(_) => Event::Profiles(slots.clone()),
            Step::Lease(_) => Event::Leased(LeaseAnswer::Granted),
            Step::Attempt(step) if step.candidate == last => Event::Ended(AttemptEnd::Answered),
            Step::Attempt(_) => Event::Ended(AttemptEnd::Failed(Failed::new(FailoverReason::Overloaded))),
            Step::Record(_) => Event::Recorded(RecordAnswer::Changed),
            Step::Claim(_) | Step::Release | Step::Repair(_) | Step::Settle(_) | Step::Wait(_) => {
                return steps;
            }
        };
        plan.handle(T0, event).unwrap();
        steps += 1;
    }
}

fn plan(c: &mut Criterion) {
    let profile: ProfileId = "p0:default".parse().unwrap();
    let slots = Slots { slots: vec![Slot::new(profile, Standing::Ready)], ..Slots::default() };
    for length in [1, 2, 10, 100] {
        let made = Plan::new(spec(length), T0).unwrap();
        let steps = walk(made.clone(), &slots, length - 1);
        c.bench_function(&format!("plan, {length} candidates, {steps} steps"), |b| {
            b.iter_batched(|| made.clone(), |plan| walk(plan, &slots, length - 1), BatchSize::SmallInput);
        });
    }
    let health = Arc::new(Health::new(CooldownPolicy::default(), None));
    let wanted = (&Candidate::new("a/m".parse().unwrap())).into();
    c.bench_function("order profiles, one", |b| {
        b.iter(|| health.slots(black_box(&wanted), &Preference::default(), None, T0));
    });
}

/// An error that costs nothing to make.
struct Down;

impl AsSignal for Down {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        with(
            &Signal::new(Surface::Http)
                .with_status(404)
                .with_body(b"{\"error\":{\"message\":\"no such model\"}}"),
        )
    }
}

fn whole(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let classifier = Arc::new(Classifier::standard().unwrap());
    for (name, fails) in [("whole run", 0), ("whole run, one failover", 1), ("whole run, five failovers", 5)]
    {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let runner = Runner::builder(Arc::clone(&classifier))
            .clock(Arc::clone(&clock))
            .store(Arc::new(MemoryStore::new(clock)), AgentId::main())
            .build();
        let chain = chain(fails + 1);
        c.bench_function(name, |b| {
            b.iter(|| {
                let run = runner.run(chain.clone(), |attempt: Attempt| async move {
                    if usize::try_from(attempt.number).unwrap() <= fails { Err(Down) } else { Ok(()) }
                });
                assert!(runtime.block_on(run).is_ok());
            });
        });
    }
}

criterion_group!(benches, plan, whole);
criterion_main!(benches);
