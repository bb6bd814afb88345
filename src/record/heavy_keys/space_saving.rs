//! The heaviest keys of a stream, in bounded memory: Space-Saving, from Metwally, Agrawal and El Abbadi, "Efficient
//! Computation of Frequent and Top-k Elements in Data Streams" (ICDT 2005).
//!
//! It counts at most `C` keys. A key that is not counted yet takes the place of the one with the smallest count, and
//! begins with that count as its *error*. With a total weight of `N`:
//!
//! - `count - error <= true weight <= count`, and `error <= N / C`.
//! - Every key that weighs more than `N / C` is there. A flood of other keys replaces only the lightest ones: it raises the
//!   smallest count by one for every `C` of its requests, so a key that is asked for more often than that stays.
//!
//! What is reported is `count - error`: what was certainly counted since the key got its place. For a key that was heavy
//! from its beginning it is exact.

use std::collections::HashMap;
use std::hash::Hash;

/// At most `capacity` keys of a stream, each with a value of its own.
#[derive(Clone, Debug)]
pub struct SpaceSaving<K, V> {
    capacity: usize,
    /// A heap: the entry at position `n` has at most the count of those at `2n + 1` and `2n + 2`.
    heap: Vec<Entry<K, V>>,
    /// The position of each key in the heap.
    positions: HashMap<K, usize>,
}

/// A key that is counted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry<K, V> {
    pub key: K,
    /// At least the true weight of the key.
    pub count: u64,
    /// `count - error` is at most the true weight of the key.
    pub error: u64,
    pub value: V,
}

impl<K: Copy + Eq + Hash, V> SpaceSaving<K, V> {
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), heap: Vec::new(), positions: HashMap::new() }
    }

    /// Counts a key, and returns its value: the one that it has, or else a new one.
    pub fn add(&mut self, key: K, weight: u64, new: impl FnOnce() -> V) -> &mut V {
        let position = match self.positions.get(&key) {
            Some(&position) => {
                self.heap[position].count += weight;
                self.sink(position)
            }
            None if self.heap.len() < self.capacity => {
                self.heap.push(Entry { key, count: weight, error: 0, value: new() });
                self.positions.insert(key, self.heap.len() - 1);
                self.rise(self.heap.len() - 1)
            }
            None => {
                let lightest = &mut self.heap[0];
                self.positions.remove(&lightest.key);
                let error = lightest.count;
                *lightest = Entry { key, count: error + weight, error, value: new() };
                self.positions.insert(key, 0);
                self.sink(0)
            }
        };
        &mut self.heap[position].value
    }

    /// The value of a key, if it is counted.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        Some(&mut self.heap[*self.positions.get(key)?].value)
    }

    /// Every key that is counted, in no particular order.
    pub fn entries(&self) -> &[Entry<K, V>] {
        &self.heap
    }

    /// Moves an entry towards the leaves of the heap; returns where it stays.
    fn sink(&mut self, mut position: usize) -> usize {
        loop {
            let children = [2 * position + 1, 2 * position + 2];
            let lighter = children.into_iter().filter(|&child| child < self.heap.len());
            let Some(lightest) = lighter.min_by_key(|&child| self.heap[child].count) else { return position };
            if self.heap[lightest].count >= self.heap[position].count {
                return position;
            }
            self.swap(position, lightest);
            position = lightest;
        }
    }

    /// Moves an entry towards the root of the heap; returns where it stays.
    fn rise(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent].count <= self.heap[position].count {
                break;
            }
            self.swap(position, parent);
            position = parent;
        }
        position
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.positions.insert(self.heap[one].key, one);
        self.positions.insert(self.heap[other].key, other);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The certain counts, heaviest first.
    fn certain(sketch: &SpaceSaving<u64, ()>) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = sketch.entries().iter().map(|entry| (entry.key, entry.count - entry.error)).collect();
        all.sort_by_key(|&(key, count)| (std::cmp::Reverse(count), key));
        all
    }

    fn counted(stream: impl IntoIterator<Item = u64>, capacity: usize) -> SpaceSaving<u64, ()> {
        let mut sketch = SpaceSaving::new(capacity);
        for key in stream {
            sketch.add(key, 1, || ());
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
        let sketch = counted(stream, 1024);
        assert_eq!((sketch.entries().len(), sketch.positions.len()), (1024, 1024));
        let found = certain(&sketch);
        let mut heaviest: Vec<_> = found[..10].iter().map(|&(key, _)| key).collect();
        heaviest.sort_unstable();
        assert_eq!(heaviest, (0..10).collect::<Vec<_>>());
        assert!(found[..10].iter().all(|&(_, count)| (980..=1000).contains(&count)), "{:?}", &found[..10]);
    }

    proptest! {
        #[test]
        fn the_bounds_of_the_paper_hold(stream in prop::collection::vec(0_u64..60, 0..600), capacity in 1_usize..40) {
            let exact = exact(&stream);
            let sketch = counted(stream.iter().copied(), capacity);
            let total = stream.len() as u64;
            prop_assert!(sketch.entries().len() <= capacity);
            prop_assert_eq!(sketch.entries().iter().map(|entry| entry.count).sum::<u64>(), total);
            for entry in sketch.entries() {
                let count = exact[&entry.key];
                prop_assert!(entry.count - entry.error <= count && count <= entry.count);
                prop_assert!(entry.error <= total / capacity as u64);
                prop_assert_eq!(sketch.heap[sketch.positions[&entry.key]].key, entry.key);
            }
            for (key, count) in exact {
                prop_assert!(count <= total / capacity as u64 || sketch.positions.contains_key(&key));
            }
        }
    }
}
