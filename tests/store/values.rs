//! Random values, counted as distinct by a store and by brute force.

use std::collections::BTreeSet;
use std::time::Duration;

use portcullis::rules::decision::batch::Charged;
use portcullis::rules::decision::{Settlement, Verdict};
use portcullis::store::Store;
use portcullis::words::clock::Timestamp;
use proptest::collection::{btree_set, vec};
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Fixture, Limit, ask_values, items};

const NAMES: [&str; 9] = ["alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan"];

/// One request: how long after the last one, the values it names, and after how many steps it is taken back, if it is.
#[derive(Clone, Debug)]
struct Step {
    wait: Wait,
    values: BTreeSet<usize>,
    taken_back: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Wait {
    Micros(u64),
    JustBeforeOpening,
    Opening,
}

/// Every value that was ever counted, and when in microseconds.
#[derive(Debug, Default)]
struct History(Vec<(u64, usize)>);

/// Counts and windows in seconds.
type Rates = Vec<(usize, u64)>;

/// Holds a store to brute force over random histories.
pub(crate) fn random_values<F: Fixture>() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let histories = (any_rates(), any::<bool>(), vec(any_step(), 1..100));
    // What fixtures share stays while one of them does.
    let _first = F::new();
    let outcome = runner.run(&histories, |(rates, hammers, steps)| {
        runtime.block_on(play(&F::new(), &rates, hammers, &steps));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

async fn play<F: Fixture>(fixture: &F, rates: &Rates, hammers: bool, steps: &[Step]) {
    let text: Vec<_> = rates.iter().map(|(count, seconds)| format!("{count}/{seconds}s")).collect();
    let limit = Limit::distinct(&text.join(";"));
    let limit = if hammers { limit.attempts() } else { limit.failures() };
    let (mut history, mut opening) = (History::default(), fixture.now());
    let mut reserved: Vec<(usize, Charged, Vec<usize>)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        for (_, charged, fresh) in reserved.extract_if(.., |(due, ..)| *due <= number) {
            let settlement = Settlement::TakeBack { key: fixture.key("key"), rule: &limit.rule, charged: &charged };
            fixture.store().settle(&[settlement]).await.expect("the store answers");
            history.0.retain(|(at, value)| *at != charged.moment.as_micros() || !fresh.contains(value));
        }
        let moment = match step.wait {
            Wait::Micros(wait) => fixture.now() + Duration::from_micros(wait),
            Wait::JustBeforeOpening => Timestamp::from_micros(opening.as_micros() - 1),
            Wait::Opening => opening,
        };
        fixture.set(moment.max(fixture.now()));
        let now = fixture.now().as_micros();
        let names: Vec<&str> = step.values.iter().map(|value| NAMES[*value]).collect();
        let verdict = ask_values(fixture, &limit, "key", &names).await;
        let passes = history.fits(rates, &step.values, now);
        assert_eq!(verdict.passes(), passes, "{rates:?} {:?} at {now} of {history:?}", step.values);
        if let Some(wait) = verdict.retry_after {
            opening = fixture.now() + wait;
            let opens = opening.as_micros();
            let is_possible = rates.iter().all(|(count, _)| step.values.len() <= *count);
            assert!(!history.fits(rates, &step.values, opens - 1), "before {opens}: {history:?}");
            assert_eq!(history.fits(rates, &step.values, opens), is_possible, "after {opens}: {history:?}");
        }
        let longest = rates.iter().map(|(_, seconds)| seconds * 1_000_000).max().expect("a rate");
        let known = history.within(longest, now);
        let fresh: Vec<usize> = step.values.iter().copied().filter(|value| !known.contains(value)).collect();
        assert_eq!(verdict.charged.is_some(), passes || hammers);
        if let Some(charged) = &verdict.charged {
            // Of what was hammered, only the newest is remembered.
            let told = items(&fresh.iter().map(|value| NAMES[*value]).collect::<Vec<_>>());
            assert!(hammers || charged.fresh == told, "{:?} {history:?}", charged.fresh);
            history.0.extend(step.values.iter().map(|value| (now, *value)));
            if let Some(steps) = step.taken_back.filter(|_| !hammers) {
                reserved.push((number + 1 + steps, Charged { reservation: None, ..charged.clone() }, fresh));
            }
        }
        check_standings(rates, &history, &verdict, now);
    }
}

fn check_standings(rates: &Rates, history: &History, verdict: &Verdict, now: u64) {
    assert_eq!(verdict.standings.len(), rates.len());
    for (standing, (count, seconds)) in verdict.standings.iter().zip(rates) {
        let remaining = |at| count.saturating_sub(history.within(seconds * 1_000_000, at).len()) as u64;
        let reset = u64::try_from(standing.reset.as_micros()).expect("a short wait");
        assert_eq!(standing.remaining, remaining(now), "{history:?} at {now}");
        if standing.remaining == *count as u64 {
            assert_eq!(reset, 0);
        } else {
            assert_eq!(remaining(now + reset - 1), standing.remaining, "{history:?} at {now}");
            assert!(remaining(now + reset) > standing.remaining, "{history:?} at {now}");
        }
    }
}

impl History {
    /// The different values of a window of this length that ends at `now`.
    fn within(&self, window: u64, now: u64) -> BTreeSet<usize> {
        self.0.iter().filter(|(at, _)| at + window > now).map(|(_, value)| *value).collect()
    }

    fn fits(&self, rates: &Rates, values: &BTreeSet<usize>, now: u64) -> bool {
        rates.iter().all(|(count, seconds)| {
            let mut all = self.within(seconds * 1_000_000, now);
            all.extend(values);
            all.len() <= *count
        })
    }
}

fn any_rates() -> impl Strategy<Value = Rates> {
    vec((1..7_usize, 1..40_u64), 1..4).prop_map(|mut rates| {
        rates.sort_by_key(|(_, seconds)| *seconds);
        rates.dedup_by_key(|(_, seconds)| *seconds);
        rates
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![
        2 => (1..2_000_000_u64).prop_map(Wait::Micros),
        3 => (1..10_u64).prop_map(|seconds| Wait::Micros(seconds * 1_000_000)),
        1 => (1..100_000_000_u64).prop_map(Wait::Micros),
        1 => Just(Wait::JustBeforeOpening),
        2 => Just(Wait::Opening),
    ];
    let values = prop_oneof![4 => btree_set(0..NAMES.len(), 1), 1 => btree_set(0..NAMES.len(), 1..4)];
    let taken_back = prop_oneof![2 => Just(None), 1 => (0..8_usize).prop_map(Some)];
    (wait, values, taken_back).prop_map(|(wait, values, taken_back)| Step { wait, values, taken_back })
}
