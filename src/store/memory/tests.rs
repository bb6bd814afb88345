use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::proptest;

use super::shard::Shard;
use super::*;
use crate::rules::decision::{Batch, Charge};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Count, Rule, State};
use crate::store::memory::eviction::EvictionRank;
use crate::store::memory::shard::Seconds;
use crate::words::clock::{Clock, Timestamp};

fn pace(rates: &str) -> Rule {
    Rule::Rates {
        algorithm: crate::rules::limit::Algorithm::SlidingWindowLog,
        rates: rates.parse().expect(rates),
        cost: NonZeroU32::MIN,
    }
}

/// Keys whose halves are equal for many: the index has to tell them apart.
fn key(number: u8) -> KeyHash {
    KeyHash(u128::from(number) << 64 | u128::from(number % 3))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH + Duration::from_secs(seconds)
}

#[track_caller]
fn check_bounds(max_keys: usize, shards: usize) {
    let store = MemoryStore::new(&MemorySettings { max_keys, max_sessions: 1000, snapshot: None }, Clock::system());
    assert_eq!(store.shards.len(), shards, "{max_keys}");
    let bounds = store.shards.iter().map(|shard| shard.0.lock().bound());
    assert_eq!(bounds.sum::<usize>(), max_keys);
}

#[test]
fn all_shards_together_hold_as_many_keys_as_allowed() {
    check_bounds(0, 1);
    check_bounds(1, 1);
    check_bounds(2047, 1);
    check_bounds(2048, 2);
    check_bounds(5001, 4);
    check_bounds(1_000_000, 64);
    check_bounds(100_000_001, 64);
}

#[test]
fn a_store_of_no_keys_refuses_and_remembers_nothing() {
    let store = MemoryStore::new(&MemorySettings { max_keys: 0, max_sessions: 1000, snapshot: None }, Clock::system());
    let rule = pace("1/minute");
    let charge = Charge { count: Count::Attempts, ..Charge::new(0, key(1), &rule) };
    let verdicts = store.decide_now(&Batch { charges: std::iter::once(charge).collect(), ..Batch::default() });
    assert_eq!(verdicts[0].retry_after, Some(Duration::from_secs(1)));
    assert!(store.is_empty());
}

#[test]
fn the_key_with_the_most_budget_left_goes_first() {
    let rule = pace("4/minute; 100/hour");
    let rank = |charges| {
        let mut state = State::fresh(&rule);
        for _ in 0..charges {
            state.charge(&rule, &[], at(1000));
        }
        EvictionRank::of(&state, &rule, &state.standings(&rule, at(1000)), at(1000))
    };
    let second = |seconds| Seconds::before(at(seconds));
    assert_eq!(rank(0), EvictionRank::default());
    assert!(rank(1).left > rank(2).left && rank(2).left > rank(3).left);
    assert!(!rank(3).must_stay(second(1000)));
    assert!(rank(4).must_stay(second(1000)) && rank(4).must_stay(second(1059)));
    assert!(!rank(4).must_stay(second(1060)));
    assert_eq!(rank(4).left, rank(3).left, "when it opens, one is left as well");
}

#[test]
fn a_key_with_requests_in_flight_always_stays() {
    let rule = Rule::Concurrent(NonZeroU32::MIN);
    let mut state = State::fresh(&rule);
    state.charge(&rule, &[], at(0));
    let rank = EvictionRank::of(&state, &rule, &state.standings(&rule, at(0)), at(0));
    assert!(rank.must_stay(Seconds(u32::MAX - 1)));
}

#[test]
fn moments_long_after_the_last_second_are_that_second() {
    let latest = Timestamp::from_micros(u64::MAX);
    assert_eq!(Seconds::after(latest), Seconds::NEVER);
    assert_eq!(Seconds::before(latest), Seconds::NEVER);
    assert_eq!((Seconds::after(at(7)), Seconds::before(at(7))), (Seconds(7), Seconds(7)));
    let between = at(7) + Duration::from_micros(1);
    assert_eq!((Seconds::after(between), Seconds::before(between)), (Seconds(8), Seconds(7)));
}

proptest! {
    #[test]
    fn every_key_is_found_where_it_is(steps in vec((any::<u8>(), 0..40_u64), 0..120), bound in 1..60_usize) {
        let rule = pace("1/minute");
        let mut shard = Shard::new(bound);
        let mut charged: HashMap<u8, u64> = HashMap::new();
        let mut now = 1_000;
        for (number, wait) in steps {
            now += wait / 10;
            if number % 5 == 0 {
                shard.remove_expired(at(now), 3);
            }
            let place = match shard.find(key(number)) {
                Some(place) => place,
                None => match shard.admit(key(number), &rule, &Batch::default(), at(now)) {
                    Ok(place) => place,
                    Err(full) => {
                        assert!(full.retry_after >= Duration::from_secs(1));
                        assert_eq!(shard.len(), bound);
                        continue;
                    }
                },
            };
            assert_eq!(shard.find(key(number)), Some(place));
            if shard.state(place).opens_at(&rule, &[], at(now)).is_none() {
                shard.charge(place, &rule, &[], at(now));
                charged.insert(number, now);
            }
            assert!(shard.len() <= bound);
            for (number, since) in &charged {
                let found = shard.find(key(*number)).map(|place| shard.state(place).opens_at(&rule, &[], at(now)));
                if now < since + 60 {
                    assert_eq!(found, Some(Some(at(since + 60))));
                } else {
                    assert_eq!(found.flatten(), None);
                }
            }
        }
    }
}
