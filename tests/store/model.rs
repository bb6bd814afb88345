//! Random histories, decided by a store and by brute force.
//!
//! The brute force remembers every charge there ever was and applies the definitions of the specification to that list.
//! It shares no code with what it judges.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use portcullis::rules::decision::batch::{Charged, Force};
use portcullis::rules::decision::{Batch, Charge, Settlement, Verdict};
use portcullis::rules::limit::{Algorithm, AlgorithmName, Count, Rule};
use portcullis::store::Store;
use portcullis::words::clock::Timestamp;
use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::history::{History, Terms};
use crate::support::{Fixture, midnight};

/// A limit of a history: its rates are counts and windows in seconds.
#[derive(Clone, Debug)]
struct Drawn {
    algorithm: Algorithm,
    rates: Vec<(u32, u64)>,
    count: Count,
    force: Force,
}

/// One request: how long after the last one (in microseconds), what it costs, and the limits and keys it meets.
#[derive(Clone, Debug)]
struct Step {
    wait: Wait,
    cost: u32,
    charges: Vec<(usize, u8)>,
    /// After how many steps the answer is known and is none that counts; `None`: it counts.
    taken_back: Option<usize>,
}

/// What is to be taken back once the answer is known.
#[derive(Debug)]
struct Reserved {
    due: usize,
    place: (usize, u8),
    rule: Rule,
    charged: Charged,
    entry: (u64, u64),
}

#[derive(Clone, Copy, Debug)]
enum Wait {
    Micros(u64),
    /// Until just before the last refusal ends, so that the next step is at the very edge.
    JustBeforeOpening,
    /// Until the last refusal ends.
    Opening,
}

/// Holds a store to brute force over random histories.
pub(crate) fn random_histories<F: Fixture>() {
    random::<F>(any_limit().boxed());
}

/// The same with requests that count by their outcome, and with limits that only delay.
pub(crate) fn random_outcomes<F: Fixture>() {
    random::<F>((any_limit(), any::<[bool; 4]>()).prop_map(by_outcome).boxed());
}

fn random<F: Fixture>(limit: BoxedStrategy<Drawn>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let histories = (vec(limit, 1..5), vec(any_step(), 1..120));
    // What fixtures share stays while one of them does.
    let _first = F::new();
    let outcome = runner.run(&histories, |(limits, steps)| {
        runtime.block_on(play(&F::new(), &limits, &steps));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

async fn play<F: Fixture>(fixture: &F, limits: &[Drawn], steps: &[Step]) {
    let mut histories: HashMap<(usize, u8), History> = HashMap::new();
    let mut passed: HashMap<(usize, u8), History> = HashMap::new();
    let mut opening = fixture.now();
    let mut reserved: Vec<Reserved> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        for back in reserved.extract_if(.., |reserved| reserved.due <= number) {
            take_back(fixture, &back).await;
            for histories in [&mut histories, &mut passed] {
                histories.entry(back.place).or_default().remove(back.entry);
            }
        }
        let later = match step.wait {
            Wait::Micros(wait) => fixture.now() + Duration::from_micros(wait),
            Wait::JustBeforeOpening => Timestamp::from_micros(opening.as_micros() - 1),
            Wait::Opening => opening,
        };
        fixture.set(later.max(fixture.now()));
        let now = fixture.now().as_micros() - midnight().as_micros();
        let charges = distinct(limits, &step.charges);
        let rules: Vec<Rule> = charges.iter().map(|(limit, _)| limits[*limit].rule(step.cost)).collect();
        let verdicts = ask(fixture, limits, &charges, &rules).await;
        let room: Vec<bool> = charges
            .iter()
            .map(|charge| {
                let history = histories.entry(*charge).or_default();
                limits[charge.0]
                    .terms()
                    .all(|terms| history.used(terms, now) + u64::from(step.cost) <= terms.capacity())
            })
            .collect();
        let binding_passes = (0..charges.len()).all(|at| room[at] || limits[charges[at].0].force != Force::Binding);
        for (at, charge) in charges.iter().enumerate() {
            let limit = &limits[charge.0];
            let is_let_through = match limit.force {
                Force::Binding | Force::Delay => binding_passes,
                Force::Shadow => (0..charges.len()).all(|other| room[other] || charges[other].0 != charge.0),
            };
            if is_let_through && limit.force != Force::Delay {
                passed.entry(*charge).or_default().0.push((now, u64::from(step.cost)));
            }
            let entry = (now, u64::from(step.cost));
            let is_charged = is_let_through && (room[at] || limit.force != Force::Delay || !limit.is_reserved());
            if is_charged || limit.count == Count::Attempts {
                histories.entry(*charge).or_default().0.push(entry);
            }
            let taken = verdicts[at].charged.as_ref().map(|taken| Charged { reservation: None, ..taken.clone() });
            if let (Some(steps), Some(charged)) = (step.taken_back, taken)
                && limit.is_reserved()
            {
                let steps = if limit.forgets() { 0 } else { steps };
                let rule = rules[at].clone();
                reserved.push(Reserved { due: number + 1 + steps, place: *charge, rule, charged, entry });
            }
        }
        for ((charge, verdict), room) in charges.iter().zip(&verdicts).zip(room) {
            let (limit, history) = (&limits[charge.0], &histories[charge]);
            assert_eq!(verdict.passes(), room, "{limit:?} at {now} of {history:?}");
            check_standings(limit, history, verdict, now);
            let Some(wait) = verdict.retry_after else { continue };
            opening = fixture.now() + wait;
            if !limit.overflows() {
                let opens = now + u64::try_from(wait.as_micros()).expect("a short wait");
                assert!(
                    !history.fits(limit.terms(), step.cost, opens - 1),
                    "{limit:?} opens before {opens}: {history:?}"
                );
                assert!(history.fits(limit.terms(), step.cost, opens), "{limit:?} opens after {opens}: {history:?}");
            }
        }
    }
    for ((limit, _), history) in &passed {
        assert_never_exceeded(&limits[*limit], history);
    }
}

async fn take_back<F: Fixture>(fixture: &F, reserved: &Reserved) {
    let key = fixture.key(&format!("{} {}", reserved.place.0, reserved.place.1));
    let settlement = Settlement::TakeBack { key, rule: &reserved.rule, charged: &reserved.charged };
    fixture.store().settle(&[settlement]).await.expect("the store answers");
}

/// Each charge once, and those of one limit next to each other.
fn distinct(limits: &[Drawn], charges: &[(usize, u8)]) -> Vec<(usize, u8)> {
    let mut charges: Vec<_> = charges.iter().map(|(limit, key)| (limit % limits.len(), *key)).collect();
    charges.sort_unstable();
    charges.dedup();
    charges
}

async fn ask<F: Fixture>(fixture: &F, limits: &[Drawn], charges: &[(usize, u8)], rules: &[Rule]) -> Vec<Verdict> {
    let mut batch = Batch::default();
    for ((limit, key), rule) in charges.iter().zip(rules) {
        let key = fixture.key(&format!("{limit} {key}"));
        let Drawn { count, force, .. } = limits[*limit];
        batch.charges.push(Charge {
            count,
            force,
            ..Charge::new(u16::try_from(*limit).expect("a few limits"), key, rule)
        });
    }
    fixture.store().decide(&batch).await.expect("the store answers")
}

/// Checks that what remains would pass, and that more would pass after the reset and not before.
fn check_standings(limit: &Drawn, history: &History, verdict: &Verdict, now: u64) {
    assert_eq!(verdict.standings.len(), limit.rates.len());
    for (standing, terms) in verdict.standings.iter().zip(limit.terms()) {
        let remaining = |at| terms.capacity().saturating_sub(history.used(terms, at));
        assert_eq!(standing.remaining, remaining(now), "{terms:?} at {now} of {history:?}");
        let reset = u64::try_from(standing.reset.as_micros()).expect("a short wait");
        if standing.remaining == terms.capacity() {
            assert_eq!(reset, 0, "{terms:?} at {now} of {history:?}");
        } else {
            assert_eq!(remaining(now + reset - 1), standing.remaining, "{terms:?} at {now} of {history:?}");
            assert!(remaining(now + reset) > standing.remaining, "{terms:?} at {now} of {history:?}");
        }
    }
}

/// No window that begins with a request, and so no window at all, holds more than the count.
fn assert_never_exceeded(limit: &Drawn, history: &History) {
    for terms in limit.terms() {
        let most = match terms.algorithm {
            Algorithm::SlidingWindowLog | Algorithm::BucketedWindow { .. } => terms.most,
            // What a bucket holds, and what leaks from it meanwhile.
            Algorithm::TokenBucket { .. } => terms.capacity() + terms.most,
            // The end of one window and the beginning of the next.
            Algorithm::FixedWindow | Algorithm::SlidingWindowCounter => 2 * terms.most,
        };
        for (begin, _) in &history.0 {
            let inside = history.0.iter().filter(|(at, _)| at >= begin && *at < begin + terms.window);
            let units: u64 = inside.map(|(_, units)| units).sum();
            assert!(units <= most, "{terms:?}: {units} from {begin} on in {history:?}");
        }
    }
}

impl Drawn {
    fn rule(&self, cost: u32) -> Rule {
        let rates: Vec<_> = self.rates.iter().map(|(count, seconds)| format!("{count}/{seconds}s")).collect();
        Rule::Rates {
            algorithm: self.algorithm,
            rates: rates.join(";").parse().expect("rates"),
            cost: NonZeroU32::new(cost).expect("above zero"),
        }
    }

    fn terms(&self) -> impl Iterator<Item = Terms> {
        let (algorithm, overflows) = (self.algorithm, self.overflows());
        self.rates.iter().map(move |(most, seconds)| Terms {
            algorithm,
            most: u64::from(*most),
            window: seconds * 1_000_000,
            overflows,
        })
    }

    /// Whether it waits for the outcome.
    fn is_reserved(&self) -> bool {
        self.count == Count::Failures
    }

    fn overflows(&self) -> bool {
        self.count == Count::Attempts || (self.force == Force::Delay && !self.is_reserved())
    }

    /// Whether it is not known later what exactly a request changed.
    fn forgets(&self) -> bool {
        matches!(self.algorithm, Algorithm::FixedWindow | Algorithm::TokenBucket { .. })
    }
}

fn any_limit() -> impl Strategy<Value = Drawn> {
    let option = prop_oneof![Just(None), (4..40_u32).prop_map(NonZeroU32::new)];
    let algorithm = (select(&AlgorithmName::ALL[..]), option).prop_map(|(name, option)| Algorithm::of(name, option));
    // Long windows are rare, so that most histories pass through several.
    let seconds = prop_oneof![6 => 1..40_u64, 1 => 600..2000_u64];
    let rates = vec((4..20_u32, seconds), 1..4).prop_map(|mut rates| {
        rates.sort_by_key(|(_, seconds)| *seconds);
        rates.dedup_by_key(|(_, seconds)| *seconds);
        rates
    });
    (algorithm, rates, any::<[bool; 4]>()).prop_map(|(algorithm, rates, [attempts, also, shadow, too])| Drawn {
        algorithm,
        rates,
        count: if attempts && also { Count::Attempts } else { Count::Requests },
        force: if shadow && too { Force::Shadow } else { Force::Binding },
    })
}

/// Half of them count failures, and half of the others delay; some do both.
fn by_outcome((limit, [first, second, third, fourth]): (Drawn, [bool; 4])) -> Drawn {
    let count = if first { Count::Failures } else { limit.count };
    let delays = limit.force == Force::Binding && limit.count != Count::Attempts && second && (third || fourth);
    Drawn { count, force: if delays { Force::Delay } else { limit.force }, ..limit }
}

fn any_step() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![
        2 => Just(Wait::Micros(0)),
        2 => (0..2_000_000_u64).prop_map(Wait::Micros),
        2 => (0..20_u64).prop_map(|seconds| Wait::Micros(seconds * 1_000_000)),
        1 => (0..100_000_000_u64).prop_map(Wait::Micros),
        1 => Just(Wait::JustBeforeOpening),
        2 => Just(Wait::Opening),
    ];
    let cost = prop_oneof![3 => Just(1_u32), 1 => 1..5_u32];
    let taken_back = prop_oneof![Just(None), (0..10_usize).prop_map(Some)];
    let charges = vec((0..4_usize, 0..2_u8), 1..4);
    (wait, cost, charges, taken_back).prop_map(|(wait, cost, charges, taken_back)| Step {
        wait,
        cost,
        charges,
        taken_back,
    })
}
