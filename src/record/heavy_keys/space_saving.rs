//! The heaviest keys of a stream, in bounded memory: Space-Saving, from Metwally, Agrawal and El Abbadi, "Efficient
//! Computation of Frequent and Top-k Elements in Data Streams" (ICDT 2005). Where the paper replaces the lightest key
//! each time that a new one comes, this drops the lighter half of all keys when there is no room, as Manku and Motwani
//! drop keys in "Approximate Frequency Counts over Data Streams" (VLDB 2002): a known key costs one look-up, and no
//! order is kept.
//!
//! The *floor* is the largest weight that a key can have that is not counted. A key begins with the floor as its
//! *error*. With room for `C` keys, `W` weights, and a total of `N` by one of them:
//!
//! - `count <= true weight <= count + error`, and `error <= floor <= 2 W N / C`.
//! - Every key that weighs more than the floor is there.
//!
//! Proof of the bound: let the excess of a key be the difference of its `count + error` and the floor. A weight of one
//! adds at most one to the sum of all excess, also if its key is new. When the floor rises by `d`, it rises at most to
//! the `count + error` of the `C / 2 W` heaviest keys, so that all excess together shrinks by `d C / 2 W` at least.
//!
//! The reported value is `count`: the certain count since the key got its place. A flood of keys with a request each
//! raises the floor by one for every `C` of its requests. A key with several requests among `C` stays, and its count is
//! exact.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::rules::key::{KeyHash, OperatorKey};
use crate::words::clock::Timestamp;

/// The heaviest keys of a stream by each of `W` weights, and a value for every key that is among them.
#[derive(Clone, Debug)]
pub struct SpaceSaving<K, V, const W: usize> {
    capacity: usize,
    floors: [u64; W],
    /// It hashes with a seed of its own.
    entries: HashMap<K, Entry<V, W>>,
}

/// A key that is counted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry<V, const W: usize> {
    pub value: V,
    /// The certain counts, by each weight.
    pub counts: [u64; W],
    /// The true weight is above the count by no more than this.
    errors: [u64; W],
}

impl<K: Copy + Eq + Hash, V, const W: usize> SpaceSaving<K, V, W> {
    /// `capacity`: how many keys it counts at most.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), floors: [0; W], entries: HashMap::new() }
    }

    /// Counts a key, and gives its entry to `then`. A key that is not counted yet gets a new value.
    pub fn add<T>(
        &mut self,
        key: K,
        weights: [u64; W],
        new: impl FnOnce() -> V,
        then: impl FnOnce(&mut Entry<V, W>) -> T,
    ) -> T {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.add(weights);
            return then(entry);
        }
        if self.entries.len() == self.capacity {
            self.drop_lighter_half();
        }
        let mut entry = Entry { value: new(), counts: weights, errors: self.floors };
        let result = then(&mut entry);
        self.entries.insert(key, entry);
        result
    }

    /// `None`: the key is not counted.
    pub fn get(&self, key: &K) -> Option<&Entry<V, W>> {
        self.entries.get(key)
    }

    /// Every key that is counted, in no particular order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&K, &Entry<V, W>)> {
        self.entries.iter()
    }

    /// Keeps the keys that are heaviest by any of the weights, half of all at most.
    fn drop_lighter_half(&mut self) {
        let kept_by_each = self.capacity / (2 * W);
        let mut weights: Vec<u64> = Vec::with_capacity(self.entries.len());
        let mut limits = self.floors;
        for (by, limit) in limits.iter_mut().enumerate() {
            weights.clear();
            weights.extend(self.entries.values().map(|entry| entry.upper_bound(by)));
            let (_, heaviest_dropped, _) = weights.select_nth_unstable_by(kept_by_each, |one, other| other.cmp(one));
            *limit = *heaviest_dropped;
        }
        let floors = &mut self.floors;
        self.entries.retain(|_, entry| {
            let is_kept = (0..W).any(|by| entry.upper_bound(by) > limits[by]);
            if !is_kept {
                for (by, floor) in floors.iter_mut().enumerate() {
                    *floor = entry.upper_bound(by).max(*floor);
                }
            }
            is_kept
        });
    }
}

impl<V, const W: usize> Entry<V, W> {
    fn add(&mut self, weights: [u64; W]) {
        for (count, weight) in self.counts.iter_mut().zip(weights) {
            *count += weight;
        }
    }

    /// The true weight is not above this.
    fn upper_bound(&self, by: usize) -> u64 {
        self.counts[by] + self.errors[by]
    }
}

// The counts of one key.

/// The requests of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyCounts {
    pub key: Arc<OperatorKey>,
    pub requests: u64,
    pub denied: u64,
    /// Requests whose outcome is a failure.
    pub failed: u64,
    /// Its first request, and its last one.
    pub first: Timestamp,
    pub last: Timestamp,
}

/// By which count keys are ordered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    Requests,
    Denied,
    Failed,
}

impl Order {
    pub fn count(self, counts: &KeyCounts) -> u64 {
        match self {
            Self::Requests => counts.requests,
            Self::Denied => counts.denied,
            Self::Failed => counts.failed,
        }
    }
}

impl KeyCounts {
    /// Adds counts from another place or time.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.denied += other.denied;
        self.failed += other.failed;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// The counts of several keys.
#[derive(Clone, Debug, Default)]
pub struct CountsByKey(pub(super) std::collections::HashMap<KeyHash, KeyCounts>);

impl CountsByKey {
    /// Adds the counts of a key.
    pub(super) fn add(&mut self, key: KeyHash, counts: &KeyCounts) {
        self.0.entry(key).and_modify(|known| known.merge(counts)).or_insert_with(|| counts.clone());
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for (key, counts) in &other.0 {
            self.add(*key, counts);
        }
    }

    /// Keeps the keys with the most requests, the most denials and the most failures, `most` of each.
    pub(super) fn keep_heaviest(&mut self, most: usize) {
        if self.0.len() <= most {
            return;
        }
        let mut kept = HashSet::new();
        for order in [Order::Requests, Order::Denied, Order::Failed] {
            let weights = self.0.iter().map(|(key, counts)| (order.count(counts), *key));
            let mut heaviest: Vec<_> = weights.filter(|(count, _)| *count > 0).collect();
            heaviest.sort_unstable_by(|one, other| other.cmp(one));
            kept.extend(heaviest.into_iter().take(most).map(|(_, key)| key));
        }
        self.0.retain(|key, _| kept.contains(key));
    }

    /// The busiest of these keys; of equal ones the one that came last.
    pub fn busiest(self, order: Order, most: usize) -> Vec<KeyCounts> {
        let mut sorted: Vec<_> = self.0.into_iter().filter(|(_, counts)| order.count(counts) > 0).collect();
        sorted.sort_unstable_by(|(key, one), (other_key, other)| {
            let weight = |counts: &KeyCounts| (order.count(counts), counts.last);
            weight(other).cmp(&weight(one)).then(key.cmp(other_key))
        });
        sorted.into_iter().take(most).map(|(_, counts)| counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The counts, heaviest first.
    fn certain(sketch: &SpaceSaving<u64, (), 1>) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = sketch.entries().map(|(&key, entry)| (key, entry.counts[0])).collect();
        all.sort_by_key(|&(key, count)| (std::cmp::Reverse(count), key));
        all
    }

    fn counted(stream: impl IntoIterator<Item = u64>, capacity: usize) -> SpaceSaving<u64, (), 1> {
        let mut sketch = SpaceSaving::new(capacity);
        for key in stream {
            sketch.add(key, [1], || (), |_| ());
            assert!(sketch.entries.len() <= capacity);
        }
        sketch
    }

    /// Keys from 1 on, each with a probability of one by its number.
    fn zipf(length: usize, keys: u32, seed: u64) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let sums: Vec<f64> = (1..=keys)
            .scan(0.0, |sum, key| {
                *sum += 1.0 / f64::from(key);
                Some(*sum)
            })
            .collect();
        let total = sums.last().copied().unwrap();
        (0..length).map(|_| sums.partition_point(|&sum| sum < random.f64() * total) as u64 + 1).collect()
    }

    fn exact(stream: &[u64]) -> HashMap<u64, u64> {
        let mut counts = HashMap::new();
        for &key in stream {
            *counts.entry(key).or_default() += 1;
        }
        counts
    }

    #[test]
    fn the_heaviest_twenty_of_a_skewed_stream_are_found_within_two_percent() {
        for seed in 0..5 {
            let stream = zipf(300_000, 1_000_000, seed);
            let exact = exact(&stream);
            let mut true_top: Vec<_> = exact.iter().map(|(&key, &count)| (count, key)).collect();
            true_top.sort_unstable_by(|one, other| other.cmp(one));
            let sketch = counted(stream.iter().copied(), 1024);
            let found = certain(&sketch);
            for &(count, key) in &true_top[..20] {
                let position = found.iter().position(|&(candidate, _)| candidate == key).expect("it is counted");
                assert!(position < 22, "{key} is at {position}");
                let certain = found[position].1;
                assert!(certain <= count && certain * 100 >= count * 98, "{key}: {certain} of {count}");
            }
        }
    }

    #[test]
    fn a_million_different_keys_take_no_more_room_and_do_not_push_out_the_heavy_ones() {
        let flood = 1000..1_001_000_u64;
        let stream = flood.flat_map(|key| (key % 100 == 0).then_some(key / 100 % 10).into_iter().chain([key]));
        let sketch = counted(stream, 7168);
        let found = certain(&sketch);
        let mut heaviest: Vec<_> = found[..10].iter().map(|&(key, _)| key).collect();
        heaviest.sort_unstable();
        assert_eq!(heaviest, (0..10).collect::<Vec<_>>());
        assert!(found[..10].iter().all(|&(_, count)| count == 1000), "{:?}", &found[..10]);
    }

    proptest! {
        #[test]
        fn the_bounds_hold_by_each_weight(
            stream in prop::collection::vec((0_u64..60, 0_u64..4, 0_u64..4), 0..600),
            capacity in 1_usize..40,
        ) {
            let mut sketch = SpaceSaving::<u64, (), 2>::new(capacity);
            for &(key, one, other) in &stream {
                sketch.add(key, [one, other], || (), |_| ());
                prop_assert!(sketch.entries.len() <= capacity);
            }
            for by in 0..2 {
                let mut exact = HashMap::<u64, u64>::new();
                for &(key, one, other) in &stream {
                    *exact.entry(key).or_default() += [one, other][by];
                }
                let (total, floor) = (exact.values().sum::<u64>(), sketch.floors[by]);
                prop_assert!(floor * (capacity / 4) as u64 <= total, "{floor} of {total}");
                for (key, entry) in sketch.entries() {
                    prop_assert!(entry.counts[by] <= exact[key] && exact[key] <= entry.upper_bound(by));
                    prop_assert!(entry.errors[by] <= floor);
                }
                for (key, weight) in exact {
                    prop_assert!(weight <= floor || sketch.entries.contains_key(&key));
                }
            }
        }
    }
}
