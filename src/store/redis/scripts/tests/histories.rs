//! Random histories of one key: the script returns what [`State`] returns, also when the rule changes in between.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::server::Keys;
use crate::rules::decision::{Charge, Grounds, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Algorithm, AlgorithmName, Count, Rate, Rates, Rule, State};
use crate::store::redis::scripts::Purpose;
use crate::words::clock::Timestamp;

/// A request: how long after the last one, and under which rule.
#[derive(Clone, Debug)]
struct Step {
    wait: Wait,
    rates: Option<Rates>,
    cost: u32,
    attempts: bool,
}

#[derive(Clone, Copy, Debug)]
enum Wait {
    Micros(u64),
    Back(u64),
    /// Until just before the last refusal or reset ends.
    JustBefore,
    Until,
}

/// The largest span that is exact in scripts.
const END: u64 = 1 << 52;

#[track_caller]
fn agrees(algorithm: impl Strategy<Value = Algorithm>, rates: impl Strategy<Value = Rates>, most: u32) {
    let mut runner = TestRunner::new(Config { failure_persistence: None, max_shrink_iters: 300, ..Config::default() });
    let mut keys = Keys::new();
    keys.largest = 10_000_000;
    let (keys, number) = (RefCell::new(keys), Cell::new(0));
    let step = any_step(rates, most);
    let outcome = runner.run(&(vec(algorithm, 1..3), vec(step, 1..60)), |(algorithms, steps)| {
        number.set(number.get() + 1);
        let mut keys = keys.borrow_mut();
        keys.hand.set(Timestamp::from_micros(20_513 * 86_400_000_000));
        play(&mut keys, KeyHash(number.get()), &algorithms, &steps);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

fn play(keys: &mut Keys, key: KeyHash, algorithms: &[Algorithm], steps: &[Step]) {
    let mut rates: Rates = "5/minute".parse().expect("a rate");
    let mut until = keys.hand.now();
    let mut state: Option<State> = None;
    for (position, step) in steps.iter().enumerate() {
        let now = keys.hand.now();
        let next = match step.wait {
            Wait::Micros(wait) => now + Duration::from_micros(wait),
            Wait::Back(wait) => Timestamp::from_micros(now.as_micros() - wait),
            Wait::JustBefore => Timestamp::from_micros(until.as_micros() - 1).max(now),
            Wait::Until => until.max(now),
        };
        keys.hand.set(if next.as_micros() < END / 4 * 3 { next } else { now });
        let now = keys.hand.now();
        rates = step.rates.clone().unwrap_or(rates);
        // Rarely another algorithm.
        let algorithm = algorithms[usize::from(position % 17 == 16) % algorithms.len()];
        let mut cost = NonZeroU32::new(step.cost).expect("above zero");
        if algorithms.len() > 1 {
            // A cost above the count is not a valid rule, and a change of the algorithm does not check it.
            cost = rates.iter().map(|rate| rate.count).fold(cost, NonZeroU32::min);
        }
        let rule = Rule::Rates { algorithm, rates: rates.clone(), cost };
        let count = if step.attempts { Count::Attempts } else { Count::Requests };
        let charge = Charge { count, ..Charge::new(0, key, &rule) };
        let looked = keys.decide(Purpose::Look, &[&charge]).remove(0);
        let state = state.get_or_insert_with(|| State::fresh(&rule));
        let opens = state.opens_at(&rule, &[], now);
        let before = verdict(state, &rule, opens, now);
        assert_eq!(shortened(looked, now), before, "{rule:?} at {} {state:?}", now.as_micros());
        let charged = opens.is_none() || step.attempts;
        if charged {
            state.charge(&rule, &[], now);
        }
        let decided = keys.decide(Purpose::Decide, &[&charge]).remove(0);
        let after = verdict(state, &rule, opens, now);
        assert_eq!(decided.charged.is_some(), charged);
        assert_eq!(shortened(decided, now), after, "{rule:?} at {} {state:?}", now.as_micros());
        until = opens.or_else(|| after.standings.iter().map(|standing| now + standing.reset).max()).unwrap_or(now);
        if until.as_micros() > END {
            until = now;
        }
    }
}

fn verdict(state: &State, rule: &Rule, opens: Option<Timestamp>, now: Timestamp) -> Verdict {
    let retry_after = opens.map(|opens| opens.since(now));
    shortened(
        Verdict {
            retry_after,
            standings: state.standings(rule, now),
            charged: None,
            is_exempt: false,
            grounds: Grounds::Count,
        },
        now,
    )
}

/// A verdict without its charge, which is compared separately, and with spans cut to those that are exact in scripts.
fn shortened(verdict: Verdict, now: Timestamp) -> Verdict {
    let mut verdict = Verdict { charged: None, ..verdict };
    let longest = Duration::from_micros((1 << 53) - now.as_micros());
    verdict.standings.iter_mut().for_each(|standing| standing.reset = standing.reset.min(longest));
    verdict.retry_after = verdict.retry_after.map(|wait| wait.min(longest));
    verdict
}

fn any_step(rates: impl Strategy<Value = Rates>, most: u32) -> impl Strategy<Value = Step> {
    let wait = prop_oneof![
        3 => Just(Wait::Micros(0)),
        3 => (0..2_000_000_u64).prop_map(Wait::Micros),
        2 => (0..20_u64).prop_map(|seconds| Wait::Micros(seconds * 1_000_000)),
        1 => (0..100_000_000_u64).prop_map(Wait::Micros),
        1 => (0..100_000_000_000_000_u64).prop_map(Wait::Micros),
        1 => (0..3_000_000_u64).prop_map(Wait::Back),
        2 => Just(Wait::JustBefore),
        3 => Just(Wait::Until),
    ];
    let cost = prop_oneof![6 => Just(1_u32), 2 => 1..5_u32, 1 => 1..=most];
    let rates = prop_oneof![6 => Just(None), 1 => rates.prop_map(Some)];
    (wait, rates, cost, any::<[bool; 2]>()).prop_map(|(wait, rates, cost, [attempts, also])| Step {
        wait,
        rates,
        cost,
        attempts: attempts && also,
    })
}

fn rates_of(counts: impl Strategy<Value = u32>, seconds: impl Strategy<Value = u64>) -> impl Strategy<Value = Rates> {
    vec((counts, seconds), 1..6).prop_map(|mut rates| {
        rates.sort_by_key(|(_, per)| *per);
        rates.dedup_by_key(|(_, per)| *per);
        let rates: Vec<_> = rates
            .into_iter()
            .map(|(count, per)| Rate {
                count: NonZeroU32::new(count).expect("above zero"),
                per: Duration::from_secs(per),
            })
            .collect();
        Rates::new(rates).expect("all windows differ")
    })
}

fn usual() -> impl Strategy<Value = Rates> {
    rates_of(1..25_u32, prop_oneof![6 => 1..40_u64, 1 => 600..90_000_u64])
}

/// Counts and windows up to the largest possible.
fn extreme() -> impl Strategy<Value = Rates> {
    let counts = prop_oneof![1..5_u32, 1..1000_u32, Just(u32::MAX), any::<u32>().prop_map(|count| count.max(1))];
    let seconds = prop_oneof![1..5_u64, 1..100_000_000_u64, 1..=3_153_600_000_u64, Just(3_153_600_000)];
    rates_of(counts, seconds)
}

#[test]
fn logs_agree() {
    agrees(Just(Algorithm::SlidingWindowLog), usual(), 30);
}

#[test]
fn logs_that_grow_long_agree() {
    let counts = prop_oneof![1..25_u32, 100..700_u32];
    agrees(Just(Algorithm::SlidingWindowLog), rates_of(counts, 1..4000_u64), 200);
}

#[test]
fn logs_of_many_years_agree() {
    let counts = prop_oneof![1..25_u32, 100..300_u32];
    let seconds = prop_oneof![1..1000_u64, 1..=3_153_600_000_u64];
    agrees(Just(Algorithm::SlidingWindowLog), rates_of(counts, seconds), 100);
}

#[test]
fn counters_agree() {
    agrees(Just(Algorithm::SlidingWindowCounter), usual(), 30);
    agrees(Just(Algorithm::SlidingWindowCounter), extreme(), u32::MAX);
}

#[test]
fn buckets_agree() {
    let buckets = || prop_oneof![Just(None), (1..70_u32).prop_map(NonZeroU32::new)];
    let algorithm = || buckets().prop_map(|buckets| Algorithm::BucketedWindow { buckets });
    agrees(algorithm(), usual(), 30);
    agrees(algorithm(), extreme(), u32::MAX);
}

#[test]
fn fixed_windows_agree() {
    agrees(Just(Algorithm::FixedWindow), usual(), 30);
    agrees(Just(Algorithm::FixedWindow), extreme(), u32::MAX);
}

#[test]
fn tokens_agree() {
    let burst = |most| prop_oneof![Just(None), (1..=most).prop_map(NonZeroU32::new)];
    let algorithm = |most| burst(most).prop_map(|burst| Algorithm::TokenBucket { burst });
    agrees(algorithm(30), usual(), 30);
    agrees(algorithm(u32::MAX), extreme(), u32::MAX);
}

#[test]
fn one_after_another_they_agree() {
    let option = prop_oneof![Just(None), (1..30_u32).prop_map(NonZeroU32::new)];
    let algorithm = (select(&AlgorithmName::ALL[..]), option).prop_map(|(name, option)| Algorithm::of(name, option));
    agrees(algorithm, usual(), 30);
}
