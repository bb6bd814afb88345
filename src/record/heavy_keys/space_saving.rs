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

use std::array;
use std::hash::Hash;

use hashbrown::HashMap;

/// The heaviest keys of a stream by each of `N` weights, at most `capacity` by each, and a value for every key that is
/// among them. A key that is among the heaviest by several weights is found in one step and has one value.
#[derive(Clone, Debug)]
pub struct SpaceSaving<K, V, const N: usize> {
    capacity: usize,
    entries: Vec<Entry<K, V, N>>,
    /// One for each weight. The node at position `n` has at most the count of those at `2n + 1` and `2n + 2`.
    heaps: [Vec<Node>; N],
    /// The place of each key in `entries`. It hashes with a seed of its own.
    places: HashMap<K, usize>,
}

/// A key that is counted by at least one weight.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry<K, V, const N: usize> {
    pub key: K,
    pub value: V,
    /// `None`: the key is not among the heaviest by this weight.
    tracked: [Option<Tracked>; N],
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Tracked {
    /// In the heap.
    position: usize,
    /// The count less this is at most the true weight of the key.
    error: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Node {
    /// At least the true weight of the key.
    count: u64,
    /// The place of the key in `entries`.
    place: usize,
}

impl<K: Copy + Eq + Hash, V, const N: usize> SpaceSaving<K, V, N> {
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            entries: Vec::new(),
            heaps: array::from_fn(|_| Vec::new()),
            places: HashMap::new(),
        }
    }

    /// Counts a key by each weight that is above zero, which at least one is, and returns its value: the one that it has, or
    /// else a new one.
    pub fn add(&mut self, key: K, weights: [u64; N], new: impl FnOnce() -> V) -> &mut V {
        let mut place = match self.places.get(&key) {
            Some(&place) => place,
            None => self.insert(key, new()),
        };
        for (by, weight) in weights.into_iter().enumerate().filter(|(_, weight)| *weight > 0) {
            place = self.weigh(by, place, weight);
        }
        &mut self.entries[place].value
    }

    /// Every key that is counted, in no particular order.
    pub fn entries(&self) -> &[Entry<K, V, N>] {
        &self.entries
    }

    fn insert(&mut self, key: K, value: V) -> usize {
        let place = self.entries.len();
        self.entries.push(Entry { key, value, tracked: [None; N] });
        self.places.insert(key, place);
        place
    }

    /// Adds to one weight of the key at this place, and returns its place from then on.
    fn weigh(&mut self, by: usize, place: usize, weight: u64) -> usize {
        let heap = &mut self.heaps[by];
        let mut left = None;
        let position = match self.entries[place].tracked[by] {
            Some(Tracked { position, .. }) => {
                heap[position].count += weight;
                position
            }
            None if heap.len() < self.capacity => {
                heap.push(Node { count: weight, place });
                let position = heap.len() - 1;
                self.entries[place].tracked[by] = Some(Tracked { position, error: 0 });
                self.rise(by, position);
                return place;
            }
            None => {
                let lightest = heap[0];
                heap[0] = Node { count: lightest.count + weight, place };
                self.entries[lightest.place].tracked[by] = None;
                self.entries[place].tracked[by] = Some(Tracked { position: 0, error: lightest.count });
                left = Some(lightest.place);
                0
            }
        };
        self.sink(by, position);
        match left.filter(|&left| self.entries[left].tracked.iter().all(Option::is_none)) {
            Some(left) => {
                self.remove(left);
                if place == self.entries.len() { left } else { place }
            }
            None => place,
        }
    }

    /// Removes the key at this place, which no heap has. The last entry takes the place.
    fn remove(&mut self, place: usize) {
        let removed = self.entries.swap_remove(place);
        self.places.remove(&removed.key);
        let Some(moved) = self.entries.get(place) else { return };
        self.places.insert(moved.key, place);
        for (heap, tracked) in self.heaps.iter_mut().zip(&moved.tracked) {
            if let Some(tracked) = tracked {
                heap[tracked.position].place = place;
            }
        }
    }

    /// Moves a node towards the leaves of its heap.
    fn sink(&mut self, by: usize, mut position: usize) {
        loop {
            let heap = &self.heaps[by];
            let children = [2 * position + 1, 2 * position + 2];
            let lighter = children.into_iter().filter(|&child| child < heap.len());
            let Some(lightest) = lighter.min_by_key(|&child| heap[child].count) else { return };
            if heap[lightest].count >= heap[position].count {
                return;
            }
            self.swap(by, position, lightest);
            position = lightest;
        }
    }

    /// Moves a node towards the root of its heap.
    fn rise(&mut self, by: usize, mut position: usize) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heaps[by][parent].count <= self.heaps[by][position].count {
                return;
            }
            self.swap(by, position, parent);
            position = parent;
        }
    }

    fn swap(&mut self, by: usize, one: usize, other: usize) {
        let heap = &mut self.heaps[by];
        heap.swap(one, other);
        for position in [one, other] {
            if let Some(tracked) = &mut self.entries[heap[position].place].tracked[by] {
                tracked.position = position;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each key that is counted by a weight, its count and its error.
    fn bounds<const N: usize>(sketch: &SpaceSaving<u64, (), N>, by: usize) -> Vec<(u64, u64, u64)> {
        let of = |entry: &Entry<u64, (), N>| {
            let tracked = entry.tracked[by]?;
            Some((entry.key, sketch.heaps[by][tracked.position].count, tracked.error))
        };
        sketch.entries().iter().filter_map(of).collect()
    }

    /// The certain counts, heaviest first.
    fn certain(sketch: &SpaceSaving<u64, (), 1>) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = bounds(sketch, 0).into_iter().map(|(key, count, error)| (key, count - error)).collect();
        all.sort_by_key(|&(key, count)| (std::cmp::Reverse(count), key));
        all
    }

    fn counted(stream: impl IntoIterator<Item = u64>, capacity: usize) -> SpaceSaving<u64, (), 1> {
        let mut sketch = SpaceSaving::new(capacity);
        for key in stream {
            sketch.add(key, [1], || ());
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
        assert_eq!((sketch.entries().len(), sketch.places.len(), sketch.heaps[0].len()), (1024, 1024, 1024));
        let found = certain(&sketch);
        let mut heaviest: Vec<_> = found[..10].iter().map(|&(key, _)| key).collect();
        heaviest.sort_unstable();
        assert_eq!(heaviest, (0..10).collect::<Vec<_>>());
        assert!(found[..10].iter().all(|&(_, count)| (980..=1000).contains(&count)), "{:?}", &found[..10]);
    }

    proptest! {
        #[test]
        fn the_bounds_of_the_paper_hold_by_each_weight(
            stream in prop::collection::vec((0_u64..60, any::<bool>()), 0..600),
            capacity in 1_usize..40,
        ) {
            let mut sketch = SpaceSaving::new(capacity);
            for (key, is_denied) in &stream {
                sketch.add(*key, [1, u64::from(*is_denied)], || ());
            }
            let all = stream.iter().map(|(key, _)| *key).collect::<Vec<_>>();
            let denied = stream.iter().filter(|(_, is_denied)| *is_denied).map(|(key, _)| *key).collect::<Vec<_>>();
            for (by, stream) in [all, denied].into_iter().enumerate() {
                let (exact, total) = (exact(&stream), stream.len() as u64);
                let counted = bounds(&sketch, by);
                prop_assert!(counted.len() <= capacity);
                prop_assert_eq!(counted.iter().map(|(_, count, _)| count).sum::<u64>(), total);
                for &(key, count, error) in &counted {
                    prop_assert!(count - error <= exact[&key] && exact[&key] <= count);
                    prop_assert!(error <= total / capacity as u64);
                }
                for (key, count) in exact {
                    let is_counted = counted.iter().any(|(known, ..)| *known == key);
                    prop_assert!(count <= total / capacity as u64 || is_counted);
                }
            }
        }

        #[test]
        fn heaps_entries_and_places_agree(
            stream in prop::collection::vec((0_u64..60, 0_u64..4, 0_u64..4), 0..600),
            capacity in 1_usize..20,
        ) {
            let mut sketch = SpaceSaving::<u64, (), 2>::new(capacity);
            for (key, one, other) in stream.into_iter().filter(|(_, one, other)| one + other > 0) {
                sketch.add(key, [one, other], || ());
                prop_assert_eq!(sketch.places.len(), sketch.entries.len());
            }
            for (place, entry) in sketch.entries.iter().enumerate() {
                prop_assert_eq!(sketch.places[&entry.key], place);
                prop_assert!(entry.tracked.iter().any(Option::is_some));
            }
            for (by, heap) in sketch.heaps.iter().enumerate() {
                for (position, node) in heap.iter().enumerate() {
                    prop_assert!(heap[position.saturating_sub(1) / 2].count <= node.count);
                    prop_assert_eq!(sketch.entries[node.place].tracked[by].map(|it| it.position), Some(position));
                }
            }
        }
    }
}
