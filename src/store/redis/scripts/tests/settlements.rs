//! Random histories with charges that are taken back, made late or reset: the scripts return what [`State`] returns. Known
//! clients are compared with a list.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::test_runner::{Config, TestRunner};

use super::server::Keys;
use crate::rules::decision::batch::{Charged, Force, Items, KnownClientKey};
use crate::rules::decision::{Charge, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Algorithm, Count, Rule, State};
use crate::store::redis::scripts::{KeySettlement, Purpose, SettlementAction};
use crate::words::clock::Timestamp;

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    /// Until the last refusal ends.
    Until,
    Ask {
        items: Vec<u64>,
        delays: bool,
        attempts: bool,
    },
    /// One of the charges, counted from the latest.
    TakeBack(usize),
    Charge(Vec<u64>),
    Reset,
}

fn charge<'r>(key: KeyHash, rule: &'r Rule, items: &[u64]) -> Charge<'r> {
    Charge { items: Items::from_slice(items), ..Charge::new(0, key, rule) }
}

fn run<S: Strategy>(strategy: &S, mut play: impl FnMut(&mut Keys, KeyHash, S::Value)) {
    let config = Config { failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let (keys, number, play) = (RefCell::new(Keys::new()), Cell::new(0), RefCell::new(&mut play));
    let outcome = TestRunner::new(config).run(strategy, |value| {
        number.set(number.get() + 1);
        play.borrow_mut()(&mut keys.borrow_mut(), KeyHash(number.get()), value);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[track_caller]
fn agrees(rule: impl Strategy<Value = Rule>) {
    run(&(rule, vec(any_step(), 1..60)), |keys, key, (rule, steps)| follow(keys, key, &rule, &steps));
}

fn follow(keys: &mut Keys, key: KeyHash, rule: &Rule, steps: &[Step]) {
    let (mut state, mut charged, mut until) = (State::fresh(rule), Vec::<Charged>::new(), keys.hand.now());
    for step in steps {
        let now = keys.hand.now();
        let is_closed = |state: &State| match rule {
            Rule::Distinct(_) => state.standings(rule, now).iter().any(|standing| standing.remaining == 0),
            _ => state.opens_at(rule, &[], now).is_some(),
        };
        match step {
            Step::Wait(wait) => keys.hand.advance(Duration::from_micros(*wait)),
            Step::Until => keys.hand.set(until.max(now)),
            Step::Ask { items, delays, attempts } => {
                let items = if matches!(rule, Rule::Distinct(_)) { items.as_slice() } else { &[] };
                let force = if *delays { Force::Delay } else { Force::Binding };
                let count = if *attempts { Count::Attempts } else { Count::Requests };
                let asked = Charge { count, force, ..charge(key, rule, items) };
                let opens = state.opens_at(rule, items, now);
                let fresh = state.unseen(rule, items, now);
                let passes = opens.is_none() || *delays || *attempts;
                let moment = passes.then(|| state.charge(rule, items, now));
                let verdict = keys.decide(Purpose::Decide, &[&asked]).remove(0);
                assert_eq!(verdict.retry_after, opens.map(|opens| opens.since(now)), "{state:?}");
                assert_eq!(verdict.standings, state.standings(rule, now), "{state:?}");
                let taken = verdict.charged.as_ref().map(|charged| (charged.moment, charged.fresh.clone()));
                assert_eq!(taken, moment.map(|moment| (moment, fresh)));
                until = opens.unwrap_or(until);
                charged.extend(verdict.charged);
            }
            Step::TakeBack(nth) => {
                let Some(place) = charged.len().checked_sub(1 + nth) else { continue };
                let charged = charged.remove(place);
                let was_closed = is_closed(&state);
                let before = state.standings(rule, now);
                state.take_back(rule, &charged.fresh, charged.moment);
                let reopened = keys
                    .settle(&[KeySettlement { key, action: SettlementAction::TakeBack { rule, charged: &charged } }]);
                // A message about new room must not come late; one too many does no harm.
                if was_closed && state.standings(rule, now) != before {
                    assert_eq!(reopened, [0], "{state:?}");
                }
                assert!(was_closed || reopened.is_empty());
            }
            Step::Charge(items) => {
                state.charge(rule, items, now);
                keys.settle(&[KeySettlement { key, action: SettlementAction::Charge { rule, items } }]);
            }
            Step::Reset => {
                state = State::fresh(rule);
                charged.clear();
                keys.settle(&[KeySettlement { key, action: SettlementAction::Reset }]);
            }
        }
        let now = keys.hand.now();
        let looked = keys.decide(Purpose::Look, &[&charge(key, rule, &[3])]).remove(0);
        assert_eq!(looked.standings, state.standings(rule, now), "{rule:?} {step:?} {state:?}");
        assert_eq!(looked.retry_after, state.opens_at(rule, &[3], now).map(|opens| opens.since(now)), "{state:?}");
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let items = || vec(0..9_u64, 1..4);
    let asks = (items(), any::<[bool; 3]>()).prop_map(|(items, [delays, attempts, also])| Step::Ask {
        items,
        delays: delays && also,
        attempts: attempts && !delays && also,
    });
    prop_oneof![
        2 => (0..3_000_000_u64).prop_map(Step::Wait),
        1 => (0..90_000_000_u64).prop_map(Step::Wait),
        1 => Just(Step::Until),
        8 => asks,
        4 => (0..4_usize).prop_map(Step::TakeBack),
        1 => items().prop_map(Step::Charge),
        1 => Just(Step::Reset),
    ]
}

fn rates() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("3/minute"),
        Just("2/second; 5/minute"),
        Just("1/2s; 3/20s; 7/hour"),
        Just("1/hour"),
        Just("200/minute")
    ]
}

fn counted(algorithm: impl Strategy<Value = Algorithm>) -> impl Strategy<Value = Rule> {
    (algorithm, rates(), 1..3_u32).prop_map(|(algorithm, rates, cost)| {
        let cost = if rates.contains('1') { 1 } else { cost };
        let cost = NonZeroU32::new(cost).expect("above zero");
        Rule::Rates { algorithm, rates: rates.parse().expect(rates), cost }
    })
}

#[test]
fn logs_are_taken_back_alike() {
    agrees(counted(Just(Algorithm::SlidingWindowLog)));
}

#[test]
fn logs_that_grow_long_are_taken_back_alike() {
    let rates = prop_oneof![Just("200/minute"), Just("140/20s; 300/minute"), Just("90/20s; 150/minute; 1000/hour")];
    let costs = prop_oneof![1..3_u32, 20..90_u32];
    agrees((rates, costs).prop_map(|(rates, cost)| Rule::Rates {
        algorithm: Algorithm::SlidingWindowLog,
        rates: rates.parse().expect(rates),
        cost: NonZeroU32::new(cost).expect("above zero"),
    }));
}

#[test]
fn windows_are_taken_back_alike() {
    let buckets = prop_oneof![Just(None), (1..9_u32).prop_map(NonZeroU32::new)];
    agrees(counted(prop_oneof![
        Just(Algorithm::SlidingWindowCounter),
        Just(Algorithm::FixedWindow),
        buckets.prop_map(|buckets| Algorithm::BucketedWindow { buckets }),
    ]));
}

#[test]
fn tokens_are_taken_back_alike() {
    let burst = prop_oneof![Just(None), (2..9_u32).prop_map(NonZeroU32::new)];
    agrees(counted(burst.prop_map(|burst| Algorithm::TokenBucket { burst })));
}

#[test]
fn different_values_are_told_apart_alike() {
    agrees(rates().prop_map(|rates| Rule::Distinct(rates.parse().expect(rates))));
}

#[test]
fn clients_are_known_as_in_a_list() {
    let step = (0..3_000_000_u64, 0..6_u64, 1..4_u32, 0..8_u64, any::<bool>());
    let rule =
        Rule::Rates { algorithm: Algorithm::default(), rates: "1/day".parse().expect("a rate"), cost: NonZeroU32::MIN };
    run(&vec(step, 1..40), |keys, subject, steps| {
        let mut known: Vec<(u64, Timestamp)> = Vec::new();
        for (wait, client, most, keep, succeeds) in steps {
            keys.hand.advance(Duration::from_micros(wait));
            let (now, keep) = (keys.hand.now(), Duration::from_secs(keep));
            if succeeds {
                let most = NonZeroU32::new(most).expect("above zero");
                let action = SettlementAction::Remember { client, most, keep };
                let was_known = known.iter().any(|(other, until)| *other == client && *until > now);
                let places = keys.settle(&[KeySettlement { key: subject, action }]);
                assert_eq!(places, if was_known { vec![0] } else { vec![] }, "{known:?}");
                known.retain(|(other, until)| *other != client && *until > now);
                known.insert(0, (client, now + keep));
                known.truncate(most.get() as usize);
            }
            for client in 0..6 {
                let is_known = known.iter().any(|(other, until)| *other == client && *until > now);
                let mut guarded = charge(KeyHash(1 << 100 | subject.0), &rule, &[]);
                guarded.unless_known = true;
                let of = KnownClientKey { subject, client };
                let looked = keys.decide_for_client(Purpose::Look, &[&guarded], &[of]).remove(0);
                assert_eq!(looked.is_exempt, is_known, "{known:?}");
            }
        }
    });
}

#[test]
fn a_known_client_is_not_charged_where_the_limit_does_not_hold() {
    let mut keys = Keys::new();
    let rate = |rates: &str| Rule::Rates {
        algorithm: Algorithm::default(),
        rates: rates.parse().expect(rates),
        cost: NonZeroU32::MIN,
    };
    let (pace, tight) = (rate("9/minute"), rate("1/minute"));
    let asked = charge(KeyHash(1), &pace, &[]);
    let guarded = Charge { limit: 1, unless_known: true, ..charge(KeyHash(2), &tight, &[]) };
    let also = Charge { limit: 2, ..charge(KeyHash(3), &pace, &[]) };
    let charges = [&guarded, &asked, &also];
    let (alice, bob) = ([5, 6], KnownClientKey { subject: KeyHash(7), client: 9 });
    let alice = alice.map(|subject| KnownClientKey { subject: KeyHash(subject), client: 9 });
    let passes = |verdicts: &[Verdict]| verdicts.iter().map(|verdict| verdict.charged.is_some()).collect::<Vec<_>>();
    assert_eq!(passes(&keys.decide_for_client(Purpose::Decide, &charges, &alice)), [true; 3]);
    assert_eq!(passes(&keys.decide_for_client(Purpose::Decide, &charges, &alice)), [false; 3]);
    let remember = |of: KnownClientKey| {
        let action =
            SettlementAction::Remember { client: of.client, most: NonZeroU32::MIN, keep: Duration::from_secs(60) };
        KeySettlement { key: of.subject, action }
    };
    keys.settle(&[remember(alice[0])]);
    assert_eq!(passes(&keys.decide_for_client(Purpose::Decide, &charges, &alice)), [false; 3], "known for one of two");
    keys.settle(&[remember(alice[1]), remember(bob)]);
    let verdicts = keys.decide_for_client(Purpose::Decide, &charges, &alice);
    assert_eq!(passes(&verdicts), [false, true, true]);
    assert_eq!(verdicts[0], Verdict::exempt());
    assert_eq!(keys.decide_for_client(Purpose::Decide, &charges, &[bob])[1].standings[0].remaining, 6);
    let unnamed = keys.decide(Purpose::Decide, &charges);
    assert_eq!(passes(&unnamed), [false; 3], "a client that is not named is not known");
}

#[test]
fn a_delay_is_charged_without_room_unless_it_counts_by_outcome() {
    let mut keys = Keys::new();
    let rule = Rule::Rates {
        algorithm: Algorithm::default(),
        rates: "1/minute".parse().expect("a rate"),
        cost: NonZeroU32::MIN,
    };
    let slots = Rule::Concurrent(NonZeroU32::MIN);
    let delays = |limit, rule, count| Charge {
        limit,
        count,
        force: Force::Delay,
        ..charge(KeyHash(u128::from(limit)), rule, &[])
    };
    let charges = [
        charge(KeyHash(100), &rule, &[]),
        delays(1, &rule, Count::Requests),
        delays(2, &rule, Count::Failures),
        delays(3, &slots, Count::Requests),
        delays(4, &rule, Count::Attempts),
    ];
    let all: Vec<&Charge<'_>> = charges.iter().collect();
    let taken = |verdicts: Vec<Verdict>| verdicts.iter().map(|verdict| verdict.charged.is_some()).collect::<Vec<_>>();
    assert_eq!(taken(keys.decide(Purpose::Decide, &all)), [true; 5]);
    // Delays alone deny nothing.
    assert_eq!(taken(keys.decide(Purpose::Decide, &all[1..])), [true, false, false, true]);
    // A denied request is not charged.
    assert_eq!(taken(keys.decide(Purpose::Decide, &all)), [false, false, false, false, true]);
}
