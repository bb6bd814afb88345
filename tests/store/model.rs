//! Random histories, decided by a store and by brute force.
//!
//! The brute force remembers every charge there ever was and applies the definitions of the specification to that list.
//! It shares no code with what it judges.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use portcullis::clock::Timestamp;
use portcullis::decision::Batch;
use portcullis::decision::Charge;
use portcullis::decision::Settlement;
use portcullis::decision::Verdict;
use portcullis::decision::batch::Charged;
use portcullis::decision::batch::Force;
use portcullis::decision::batch::Items;
use portcullis::limit::Algorithm;
use portcullis::limit::Count;
use portcullis::limit::OnFailure;
use portcullis::limit::Rule;
use portcullis::store::Store;
use proptest::collection::vec;
use proptest::prelude::BoxedStrategy;
use proptest::prelude::Just;
use proptest::prelude::Strategy;
use proptest::prelude::any;
use proptest::prop_oneof;
use proptest::test_runner::Config;
use proptest::test_runner::TestRunner;

use crate::support::Fixture;
use crate::support::midnight;

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

/// All that was ever charged to one key: when, and how much.
#[derive(Clone, Debug, Default)]
struct History(Vec<(u64, u64)>);

/// A rate as brute force is told of it: windows in microseconds.
#[derive(Clone, Copy, Debug)]
struct Terms {
    algorithm: Algorithm,
    most: u64,
    window: u64,
    /// What has no room may be charged.
    overflows: bool,
}

/// Holds a store to brute force over a few hundred random histories.
pub(crate) fn random_histories<F: Fixture>() {
    random::<F>(any_limit().boxed());
}

/// The same with requests that count by their outcome, and with limits that only delay.
pub(crate) fn random_outcomes<F: Fixture>() {
    random::<F>((any_limit(), any::<[bool; 4]>()).prop_map(by_outcome).boxed());
}

fn random<F: Fixture>(limit: BoxedStrategy<Drawn>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
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
            let taken = verdicts[at].charged.as_ref().map(|taken| Charged { ticket: None, ..taken.clone() });
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
                assert!(!history.fits(limit, step.cost, opens - 1), "{limit:?} opens before {opens}: {history:?}");
                assert!(history.fits(limit, step.cost, opens), "{limit:?} opens after {opens}: {history:?}");
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
            limit: u16::try_from(*limit).expect("a few limits"),
            key,
            rule,
            count,
            force,
            on_failure: OnFailure::Local,
            items: Items::new(),
            unless_known: false,
        });
    }
    fixture.store().decide(&batch).await.expect("the store answers")
}

/// What is said to remain is what would pass, and more would pass after the reset and not before.
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

impl Terms {
    /// How many may pass at once when nothing was counted.
    fn capacity(self) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket { burst: Some(burst) } => u64::from(burst.get()),
            _ => self.most,
        }
    }
}

impl History {
    fn remove(&mut self, entry: (u64, u64)) {
        if let Some(place) = self.0.iter().rposition(|other| *other == entry) {
            self.0.remove(place);
        }
    }

    fn fits(&self, limit: &Drawn, cost: u32, now: u64) -> bool {
        limit.terms().all(|terms| self.used(terms, now) + u64::from(cost) <= terms.capacity())
    }

    /// How much of the count is used, by the definition of the algorithm.
    fn used(&self, terms: Terms, now: u64) -> u64 {
        let Terms { window, .. } = terms;
        match terms.algorithm {
            Algorithm::SlidingWindowLog => self.sum(|at| at + window > now),
            Algorithm::SlidingWindowCounter => {
                // The history is told from a midnight on, to which all these windows are aligned only if they divide
                // a day; so times are put back onto the epoch.
                let epoch = midnight().as_micros();
                let number = |at: u64| (epoch + at) / window;
                let elapsed = (epoch + now) % window;
                let current = self.sum(|at| number(at) == number(now));
                let previous = self.sum(|at| number(at) + 1 == number(now));
                let faded = u128::from(previous) * u128::from(window - elapsed) / u128::from(window);
                current + u64::try_from(faded).expect("no more than there was")
            }
            Algorithm::BucketedWindow { buckets } => {
                let (slices, width) = match buckets {
                    Some(buckets) => (u64::from(buckets.get()), window.div_ceil(u64::from(buckets.get()))),
                    None if window >= 600_000_000 => (window.div_ceil(60_000_000), 60_000_000),
                    None => (10, window / 10),
                };
                let epoch = midnight().as_micros();
                let number = |at: u64| (epoch + at) / width;
                self.sum(|at| number(at) + slices >= number(now))
            }
            Algorithm::FixedWindow => {
                let (mut opened, mut used) = (None, 0);
                for (at, units) in &self.0 {
                    if opened.is_none_or(|opened| *at >= opened + window) {
                        (opened, used) = (Some(*at), 0);
                    }
                    used += units;
                }
                if opened.is_some_and(|opened| now < opened + window) { used } else { 0 }
            }
            Algorithm::TokenBucket { .. } => {
                let level = if terms.overflows {
                    self.level_of_attempts(terms, now)
                } else {
                    self.level_of_requests(terms, now)
                };
                // Part of a unit in the bucket leaves no room for a whole one.
                u64::try_from(level.div_ceil(u128::from(window))).expect("no more than fits")
            }
        }
    }

    fn sum(&self, counts: impl Fn(u64) -> bool) -> u64 {
        self.0.iter().filter(|(at, _)| counts(*at)).map(|(_, units)| units).sum()
    }

    /// How full the bucket is, W-fold: the most that came since any moment, less what leaked since then.
    fn level_of_requests(&self, terms: Terms, now: u64) -> u128 {
        let since = |begin: u64| {
            let came = u128::from(self.sum(|at| at >= begin)) * u128::from(terms.window);
            came.saturating_sub(u128::from(now - begin) * u128::from(terms.most))
        };
        self.0.iter().map(|(begin, _)| since(*begin)).max().unwrap_or_default()
    }

    /// The same where what overflows is lost: told charge by charge.
    fn level_of_attempts(&self, terms: Terms, now: u64) -> u128 {
        let (mut level, mut last) = (0_u128, 0);
        for (at, units) in self.0.iter().copied().chain([(now, 0)]) {
            level = level.saturating_sub(u128::from(at - last) * u128::from(terms.most));
            level += u128::from(units) * u128::from(terms.window);
            level = level.min(u128::from(terms.capacity()) * u128::from(terms.window));
            last = at;
        }
        level
    }
}

fn any_limit() -> impl Strategy<Value = Drawn> {
    let some = |most| prop_oneof![Just(None), (4..most).prop_map(NonZeroU32::new)];
    let algorithm = prop_oneof![
        Just(Algorithm::SlidingWindowLog),
        Just(Algorithm::SlidingWindowCounter),
        some(40_u32).prop_map(|buckets| Algorithm::BucketedWindow { buckets }),
        Just(Algorithm::FixedWindow),
        some(20).prop_map(|burst| Algorithm::TokenBucket { burst }),
    ];
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
