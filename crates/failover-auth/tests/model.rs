//! The reducer against a naive model of the rules, and the properties that hold whatever happens.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_auth::{
    ClearScope, CooldownPolicy, Deadline, DeadlineKind, Failure, Outcome, Success, UsageStats, WindowClass,
    WindowScope, availability, clear, merge, next_usage, secret_stored,
};
use failover_types::{FailoverReason, ModelRef, ProviderId, Scope, Timestamp};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

const T0: u64 = 1_800_000_000_000;
const YEAR_2100: u64 = 4_102_444_800_000;
const DAY: u64 = 86_400_000;
const SKEW: u64 = 300_000;

#[derive(Clone, Debug)]
enum Event {
    Outcome(Outcome),
    Clear,
    ClearModel(&'static str),
    NewSecret,
}

/// The rules once more, as plainly as they can be written: one map of ends, and numbers.
#[derive(Default)]
struct Naive {
    windows: HashMap<(Option<String>, WindowClass), Entry>,
    errors: u32,
    counts: BTreeMap<FailoverReason, u32>,
    answered: Option<u64>,
    failed: Option<u64>,
}

#[derive(Clone)]
struct Entry {
    until: u64,
    set: u64,
    by_provider: bool,
    reason: FailoverReason,
}

fn plausible(at: Option<u64>, now: u64) -> Option<u64> {
    at.filter(|at| *at <= now.saturating_add(SKEW))
}

fn touches(scope: Option<&str>, model: Option<&str>) -> bool {
    scope.is_none() || scope == model
}

impl Naive {
    fn active(&self, now: u64) -> impl Iterator<Item = (Option<&str>, WindowClass, &Entry)> {
        self.windows
            .iter()
            .filter(move |(_, entry)| now < entry.until && entry.set <= now.saturating_add(SKEW))
            .map(|((scope, class), entry)| (scope.as_deref(), *class, entry))
    }

    fn end_for(&self, model: Option<&str>, now: u64) -> Option<u64> {
        self.active(now).filter(|(scope, ..)| touches(*scope, model)).map(|(_, _, entry)| entry.until).max()
    }

    fn drop_where(&mut self, wanted: impl Fn(Option<&str>, &Entry) -> bool) {
        self.windows.retain(|(scope, _), entry| !wanted(scope.as_deref(), entry));
    }

    fn apply(&mut self, event: &Event, now: u64) {
        match event {
            Event::Outcome(Outcome::Success(success)) => {
                let (model, began) = (success.model.as_deref(), success.started_at.as_millis());
                self.drop_where(|scope, entry| entry.set <= began && touches(scope, model));
                if plausible(self.failed, now).is_none_or(|failed| failed <= began) {
                    self.errors = 0;
                    self.counts.clear();
                }
                self.answered = plausible(self.answered, now).max(Some(now));
            }
            Event::Outcome(Outcome::Failure(failure)) => self.fail(failure, now),
            Event::Clear => {
                self.windows.clear();
                self.errors = 0;
                self.counts.clear();
            }
            Event::ClearModel(name) => {
                self.drop_where(|scope, _| scope == Some(*name));
                if self.active(now).count() == 0 {
                    self.errors = 0;
                    self.counts.clear();
                }
            }
            Event::NewSecret => {
                use FailoverReason::{Auth, AuthPermanent, Billing};
                self.drop_where(|_, entry| matches!(entry.reason, Auth | AuthPermanent | Billing));
                let before = self.counts.len();
                self.counts.retain(|reason, _| !matches!(reason, Auth | AuthPermanent | Billing));
                if self.counts.is_empty() && before > 0 {
                    self.errors = 0;
                }
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "a model is read from top to bottom, against the rules")]
    fn fail(&mut self, failure: &Failure, now: u64) {
        use FailoverReason as Reason;
        let began = failure.started_at.as_millis();
        if self.answered.is_some_and(|answered| answered <= now && began < answered) {
            return;
        }
        let model = failure.model.as_deref();
        let mut scope = match (failure.reason, failure.scope) {
            (_, Scope::Request) => return,
            (Reason::Overloaded, Scope::Model) if model.is_none() => return,
            (_, Scope::Model) => model,
            (_, Scope::Credential | Scope::Provider) => None,
        };
        let hint = failure.deadline.as_ref().filter(|deadline| deadline.until.as_millis() > now);
        let exact = matches!(hint, Some(Deadline { kind: DeadlineKind::Exact(_), .. }));
        let cap = if exact { 31 * DAY } else { DAY };
        let word = hint.map(|deadline| deadline.until.as_millis().min(now.saturating_add(cap)));
        let class = match failure.reason {
            Reason::Billing => WindowClass::Billing,
            Reason::AuthPermanent => WindowClass::AuthPermanent,
            Reason::RateLimit | Reason::Overloaded | Reason::ServerError | Reason::Timeout | Reason::Auth => {
                if exact {
                    WindowClass::Blocked
                } else {
                    WindowClass::Cooling
                }
            }
            Reason::ModelNotFound
            | Reason::Format
            | Reason::ContextOverflow
            | Reason::ContentRefusal
            | Reason::SessionExpired
            | Reason::Aborted
            | Reason::LocalCoordination
            | Reason::EmptyResponse
            | Reason::NoErrorDetails
            | Reason::Unclassified => return,
            unknown => panic!("a reason without a rule: {unknown}"),
        };
        if class == WindowClass::Blocked {
            scope = None;
        }
        let ladder = |errors: u32| match errors {
            0 | 1 => 30_000,
            2 => 60_000,
            _ => 300_000,
        };
        let rung = now.saturating_add(ladder(self.errors));
        let covering = |class: Option<WindowClass>, reason: Option<Reason>| {
            self.active(now)
                .filter(|(covers, c, entry)| {
                    touches(*covers, scope)
                        && class.is_none_or(|class| class == *c)
                        && reason.is_none_or(|r| r == entry.reason)
                })
                .map(|(covers, c, _)| (covers.map(str::to_owned), c))
                .collect::<Vec<_>>()
        };
        // The window that this failure falls into: its own, or a wider one of its kind.
        let own = (scope.map(str::to_owned), class);
        let standing = if class == WindowClass::Cooling {
            let same = covering(Some(class), None).contains(&own).then(|| own.clone());
            same.or_else(|| covering(Some(class), Some(failure.reason)).pop())
        } else {
            let mut kin = covering(Some(class), None);
            kin.sort();
            kin.iter().find(|key| **key == own).cloned().or(kin.pop())
        };
        if let Some(key) = standing {
            let entry = self.windows.get_mut(&key).unwrap();
            let Some(word) = word else { return };
            let fresher = entry.by_provider && began >= entry.set;
            let until = if word >= entry.until.saturating_add(1_000) {
                word
            } else if fresher && word.saturating_add(1_000) <= entry.until && class == WindowClass::Cooling {
                word.max(rung).min(entry.until)
            } else if fresher && word.saturating_add(1_000) <= entry.until && class == WindowClass::Blocked {
                word
            } else {
                entry.until
            };
            if until != entry.until {
                *entry = Entry { until, set: now, by_provider: true, reason: failure.reason };
                self.failed = plausible(self.failed, now).max(Some(now));
            }
            return;
        }
        let until;
        if class == WindowClass::Cooling && !covering(None, None).is_empty() {
            let end =
                self.active(now).filter(|(covers, ..)| touches(*covers, scope)).map(|(.., e)| e.until).max();
            match word {
                Some(word) if word >= end.unwrap().saturating_add(1_000) => until = word,
                _ => return,
            }
        } else {
            let sibling = self
                .active(now)
                .filter(|(_, c, entry)| *c == WindowClass::Cooling && entry.reason == Reason::RateLimit)
                .map(|(.., entry)| entry.until)
                .max();
            if let Some(sibling) =
                sibling.filter(|_| failure.reason == Reason::RateLimit && class == WindowClass::Cooling)
            {
                scope = None;
                until = sibling.min(rung).max(word.unwrap_or(0));
            } else {
                let believed =
                    self.windows.values().filter(|entry| plausible(Some(entry.set), now).is_some());
                let end = believed.map(|entry| entry.until).max().unwrap_or(0);
                if plausible(self.failed, now).is_some_and(|at| now.saturating_sub(at.max(end)) >= DAY) {
                    self.errors = 0;
                    self.counts.clear();
                }
                let inside = self.active(now).any(|(covers, ..)| touches(covers, model));
                self.errors = self.errors.saturating_add(u32::from(!inside));
                let count = self.counts.entry(failure.reason).or_insert(0);
                *count += 1;
                let doubling = |first: u64, cap: u64| (first << (*count - 1).min(20)).min(cap);
                let own = match class {
                    WindowClass::Cooling => ladder(self.errors),
                    WindowClass::Blocked => 0,
                    WindowClass::Billing => doubling(5 * 3_600_000, DAY),
                    WindowClass::AuthPermanent => doubling(600_000, 3_600_000),
                };
                until = now.saturating_add(own).max(word.unwrap_or(0));
            }
        }
        let by_provider = word == Some(until);
        let entry = Entry { until, set: now, by_provider, reason: failure.reason };
        // What ended as long ago as a window can last is forgotten when something new comes.
        self.windows.retain(|_, entry| now.saturating_sub(entry.until.max(entry.set)) < 31 * DAY);
        self.windows.insert((scope.map(str::to_owned), class), entry);
        self.failed = plausible(self.failed, now).max(Some(now));
    }
}

const MODELS: [&str; 3] = ["m1", "m2", "m3"];

fn reasons() -> impl Strategy<Value = FailoverReason> {
    prop::sample::select(FailoverReason::ALL)
}

/// A failure or a success that began up to two minutes ago, as a function of `now`.
fn events() -> impl Strategy<Value = (EventSeed, u64)> {
    let model = prop::option::weighted(0.8, prop::sample::select(&MODELS[..]));
    let deadline = prop::option::weighted(0.4, (0_u64..100 * 3_600_000, prop::bool::weighted(0.3)));
    let near = (0_u64..90_000, any::<bool>()).prop_map(|(ms, hint)| (ms, !hint));
    let deadline = prop_oneof![deadline, near.prop_map(Some)];
    let scope = prop_oneof![
        4 => Just(None),
        1 => prop::sample::select(&[Scope::Request, Scope::Model, Scope::Credential, Scope::Provider][..]).prop_map(Some)
    ];
    let failure = (model.clone(), reasons(), scope, deadline, 0_u64..120_000).prop_map(
        |(model, reason, scope, deadline, ago)| EventSeed::Failure { model, reason, scope, deadline, ago },
    );
    let success = (model, 0_u64..120_000).prop_map(|(model, ago)| EventSeed::Success { model, ago });
    let seed = prop_oneof![
        12 => failure,
        2 => success,
        1 => Just(EventSeed::Plain(Event::Clear)),
        1 => prop::sample::select(&MODELS[..]).prop_map(|name| EventSeed::Plain(Event::ClearModel(name))),
        1 => Just(EventSeed::Plain(Event::NewSecret)),
    ];
    let step = prop_oneof![4 => 0_u64..1_000, 4 => 0_u64..120_000, 2 => 0_u64..30 * 3_600_000];
    (seed, step)
}

#[derive(Clone, Debug)]
enum EventSeed {
    Failure {
        model: Option<&'static str>,
        reason: FailoverReason,
        scope: Option<Scope>,
        /// How far ahead, and whether exact.
        deadline: Option<(u64, bool)>,
        ago: u64,
    },
    Success {
        model: Option<&'static str>,
        ago: u64,
    },
    Plain(Event),
}

impl EventSeed {
    fn at(&self, now: u64) -> Event {
        let provider = ProviderId::new("a").unwrap();
        let named = |name: &str| ModelRef::new(provider.clone(), name).unwrap();
        let began = |ago: &u64| Timestamp::from_millis(now.saturating_sub(*ago));
        match self {
            Self::Failure { model, reason, scope, deadline, ago } => {
                let failure = match model {
                    Some(name) => Failure::new(&named(name), *reason, began(ago)),
                    None => Failure::without_model(provider.clone(), *reason, began(ago)),
                };
                let deadline = deadline.map(|(ahead, exact)| {
                    let until = Timestamp::from_millis(now.saturating_add(ahead));
                    if exact { Deadline::exact(until, "probe") } else { Deadline::hint(until) }
                });
                let scope = scope.unwrap_or(reason.default_scope());
                Event::Outcome(failure.scope(scope).deadline(deadline).into())
            }
            Self::Success { model, ago } => Event::Outcome(Outcome::Success(match model {
                Some(name) => Success::new(&named(name), began(ago)),
                None => Success::without_model(began(ago)),
            })),
            Self::Plain(event) => event.clone(),
        }
    }
}

fn apply(stats: &UsageStats, event: &Event, now: u64) -> UsageStats {
    let now = Timestamp::from_millis(now);
    match event {
        Event::Outcome(outcome) => next_usage(stats, outcome, &CooldownPolicy::default(), now),
        Event::Clear => clear(stats, &ClearScope::All, now),
        Event::ClearModel(name) => clear(stats, &ClearScope::Model((*name).into()), now),
        Event::NewSecret => secret_stored(stats, now),
    }
}

fn active(stats: &UsageStats, now: u64) -> BTreeMap<(WindowScope, WindowClass), u64> {
    stats
        .active(Timestamp::from_millis(now))
        .map(|window| ((window.scope.clone(), window.class()), window.until.as_millis()))
        .collect()
}

/// Time that mostly grows, sometimes jumps back, and sometimes is absurd.
fn clocks() -> impl Strategy<Value = Vec<(EventSeed, u64)>> {
    let jump = prop_oneof![
        20 => Just(None),
        2 => (T0 - 3 * DAY..T0 + 3 * DAY).prop_map(Some),
        1 => prop::sample::select(&[0, 1, YEAR_2100, u64::MAX - 1, u64::MAX][..]).prop_map(Some),
    ];
    steps(jump)
}

/// Time that only grows.
fn steady_clock() -> impl Strategy<Value = Vec<(EventSeed, u64)>> {
    steps(Just(None))
}

fn steps(jump: impl Strategy<Value = Option<u64>>) -> impl Strategy<Value = Vec<(EventSeed, u64)>> {
    prop::collection::vec((events(), jump), 1..60).prop_map(|steps| {
        let mut now = T0;
        steps
            .into_iter()
            .map(|((seed, step), jump)| {
                now = jump.unwrap_or(now.saturating_add(step));
                (seed, now)
            })
            .collect()
    })
}

proptest! {
    // spec: A-10, A-11, A-12, A-13, A-14, A-15, A-16, A-17
    #[test]
    fn it_does_what_the_naive_model_does(steps in clocks()) {
        let (mut stats, mut naive) = (UsageStats::default(), Naive::default());
        for (seed, now) in steps {
            let event = seed.at(now);
            stats = apply(&stats, &event, now);
            naive.apply(&event, now);
            for later in [0, 1_000, 45_000, 4 * 3_600_000, 20 * DAY] {
                let then = now.saturating_add(later);
                for model in [None, Some("m1"), Some("m2"), Some("m3")] {
                    let until = availability(&stats, model, Timestamp::from_millis(then)).until();
                    prop_assert_eq!(until.map(Timestamp::as_millis), naive.end_for(model, then), "{:?} {:?}", event, model);
                }
            }
            prop_assert_eq!(stats.error_count(), naive.errors, "{:?}", event);
            prop_assert_eq!(stats.failure_counts(), &naive.counts);
            prop_assert_eq!(stats.last_used().map(Timestamp::as_millis), naive.answered);
            prop_assert_eq!(stats.last_failure_at().map(Timestamp::as_millis), naive.failed);
        }
    }

    // spec: A-11, A-13
    #[test]
    fn an_active_window_ends_later_only_by_the_providers_word(steps in clocks()) {
        let mut stats = UsageStats::default();
        for (seed, now) in steps {
            let event = seed.at(now);
            let next = apply(&stats, &event, now);
            let (before, after) = (active(&stats, now), active(&next, now));
            match &event {
                Event::Outcome(Outcome::Failure(failure)) => {
                    let word = failure.deadline.as_ref().map(|deadline| deadline.until.as_millis());
                    for (key, until) in &before {
                        match after.get(key) {
                            Some(end) if end > until => prop_assert!(word.is_some_and(|word| *end <= word)),
                            Some(end) if end < until => prop_assert!(word.is_some_and(|word| *end >= word)),
                            Some(_) => {}
                            None => prop_assert!(false, "a failure lifted {:?}", key),
                        }
                    }
                    // Nothing lasts longer than the longest word.
                    for end in after.values() {
                        prop_assert!(*end <= now.saturating_add(31 * DAY + SKEW));
                    }
                }
                Event::Outcome(Outcome::Success(_)) | Event::Clear | Event::ClearModel(_) | Event::NewSecret => {
                    for (key, end) in &after {
                        prop_assert_eq!(before.get(key), Some(end), "only lifted, never moved");
                    }
                }
            }
            stats = next;
        }
    }

    // spec: A-10, A-11, A-12
    #[test]
    fn one_window_is_one_rung(steps in clocks()) {
        let mut stats = UsageStats::default();
        for (seed, now) in steps {
            let event = seed.at(now);
            let next = apply(&stats, &event, now);
            if let Event::Outcome(Outcome::Failure(failure)) = &event {
                let covers = |stats: &UsageStats| {
                    stats.active(Timestamp::from_millis(now)).any(|window| window.scope.covers(failure.model.as_deref()))
                };
                if next.error_count() > stats.error_count() {
                    prop_assert_eq!(next.error_count(), stats.error_count() + 1);
                    prop_assert!(!covers(&stats), "a failure inside a window took a rung");
                    prop_assert!(covers(&next) || now == u64::MAX, "a rung without a window");
                }
            }
            // The same failure once more changes nothing.
            if matches!(event, Event::Outcome(Outcome::Failure(_))) && now < u64::MAX {
                prop_assert_eq!(apply(&next, &event, now), next.clone());
            }
            stats = next;
        }
    }

    // spec: A-11, A-18
    #[test]
    fn replicas_agree_and_nothing_that_was_lifted_comes_back(steps in steady_clock(), cut in 0_usize..60, fork in 0_usize..60) {
        let run = |steps: &[(EventSeed, u64)], from: &UsageStats| {
            steps.iter().fold(from.clone(), |stats, (seed, now)| apply(&stats, &seed.at(*now), *now))
        };
        let (head, tail) = steps.split_at(cut.min(steps.len()));
        let (left, right) = tail.split_at(fork.min(tail.len()));
        let base = run(head, &UsageStats::default());
        let (a, b) = (run(left, &base), run(right, &base));
        let now = steps.last().map_or(T0, |(_, now)| *now);
        prop_assert_eq!(merge(&a, &b), merge(&b, &a));
        prop_assert_eq!(merge(&merge(&a, &b), &base), merge(&a, &merge(&b, &base)));
        prop_assert_eq!(merge(&a, &a), merge(&a, &UsageStats::default()));
        prop_assert_eq!(merge(&merge(&a, &b), &b), merge(&a, &b));
        // An older copy of the record adds nothing to a newer one.
        prop_assert_eq!(active(&merge(&b, &base), now), active(&b, now));
        prop_assert_eq!(merge(&b, &base).error_count(), b.error_count());
    }

    // spec: A-18, K-4
    #[test]
    fn the_stored_form_is_lossless_and_bounded(steps in clocks(), models in 0_usize..200) {
        let mut stats = UsageStats::default();
        for (seed, now) in &steps {
            stats = apply(&stats, &seed.at(*now), *now);
        }
        let now = steps.last().map_or(T0, |(_, now)| *now);
        for n in 0..models {
            let model: ModelRef = format!("a/model-{n}").parse().unwrap();
            let failure = Failure::new(&model, FailoverReason::Overloaded, Timestamp::from_millis(now));
            stats = next_usage(&stats, &failure.into(), &CooldownPolicy::default(), Timestamp::from_millis(now));
        }
        prop_assert!(stats.windows().len() <= 32);
        prop_assert!(stats.encode().len() < 16 * 1024);
        prop_assert_eq!(UsageStats::decode(&stats.encode()).unwrap(), stats);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = UsageStats::decode(&bytes);
    }
}

// spec: K-4
#[test]
fn a_newer_record_is_refused_and_an_older_one_is_read() {
    let error = UsageStats::decode(br#"{"v":2,"windows":"who knows"}"#).unwrap_err();
    assert!(error.to_string().contains("schema version 2"), "{error}");
    let old = UsageStats::decode(br#"{"errorCount":3,"lastUsed":7}"#).unwrap();
    assert_eq!((old.error_count(), old.last_used()), (3, Some(Timestamp::from_millis(7))));
}

// spec: A-11
#[test]
fn the_longest_ladder_ends_where_time_ends() {
    let failure =
        Failure::without_model(ProviderId::new("a").unwrap(), FailoverReason::Billing, Timestamp::MAX);
    let last = Timestamp::MAX.before(Duration::from_secs(1));
    let stats = next_usage(&UsageStats::default(), &failure.into(), &CooldownPolicy::default(), last);
    assert_eq!(availability(&stats, None, last).until(), Some(Timestamp::MAX));
}
