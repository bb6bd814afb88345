//! Builders for tests of stores: limits in one line, a manual clock, and one question with its answer.

use std::num::NonZeroU32;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use futures_util::future::join_all;
use portcullis::rules::decision::batch::{Charged, Force, Items, KnownClientKey};
use portcullis::rules::decision::{Batch, Charge, Settlement, Verdict};
use portcullis::rules::key::KeyHash;
use portcullis::rules::limit::{Algorithm, AlgorithmName, Count, Rule};
use portcullis::store::Store;
use portcullis::words::clock::Timestamp;
use portcullis::words::pending_reservations::ToldLater;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

/// A store under test, fresh, and the hand of its clock.
pub(crate) trait Fixture: Send + Sync + 'static {
    type Store: Store;

    /// An empty store whose clock shows [`midnight`].
    fn new() -> Self;

    fn store(&self) -> &Self::Store;

    /// What the store's clock shows.
    fn now(&self) -> Timestamp;

    /// Moves the store's clock forward.
    fn set(&self, moment: Timestamp);

    /// A key of this name, of this fixture alone.
    fn key(&self, name: &str) -> KeyHash;

    fn advance(&self, span: Duration) {
        self.set(self.now() + span);
    }

    /// Moves the clock to a time of the first day, `hh:mm:ss`.
    #[track_caller]
    fn at(&self, time: &str) {
        let parts = time.split(':').map(|part| part.parse::<u64>().expect("hh:mm:ss"));
        let moment = midnight() + Duration::from_secs(parts.fold(0, |sum, part| sum * 60 + part));
        assert!(moment >= self.now(), "{time} is over");
        self.set(moment);
    }
}

/// What they return, each run on a thread with a runtime of its own, as the cores of a gateway have. All begin at the same
/// moment.
pub(crate) async fn at_once<F>(fixture: &impl Fixture, tasks: impl ExactSizeIterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    // A connection belongs to the runtime that asks first: here, to the one that outlasts the others.
    ask_one(fixture, &Limit::rates("1/hour"), "before all others").await;
    let together = Arc::new(Barrier::new(tasks.len()));
    let run = |task| {
        let together = Arc::clone(&together);
        spawn_blocking(move || {
            let core = Builder::new_current_thread().enable_all().build().expect("a runtime");
            together.wait();
            core.block_on(task)
        })
    };
    let running: Vec<_> = tasks.map(run).collect();
    join_all(running).await.into_iter().map(|done| done.expect("no task panics")).collect()
}

/// When the first day begins: a midnight, so that windows aligned to anything up to a day begin with it.
pub(crate) fn midnight() -> Timestamp {
    Timestamp::from_micros(20_513 * 86_400_000_000)
}

/// A limit as a store sees it.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) rule: Rule,
    pub(crate) count: Count,
    pub(crate) force: Force,
    pub(crate) unless_known: bool,
    pub(crate) is_free: bool,
}

impl Limit {
    pub(crate) fn rates(rates: &str) -> Self {
        let rule =
            Rule::Rates { algorithm: Algorithm::default(), rates: rates.parse().expect(rates), cost: NonZeroU32::MIN };
        Self::of(rule)
    }

    pub(crate) fn distinct(rates: &str) -> Self {
        Self::of(Rule::Distinct(rates.parse().expect(rates)))
    }

    pub(crate) fn concurrent(most: u32) -> Self {
        let rule = Rule::Concurrent(NonZeroU32::new(most).expect("above zero"));
        Self::of(rule)
    }

    fn of(rule: Rule) -> Self {
        Self { rule, count: Count::Requests, force: Force::Binding, unless_known: false, is_free: false }
    }

    pub(crate) fn algorithm(mut self, wanted: Algorithm) -> Self {
        if let Rule::Rates { algorithm, .. } = &mut self.rule {
            *algorithm = wanted;
        }
        self
    }

    pub(crate) fn cost(mut self, wanted: u32) -> Self {
        if let Rule::Rates { cost, .. } = &mut self.rule {
            *cost = NonZeroU32::new(wanted).expect("above zero");
        }
        self
    }

    pub(crate) fn attempts(self) -> Self {
        Self { count: Count::Attempts, ..self }
    }

    pub(crate) fn failures(self) -> Self {
        Self { count: Count::Failures, ..self }
    }

    pub(crate) fn shadow(self) -> Self {
        Self { force: Force::Shadow, ..self }
    }

    pub(crate) fn delay(self) -> Self {
        Self { force: Force::Delay, ..self }
    }

    pub(crate) fn unless_known(self) -> Self {
        Self { unless_known: true, ..self }
    }

    pub(crate) fn free(self) -> Self {
        Self { is_free: true, ..self }
    }

    /// Every algorithm, with a key of its own.
    pub(crate) fn each(rates: &str) -> [(Self, String); AlgorithmName::ALL.len()] {
        Algorithm::all().map(|algorithm| (Self::rates(rates).algorithm(algorithm), format!("{algorithm:?}")))
    }
}

/// Asks for one request that is charged to several keys. Neighbours of one and the same limit are keys of that limit.
/// Different limits need different names for their keys.
pub(crate) async fn ask<F: Fixture>(fixture: &F, charges: &[(&Limit, &str)]) -> Vec<Verdict> {
    let batch = batch(fixture, charges, &[], &[]);
    let verdicts = fixture.store().decide(&batch).await.expect("the store answers");
    assert_eq!(verdicts.len(), charges.len());
    verdicts
}

/// Asks for one request of a client who may be known for subjects: pairs of a subject and the client.
pub(crate) async fn ask_as<F: Fixture>(
    fixture: &F,
    charges: &[(&Limit, &str)],
    known: &[(&str, &str)],
) -> Vec<Verdict> {
    fixture.store().decide(&batch(fixture, charges, &[], known)).await.expect("the store answers")
}

/// Looks where that request would stand.
pub(crate) async fn look_as<F: Fixture>(
    fixture: &F,
    charges: &[(&Limit, &str)],
    known: &[(&str, &str)],
) -> Vec<Verdict> {
    fixture.store().look(&batch(fixture, charges, &[], known)).await.expect("the store answers")
}

/// Asks for one request that names these values to a limit that tells them apart.
pub(crate) async fn ask_values<F: Fixture>(fixture: &F, limit: &Limit, name: &str, values: &[&str]) -> Verdict {
    let batch = batch(fixture, &[(limit, name)], values, &[]);
    fixture.store().decide(&batch).await.expect("the store answers").remove(0)
}

fn batch<'l, F: Fixture>(
    fixture: &F,
    charges: &[(&'l Limit, &str)],
    values: &[&str],
    known: &[(&str, &str)],
) -> Batch<'l> {
    let mut batch = Batch::default();
    let mut number = 0;
    for (position, (limit, name)) in charges.iter().enumerate() {
        if position > 0 && !std::ptr::eq(*limit, charges[position - 1].0) {
            number += 1;
        }
        batch.charges.push(Charge {
            count: limit.count,
            force: limit.force,
            items: if matches!(limit.rule, Rule::Distinct(_)) { items(values) } else { Items::new() },
            unless_known: limit.unless_known,
            is_free: limit.is_free,
            leases: true,
            ..Charge::new(number, fixture.key(name), &limit.rule)
        });
    }
    batch.known = known.iter().map(|(subject, client)| known_client(fixture, subject, client)).collect();
    batch
}

pub(crate) fn items(values: &[&str]) -> Items {
    values.iter().map(|value| item(value)).collect()
}

/// The number that stands for a value, unlikely to be equal for two values.
fn item(value: &str) -> u64 {
    value.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn known_client<F: Fixture>(fixture: &F, subject: &str, client: &str) -> KnownClientKey {
    KnownClientKey { subject: fixture.key(&format!("known to {subject}")), client: item(client) }
}

/// Asks for one request that is charged to one key.
pub(crate) async fn ask_one<F: Fixture>(fixture: &F, limit: &Limit, name: &str) -> Verdict {
    ask(fixture, &[(limit, name)]).await.remove(0)
}

/// How many of `times` requests pass.
pub(crate) async fn count<F: Fixture>(fixture: &F, times: usize, limit: &Limit, name: &str) -> usize {
    let mut passed = 0;
    for _ in 0..times {
        passed += usize::from(ask_one(fixture, limit, name).await.passes());
    }
    passed
}

/// What is left of each rate, as the verdict says.
pub(crate) fn remaining(verdict: &Verdict) -> Vec<u64> {
    verdict.standings.iter().map(|standing| standing.remaining).collect()
}

/// How long until each rate has more, as the verdict says, in seconds.
pub(crate) fn resets(verdict: &Verdict) -> Vec<f64> {
    verdict.standings.iter().map(|standing| standing.reset.as_secs_f64()).collect()
}

/// Which of the verdicts let the request pass.
pub(crate) fn passing(verdicts: &[Verdict]) -> Vec<bool> {
    verdicts.iter().map(Verdict::passes).collect()
}

/// What the store charged for a request that passed.
#[track_caller]
pub(crate) fn charged(verdict: &Verdict) -> &Charged {
    verdict.charged.as_ref().expect("it was charged")
}

/// Tells a store that the answer was none that counts.
pub(crate) async fn take_back<F: Fixture>(fixture: &F, limit: &Limit, name: &str, verdict: &Verdict) {
    settle(fixture, Settlement::TakeBack { key: fixture.key(name), rule: &limit.rule, charged: charged(verdict) })
        .await;
}

/// Tells a store that the answer was one that counts.
pub(crate) async fn keep<F: Fixture>(fixture: &F, limit: &Limit, name: &str, verdict: &Verdict) {
    let (key, items) = (fixture.key(name), Items::new());
    settle(fixture, Settlement::Keep { key, rule: &limit.rule, items: &items, charged: charged(verdict) }).await;
}

/// Tells a store to count what had no room.
pub(crate) async fn charge<F: Fixture>(fixture: &F, limit: &Limit, name: &str) {
    settle(fixture, Settlement::Charge { key: fixture.key(name), rule: &limit.rule, items: &Items::new() }).await;
}

pub(crate) async fn forget<F: Fixture>(fixture: &F, name: &str) {
    settle(fixture, Settlement::Reset(fixture.key(name))).await;
}

/// Tells a store that a client succeeded as this subject: it is known for so many seconds, one of `most`.
/// Returns whether it was a known one before.
pub(crate) async fn remember<F: Fixture>(fixture: &F, subject: &str, client: &str, most: u32, seconds: u64) -> bool {
    let was_known = ToldLater::asked();
    let of = known_client(fixture, subject, client);
    let most = NonZeroU32::new(most).expect("above zero");
    let keep = Duration::from_secs(seconds);
    settle(fixture, Settlement::Remember { of, most, keep, was_known: was_known.clone() }).await;
    was_known.told().expect("the store tells it")
}

async fn settle<F: Fixture>(fixture: &F, settlement: Settlement<'_>) {
    fixture.store().settle(&[settlement]).await.expect("the store answers");
}

pub(crate) async fn give_back<F: Fixture>(fixture: &F, name: &str) {
    let settlement = Settlement::Release(fixture.key(name));
    fixture.store().settle(&[settlement]).await.expect("the store answers");
}
