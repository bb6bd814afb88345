//! The store in memory: the contract, and what must hold when it is full.

use std::collections::HashSet;
use std::time::Duration;

use portcullis::rules::decision::{Batch, Charge};
use portcullis::rules::key::{Key, KeyHash, KeyHasher};
use portcullis::store::memory::MemorySettings;
use portcullis::store::{MemoryStore, Store};
use portcullis::words::clock::{Clock, ManualClock, Timestamp};

use crate::support::{Fixture, Limit, ask, ask_one, count, give_back, midnight, passing, remaining};

hold_to_contract!(Memory);
hold_to_outcomes!(Memory);
hold_to_waiting!(Memory);

/// The store in memory under a clock with a hand.
pub(crate) struct Memory {
    clock: ManualClock,
    store: MemoryStore,
}

impl Memory {
    fn of(max_keys: usize) -> Self {
        let clock = ManualClock::at(midnight());
        let store = MemoryStore::new(
            &MemorySettings { max_keys, max_sessions: 1000, snapshot: None },
            Clock::Manual(clock.clone()),
        );
        Self { clock, store }
    }
}

impl Fixture for Memory {
    type Store = MemoryStore;

    fn new() -> Self {
        Self::of(1_000_000)
    }

    fn store(&self) -> &MemoryStore {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn set(&self, moment: Timestamp) {
        self.clock.set(moment);
    }

    fn key(&self, name: &str) -> KeyHash {
        let mut key = Key::default();
        key.push(name.as_bytes());
        KeyHasher::new([7; 16]).hash("limit", &key)
    }
}

#[tokio::test]
async fn a_refusing_key_outlives_a_million_new_ones() {
    let fixture = Memory::of(10_000);
    let limit = Limit::rates("5/hour");
    let denied: Vec<String> = (0..100).map(|number| format!("denied {number}")).collect();
    for name in &denied {
        assert_eq!(count(&fixture, 5, &limit, name).await, 5);
    }
    // Straight to the store: a million questions in prose take their time.
    for number in 0..1_000_000_u128 {
        if number % 1000 == 0 {
            fixture.advance(Duration::from_secs(1));
            assert!(fixture.store.len() <= 10_000);
        }
        let key = KeyHash(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let charge = Charge { count: limit.count, force: limit.force, ..Charge::new(0, key, &limit.rule) };
        let batch = Batch { charges: std::iter::once(charge).collect(), ..Batch::default() };
        assert!(fixture.store.decide(&batch).await.expect("memory answers")[0].passes());
    }
    assert!(fixture.store.len() <= 10_000);
    for name in &denied {
        assert!(!ask_one(&fixture, &limit, name).await.passes(), "{name}");
    }
}

#[tokio::test]
async fn a_small_bound_is_exact() {
    for max_keys in [1, 2, 7, 1000] {
        let fixture = Memory::of(max_keys);
        let limit = Limit::rates("1/hour");
        let mut passed = 0;
        for number in 0..max_keys + 50 {
            passed += count(&fixture, 1, &limit, &format!("key {number}")).await;
            assert!(fixture.store.len() <= max_keys);
        }
        assert_eq!((passed, fixture.store.len()), (max_keys, max_keys));
    }
}

#[tokio::test]
async fn new_keys_are_refused_while_every_key_is_refusing() {
    let fixture = Memory::of(3);
    let limit = Limit::rates("1/minute");
    for name in ["a", "b", "c"] {
        assert!(ask_one(&fixture, &limit, name).await.passes());
        fixture.advance(Duration::from_secs(10));
    }
    let verdict = ask_one(&fixture, &limit, "d").await;
    assert_eq!(verdict.retry_after, Some(Duration::from_secs(30)), "until the first of them frees");
    assert_eq!(remaining(&verdict), [0]);
    assert_eq!(count(&fixture, 100, &limit, "e").await, 0);
    fixture.advance(Duration::from_millis(29_500));
    assert_eq!(ask_one(&fixture, &limit, "d").await.retry_after, Some(Duration::from_secs(1)), "at least a second");
    fixture.advance(Duration::from_millis(500));
    assert!(ask_one(&fixture, &limit, "d").await.passes());
    assert!(!ask_one(&fixture, &limit, "e").await.passes());
    assert!(!ask_one(&fixture, &limit, "b").await.passes());
    assert!(!ask_one(&fixture, &limit, "c").await.passes());
}

#[tokio::test]
async fn the_last_key_that_binds_nobody_is_found() {
    let fixture = Memory::of(1000);
    let (tight, loose) = (Limit::rates("1/hour"), Limit::rates("100/hour"));
    for number in 0..1000 {
        let limit = if number == 321 { &loose } else { &tight };
        assert!(ask_one(&fixture, limit, &format!("key {number}")).await.passes());
    }
    for number in 0..100 {
        assert!(ask_one(&fixture, &loose, &format!("new {number}")).await.passes());
    }
    assert_eq!(fixture.store.len(), 1000);
    for number in (0..1000).filter(|number| *number != 321) {
        assert!(!ask_one(&fixture, &tight, &format!("key {number}")).await.passes());
    }
}

#[tokio::test]
async fn requests_in_flight_are_never_forgotten() {
    let fixture = Memory::of(10);
    let (slots, pace) = (Limit::concurrent(5), Limit::rates("100/hour"));
    assert_eq!(count(&fixture, 2, &slots, "slots").await, 2);
    for number in 0..10_000 {
        fixture.advance(Duration::from_secs(1));
        assert!(ask_one(&fixture, &pace, &format!("key {number}")).await.passes());
    }
    assert_eq!(count(&fixture, 5, &slots, "slots").await, 3);
}

#[tokio::test]
async fn slots_given_back_leave_nothing_behind() {
    let fixture = Memory::of(3);
    let limit = Limit::concurrent(2);
    for name in ["a", "b", "c"] {
        assert!(ask_one(&fixture, &limit, name).await.passes());
    }
    assert_eq!(ask_one(&fixture, &limit, "d").await.retry_after, Some(Duration::from_secs(1)));
    give_back(&fixture, "b").await;
    assert_eq!(fixture.store.len(), 2);
    assert!(ask_one(&fixture, &limit, "d").await.passes());
    for name in ["a", "c", "d"] {
        give_back(&fixture, name).await;
    }
    assert!(fixture.store.is_empty());
}

#[tokio::test]
async fn new_keys_of_one_request_are_admitted_together_or_not_at_all() {
    let fixture = Memory::of(4);
    let (tight, loose) = (Limit::rates("1/hour"), Limit::rates("10/hour"));
    for name in ["a", "b"] {
        assert!(ask_one(&fixture, &tight, name).await.passes());
    }
    assert!(ask_one(&fixture, &loose, "known").await.passes());
    // There is room for one, and for two if `known` is evicted. In the second request `known` is in the batch itself.
    let three = [(&loose, "x"), (&tight, "y"), (&loose, "z")];
    assert_eq!(passing(&ask(&fixture, &three).await).iter().filter(|passes| !**passes).count(), 1);
    let with_known = [(&loose, "known"), (&tight, "y"), (&loose, "z")];
    let verdicts = ask(&fixture, &with_known).await;
    assert!(verdicts.iter().any(|verdict| !verdict.passes()), "{verdicts:?}");
    let two = ask(&fixture, &[(&loose, "x"), (&tight, "y")]).await;
    assert_eq!(passing(&two), [true, true]);
    assert_eq!(remaining(&two[0]), [9], "what was not admitted as a whole was charged nothing");
    assert!(fixture.store.len() <= 4);
    for name in ["a", "b", "y"] {
        assert!(!ask_one(&fixture, &tight, name).await.passes(), "{name}");
    }
}

#[tokio::test]
async fn what_expired_makes_way() {
    let fixture = Memory::of(1_000_000);
    let limit = Limit::rates("5/second");
    for number in 0..20_000 {
        fixture.advance(Duration::from_millis(10));
        assert!(ask_one(&fixture, &limit, &format!("key {number}")).await.passes());
    }
    // Each key matters for a second or two, in which two hundred new ones come.
    assert!(fixture.store.len() < 2000, "{}", fixture.store.len());
}

#[tokio::test]
async fn the_key_with_the_most_left_is_forgotten_first() {
    let fixture = Memory::of(1000);
    let limit = Limit::rates("10/hour");
    for number in 0..100 {
        assert_eq!(count(&fixture, 9, &limit, &format!("busy {number}")).await, 9);
    }
    for number in 0..20_000 {
        assert!(ask_one(&fixture, &limit, &format!("new {number}")).await.passes());
    }
    let mut kept = HashSet::new();
    for number in 0..100 {
        if count(&fixture, 2, &limit, &format!("busy {number}")).await == 1 {
            kept.insert(number);
        }
    }
    assert_eq!(kept.len(), 100, "busy keys are worth more than idle ones");
}

#[tokio::test]
async fn a_short_rate_does_not_hide_what_a_long_one_counted() {
    let fixture = Memory::of(1000);
    let limit = Limit::rates("1/second; 10/hour");
    for _ in 0..9 {
        assert!(ask_one(&fixture, &limit, "busy").await.passes());
        fixture.advance(Duration::from_secs(1));
    }
    for number in 0..20_000 {
        fixture.advance(Duration::from_millis(10));
        assert!(ask_one(&fixture, &limit, &format!("new {number}")).await.passes());
    }
    assert_eq!(remaining(&ask_one(&fixture, &limit, "busy").await), [0, 0]);
}

#[tokio::test]
async fn keys_in_turn_do_not_free_each_other() {
    let fixture = Memory::of(50_000);
    let limit = Limit::rates("5/hour");
    for number in 0..100_000 {
        assert!(ask_one(&fixture, &limit, &format!("old {number}")).await.passes());
    }
    let mut passed = 0;
    for number in 0..20 {
        passed += count(&fixture, 1, &limit, "alice").await;
        assert!(ask_one(&fixture, &limit, &format!("new {number}")).await.passes());
    }
    assert_eq!(passed, 5);
}

#[tokio::test]
async fn a_rule_that_changed_to_less_binds_from_its_first_refusal() {
    let fixture = Memory::of(5);
    let (before, after) = (Limit::rates("10/hour"), Limit::rates("3/hour"));
    assert_eq!(count(&fixture, 3, &before, "alice").await, 3);
    assert!(!ask_one(&fixture, &after, "alice").await.passes());
    for number in 0..1000 {
        assert!(ask_one(&fixture, &before, &format!("key {number}")).await.passes());
    }
    assert!(!ask_one(&fixture, &after, "alice").await.passes());
}

#[test]
fn threads_hammering_one_key_admit_exactly_as_many() {
    let fixture = Memory::of(100);
    let limit = Limit::rates("1000/hour");
    let passed: usize = std::thread::scope(|scope| {
        let hammer = || futures_util::FutureExt::now_or_never(count(&fixture, 2000, &limit, "alice"));
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(hammer)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic").expect("memory never waits")).sum()
    });
    assert_eq!(passed, 1000);
}
