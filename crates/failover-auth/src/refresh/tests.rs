//! The machine alone, and many of them against one store and one provider.

use super::*;
use crate::{Lease, LeaseClaim, LeaseTerms};
use failover_types::ProviderId;
use proptest::prelude::*;

const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn at(seconds: u64) -> Timestamp {
    T0.after(Duration::from_secs(seconds))
}

/// The `n`-th generation of a login; its access token runs out at `expires`.
fn pair(n: u32, expires: Timestamp) -> OAuth {
    let provider = ProviderId::new("a").unwrap();
    OAuth::new(provider, Secret::new(format!("access-{n}")), Secret::new(format!("refresh-{n}")), expires)
}

fn run(start: Refresh, events: Vec<RefreshEvent>) -> Refresh {
    events.into_iter().fold(start, |mut machine, event| {
        machine.handle(event, T0);
        machine
    })
}

fn new() -> Refresh {
    Refresh::new(RefreshPolicy::default(), T0)
}

fn ends(machine: &Refresh) -> &RefreshEnd {
    let RefreshStep::Done(end) = machine.step() else { panic!("not done: {:?}", machine.step()) };
    end
}

fn uses(pair: OAuth, how: HowFresh) -> RefreshEnd {
    RefreshEnd::Use { pair, how }
}

use RefreshEvent::{Answered, Claimed, Held, Loaded, NotStored, Replaced, Stored};

// spec: A-19
#[test]
fn a_fresh_token_is_used_without_a_lease_or_a_call() {
    let machine = run(new(), vec![Loaded(Some(pair(1, at(3600))))]);
    assert_eq!(*ends(&machine), uses(pair(1, at(3600)), HowFresh::Stored));
    assert!(!machine.releases_lease());
}

// spec: A-19
#[test]
fn the_holder_reads_again_and_adopts_what_was_refreshed_meanwhile() {
    let machine = run(new(), vec![Loaded(Some(pair(1, at(0)))), Claimed, Loaded(Some(pair(2, at(3600))))]);
    assert_eq!(*ends(&machine), uses(pair(2, at(3600)), HowFresh::Stored));
    assert!(machine.releases_lease());
}

// spec: A-19
#[test]
fn a_new_pair_is_stored_before_it_is_used_and_keeps_what_the_provider_left_out() {
    let mut old = pair(1, at(0));
    old.email = Some("ada@example.com".into());
    let mut answer = pair(2, at(3600));
    answer.refresh = Secret::new("");
    let start = vec![Loaded(Some(old.clone())), Claimed, Loaded(Some(old.clone())), Answered(Ok(answer))];
    let machine = run(new(), start);
    let RefreshStep::Persist { old: spent, new } = machine.step().clone() else {
        panic!("{:?}", machine.step())
    };
    assert_eq!((spent, &new.email, &new.refresh), (old.clone(), &old.email, &old.refresh));
    assert_eq!(*ends(&run(machine, vec![Stored])), uses(new, HowFresh::Refreshed));
}

// spec: A-19
#[test]
fn reuse_is_judged_only_after_reading_again() {
    let refused = || Answered(Err(RefreshFailure::Refused { permanent: true }));
    let start = || vec![Loaded(Some(pair(1, at(0)))), Claimed, Loaded(Some(pair(1, at(0)))), refused()];
    let machine = run(new(), start());
    assert_eq!(*machine.step(), RefreshStep::Load);
    let adopted = run(machine.clone(), vec![Loaded(Some(pair(2, at(3600))))]);
    assert_eq!(*ends(&adopted), uses(pair(2, at(3600)), HowFresh::Stored));
    assert_eq!(
        *ends(&run(machine.clone(), vec![Loaded(Some(pair(1, at(0))))])),
        RefreshEnd::Refused { permanent: true }
    );
    // Another login, run out too: it gets its own try, and then there is an end.
    let again = run(machine, vec![Loaded(Some(pair(5, at(0))))]);
    assert_eq!(*again.step(), RefreshStep::Call(pair(5, at(0))));
    let over = run(again, vec![refused(), Loaded(Some(pair(6, at(0))))]);
    assert_eq!(*ends(&over), RefreshEnd::Unreachable, "two calls are the bound");
}

// spec: A-19
#[test]
fn a_network_failure_keeps_the_old_token() {
    let start = |old: OAuth| vec![Loaded(Some(old.clone())), Claimed, Loaded(Some(old))];
    let failed = |old: OAuth| {
        let machine = run(new(), start(old));
        run(machine, vec![Answered(Err(RefreshFailure::Transient))])
    };
    assert_eq!(*ends(&failed(pair(1, at(30)))), uses(pair(1, at(30)), HowFresh::Old));
    let machine = failed(pair(1, at(0)));
    assert_eq!(*ends(&machine), RefreshEnd::Unreachable);
    assert!(machine.releases_lease());
}

// spec: A-25
#[test]
fn what_cannot_be_stored_serves_from_memory_and_keeps_the_lease() {
    let start = vec![Loaded(Some(pair(1, at(0)))), Claimed, Loaded(Some(pair(1, at(0))))];
    let machine = run(run(new(), start), vec![Answered(Ok(pair(2, at(3600)))), NotStored]);
    assert_eq!(*ends(&machine), uses(pair(2, at(3600)), HowFresh::InMemory));
    assert!(!machine.releases_lease());
}

// spec: A-19
#[test]
fn a_login_that_a_person_stored_meanwhile_is_the_truth() {
    let start = vec![Loaded(Some(pair(1, at(0)))), Claimed, Loaded(Some(pair(1, at(0))))];
    let machine = run(run(new(), start), vec![Answered(Ok(pair(2, at(3600)))), Replaced(pair(9, at(7200)))]);
    assert_eq!(*ends(&machine), uses(pair(9, at(7200)), HowFresh::Stored));
}

// spec: A-19
#[test]
fn who_waits_uses_the_old_token_while_it_lasts_else_polls_until_patience_ends() {
    let waits = |old: OAuth| run(new(), vec![Loaded(Some(old)), Held { until: at(60) }]);
    assert_eq!(*ends(&waits(pair(1, at(30)))), uses(pair(1, at(30)), HowFresh::Old));
    let mut machine = waits(pair(1, at(0)));
    assert_eq!(*machine.step(), RefreshStep::Wait { until: T0.after(Duration::from_millis(200)) });
    machine.handle(RefreshEvent::Waited, at(90));
    machine.handle(Loaded(Some(pair(1, at(0)))), at(90));
    machine.handle(Held { until: at(100) }, at(90));
    assert_eq!(*ends(&machine), RefreshEnd::Unreachable);
}

// spec: A-19
#[test]
fn a_token_that_was_refused_before_its_time_is_renewed() {
    let rejecting = || new().rejecting(Some(Secret::new("access-1")));
    let machine = run(rejecting(), vec![Loaded(Some(pair(1, at(3600))))]);
    assert_eq!(*machine.step(), RefreshStep::Claim);
    let machine = run(rejecting(), vec![Loaded(Some(pair(2, at(3600))))]);
    assert_eq!(*ends(&machine), uses(pair(2, at(3600)), HowFresh::Stored), "somebody renewed it already");
}

#[test]
fn an_event_that_answers_nothing_is_ignored() {
    let machine = run(new(), vec![Stored, Claimed]);
    assert_eq!(*machine.step(), RefreshStep::Load);
}

/// One store, one provider that takes each refresh token once, and many machines.
struct World {
    now: Timestamp,
    stored: OAuth,
    lease: Option<Lease>,
    /// The generation whose refresh token is good.
    good: u32,
    granted: u32,
    machines: Vec<Option<Refresh>>,
}

impl World {
    fn new(machines: usize) -> Self {
        let policy = RefreshPolicy { patience: Duration::from_secs(1_000), ..RefreshPolicy::default() };
        Self {
            now: T0,
            stored: pair(0, at(0)),
            lease: None,
            good: 0,
            granted: 0,
            machines: vec![Some(Refresh::new(policy, T0)); machines],
        }
    }

    fn step(&mut self, n: usize) {
        let Some(machine) = self.machines.get_mut(n).and_then(Option::as_mut) else { return };
        let holder = n.to_string();
        let event = match machine.step().clone() {
            RefreshStep::Load => Loaded(Some(self.stored.clone())),
            RefreshStep::Claim => {
                let terms = LeaseTerms::new(RefreshPolicy::default().lease, Duration::ZERO);
                match Lease::claim(self.lease.as_ref(), &holder, terms, self.now) {
                    LeaseClaim::Granted(lease) => {
                        self.lease = Some(lease);
                        Claimed
                    }
                    LeaseClaim::Denied { until } => Held { until },
                }
            }
            RefreshStep::Wait { until } => {
                self.now = self.now.max(until);
                RefreshEvent::Waited
            }
            RefreshStep::Call(old) if old.refresh == pair(self.good, T0).refresh => {
                self.good += 1;
                self.granted += 1;
                Answered(Ok(pair(self.good, self.now.after(Duration::from_hours(1)))))
            }
            RefreshStep::Call(_) => Answered(Err(RefreshFailure::Refused { permanent: true })),
            RefreshStep::Persist { old, new } if self.stored.refresh == old.refresh => {
                self.stored = new;
                Stored
            }
            RefreshStep::Persist { .. } => Replaced(self.stored.clone()),
            RefreshStep::Done(_) => {
                if machine.releases_lease() {
                    self.lease = self.lease.take().map(|lease| lease.release(&holder).unwrap_or(lease));
                }
                return;
            }
        };
        machine.handle(event, self.now);
    }
}

proptest! {
    // spec: A-19
    #[test]
    fn whatever_the_order_one_call_serves_all(turns in prop::collection::vec(0_usize..18, 0..400)) {
        let mut world = World::new(18);
        for n in turns {
            world.step(n);
        }
        for _ in 0..40 {
            (0..18).for_each(|n| world.step(n));
        }
        prop_assert_eq!(world.granted, 1);
        for machine in world.machines.iter().flatten() {
            let served = matches!(ends(machine), RefreshEnd::Use { pair, .. } if pair.refresh == world.stored.refresh);
            prop_assert!(served);
        }
    }

    // spec: A-19
    #[test]
    fn a_killed_refresher_is_survived(victim in 0_usize..6, after in 0_usize..8) {
        let mut world = World::new(6);
        (0..after).for_each(|_| world.step(victim));
        if let Some(machine) = world.machines.get_mut(victim) {
            *machine = None;
        }
        // A lease of 60 s, polled every 200 ms.
        for _ in 0..2_000 {
            (0..6).for_each(|n| world.step(n));
        }
        let lost = world.stored.refresh != pair(world.good, T0).refresh;
        for machine in world.machines.iter().flatten() {
            match ends(machine) {
                RefreshEnd::Use { pair, .. } => prop_assert!(!lost && pair.refresh == world.stored.refresh),
                // Killed between the provider's answer and the write: nobody has the new pair, a person must log in.
                RefreshEnd::Refused { .. } => prop_assert!(lost),
                end @ (RefreshEnd::Unreachable | RefreshEnd::Gone) => prop_assert!(false, "{:?}", end),
            }
        }
    }
}
