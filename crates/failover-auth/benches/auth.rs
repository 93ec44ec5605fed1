//! The order of 8 profiles among 10,000 stored (goal: under 5 µs), and the reducer (goal: under 200 ns).
#![expect(clippy::unwrap_used, reason = "a benchmark")]

use criterion::{Criterion, criterion_group, criterion_main};
use failover_auth::{
    CooldownPolicy, Failure, OrderRequest, Outcome, Profile, ProfileSet, Success, UsageStats, availability,
    next_usage, order,
};
use failover_types::{
    Credential, FailoverReason, ModelRef, ProfileId, ProviderId, Secret, SecretSource, Timestamp,
};
use std::hint::black_box;
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn set() -> ProfileSet {
    let model: ModelRef = "p7/m1".parse().unwrap();
    let limited = Failure::new(&model, FailoverReason::RateLimit, NOW).into();
    let policy = CooldownPolicy::default();
    (0..10_000)
        .map(|n| {
            let provider = ProviderId::new(format!("p{}", n % 1_250)).unwrap();
            let id = ProfileId::new(format!("{provider}:{n}")).unwrap();
            let key = SecretSource::Literal(Secret::new("k"));
            let mut usage =
                next_usage(&UsageStats::default(), &Success::new(&model, NOW).into(), &policy, NOW);
            if n % 3 == 0 {
                usage = next_usage(&usage, &limited, &policy, NOW);
            }
            Profile::new(id, &Credential::ApiKey { provider, key }, usage)
        })
        .collect()
}

fn orders(c: &mut Criterion) {
    let set = set();
    let provider = ProviderId::new("p7").unwrap();
    let robin = OrderRequest::new(&provider, &set, NOW).model(Some("m1"));
    assert_eq!(order(&robin).slots.len(), 8);
    c.bench_function("order/8 of 10,000", |b| b.iter(|| order(black_box(&robin))));
    let listed: Vec<ProfileId> = order(&robin).slots.into_iter().map(|slot| slot.profile).collect();
    let explicit = robin.stored_order(&listed);
    c.bench_function("order/8 listed", |b| b.iter(|| order(black_box(&explicit))));
}

fn reducer(c: &mut Criterion) {
    let policy = CooldownPolicy::default();
    let model: ModelRef = "a/m1".parse().unwrap();
    let other: ModelRef = "a/m2".parse().unwrap();
    let failure: Outcome = Failure::new(&model, FailoverReason::RateLimit, NOW).into();
    let later = NOW.after(Duration::from_secs(5));
    let clean = UsageStats::default();
    let cooling = next_usage(&clean, &failure, &policy, NOW);
    let success: Outcome = Success::new(&model, later).into();
    let widening: Outcome = Failure::new(&other, FailoverReason::RateLimit, later).into();
    let cases = [
        ("first failure", &clean, &failure),
        ("inside a window", &cooling, &failure),
        ("widening", &cooling, &widening),
        ("success", &cooling, &success),
        ("success of a healthy profile", &clean, &success),
    ];
    for (name, stats, outcome) in cases {
        c.bench_function(&format!("reducer/{name}"), |b| {
            b.iter(|| next_usage(black_box(stats), black_box(outcome), &policy, later));
        });
    }
    c.bench_function("availability", |b| b.iter(|| availability(black_box(&cooling), Some("m1"), later)));
}

criterion_group!(benches, orders, reducer);
criterion_main!(benches);
