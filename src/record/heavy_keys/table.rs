//! The heaviest keys of one limit, or the heaviest clients.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use super::key_counts::CountsByKey;
use super::key_counts::KeyCounts;
use super::space_saving::Entry;
use super::space_saving::SpaceSaving;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::key::OperatorKey;

/// The heaviest keys of the last hour by the minute, and of the last day by the hour. Of a minute that is over it keeps
/// `KEPT` keys by requests and as many by denials.
#[derive(Debug, Default)]
pub struct KeyTable {
    /// What each core counts in the current minute, in a box because most limits are met by no request for hours.
    cores: [Mutex<Option<Box<CoreTable>>>; CORES],
    finished: Mutex<Finished>,
}

/// What one core counts in one minute.
#[derive(Debug)]
struct CoreTable {
    minute: u64,
    /// The keys with the most requests and those with the most denials, counted in this order.
    heaviest: SpaceSaving<KeyHash, SeenKey, 2>,
}

/// What a core remembers of a key that it counts.
#[derive(Debug)]
struct SeenKey {
    key: Arc<OperatorKey>,
    first: Timestamp,
    last: Timestamp,
}

/// The minutes and hours that are over, the newest last. The last hour may still be under way.
#[derive(Debug, Default)]
struct Finished {
    minutes: VecDeque<(u64, CountsByKey)>,
    hours: VecDeque<(u64, CountsByKey)>,
}

/// Tables that cores count into without waiting for each other. With more cores than this some share one.
const CORES: usize = 16;

/// How many keys a core counts in a minute: as many as a hash table of 8,192 buckets takes, with about 1.5 MiB where each core
/// sees as many different keys. In a flood of keys with a request each, one that has a thousandth of the requests is counted
/// to within a percent.
const COUNTED: usize = 7168;

/// How many keys are kept of a minute or an hour that is over.
const KEPT: usize = 256;

const MINUTES_KEPT: u64 = 60;
const HOURS_KEPT: u64 = 24;

impl KeyTable {
    /// Counts a request of a key that passes; `key` makes its readable form when it is counted for the first time.
    pub fn count_passed(&self, hash: KeyHash, now: Timestamp, key: impl FnOnce() -> Arc<OperatorKey>) {
        self.count(hash, 0, now, key, |_| ());
    }

    /// Counts a request of a key that is denied or held, and returns the readable form of the key.
    pub fn count_denied(
        &self,
        hash: KeyHash,
        now: Timestamp,
        key: impl FnOnce() -> Arc<OperatorKey>,
    ) -> Arc<OperatorKey> {
        self.count(hash, 1, now, key, Arc::clone)
    }

    /// Counts a request of a key under a limit that would let it pass, and that another limit denies.
    pub fn count_met(&self, hash: KeyHash, now: Timestamp, key: impl FnOnce() -> Arc<OperatorKey>) -> Arc<OperatorKey> {
        self.count(hash, 0, now, key, Arc::clone)
    }

    fn count<T>(
        &self,
        hash: KeyHash,
        denied: u64,
        now: Timestamp,
        key: impl FnOnce() -> Arc<OperatorKey>,
        then: impl FnOnce(&Arc<OperatorKey>) -> T,
    ) -> T {
        let mut core = self.cores[own_core()].lock();
        let table = core.get_or_insert_with(|| Box::new(CoreTable::new(minute(now))));
        let new = || SeenKey { key: key(), first: now, last: now };
        table.heaviest.add(hash, [1, denied], new, |entry| {
            entry.value.last = now.max(entry.value.last);
            then(&entry.value.key)
        })
    }

    /// Puts together what the cores counted in a minute that is over.
    pub fn finish_minutes(&self, now: Timestamp) {
        let current = minute(now);
        let is_over = |table: &mut Box<CoreTable>| table.minute != current;
        let over: Vec<_> = self.cores.iter().filter_map(|core| core.lock().take_if(is_over)).collect();
        let mut finished = self.finished.lock();
        for table in over {
            let counts = table.counts();
            finished.add(table.minute, &counts);
        }
        finished.forget_before(current);
    }

    /// Every key of the last `minutes`, with what is certain of its requests. In no order.
    pub fn counts(&self, minutes: u64, now: Timestamp) -> CountsByKey {
        let mut all = CountsByKey::default();
        for core in &self.cores {
            let counts = core.lock().as_ref().map(|table| table.counts()).unwrap_or_default();
            all.add_all(&counts);
        }
        let finished = self.finished.lock();
        let (buckets, oldest) = if minutes <= MINUTES_KEPT {
            (&finished.minutes, minute(now).saturating_sub(minutes))
        } else {
            (&finished.hours, minute(now).saturating_sub(minutes) / 60)
        };
        for (_, counts) in buckets.iter().filter(|(number, _)| *number >= oldest) {
            all.add_all(counts);
        }
        drop(finished);
        all.0.retain(|_, counts| now.since(counts.last) <= Duration::from_secs(minutes * 60));
        all
    }

    /// Every key of one minute, which is the current one or was over not long ago.
    pub(super) fn minute(&self, minute: u64) -> CountsByKey {
        let mut all = CountsByKey::default();
        for core in &self.cores {
            let core = core.lock();
            let counts = core.as_ref().filter(|table| table.minute == minute).map(|table| table.counts());
            all.add_all(&counts.unwrap_or_default());
        }
        let finished = self.finished.lock();
        for (_, counts) in finished.minutes.iter().filter(|(number, _)| *number == minute) {
            all.add_all(counts);
        }
        all
    }

    /// Whether nothing was counted for a day.
    pub(super) fn is_empty(&self) -> bool {
        self.cores.iter().all(|core| core.lock().is_none()) && self.finished.lock().hours.is_empty()
    }
}

impl CoreTable {
    fn new(minute: u64) -> Self {
        Self { minute, heaviest: SpaceSaving::new(COUNTED) }
    }

    /// The counts of every key since it got its place.
    fn counts(&self) -> CountsByKey {
        let counts =
            self.heaviest.entries().map(|(&hash, Entry { value: SeenKey { key, first, last }, counts, .. })| {
                let [requests, denied] = *counts;
                (hash, KeyCounts { key: Arc::clone(key), requests, denied, first: *first, last: *last })
            });
        CountsByKey(counts.collect())
    }
}

impl Finished {
    fn add(&mut self, minute: u64, counts: &CountsByKey) {
        for (buckets, number) in [(&mut self.minutes, minute), (&mut self.hours, minute / 60)] {
            if buckets.back().is_none_or(|(newest, _)| *newest != number) {
                buckets.push_back((number, CountsByKey::default()));
            }
            if let Some((_, bucket)) = buckets.back_mut() {
                bucket.add_all(counts);
                bucket.keep_heaviest(KEPT);
            }
        }
    }

    fn forget_before(&mut self, minute: u64) {
        // A clock that was set back leaves minutes of the future behind.
        let is_kept = |number: u64, now: u64, most: u64| number <= now && number + most >= now;
        self.minutes.retain(|(number, _)| is_kept(*number, minute, MINUTES_KEPT));
        self.hours.retain(|(number, _)| is_kept(*number, minute / 60, HOURS_KEPT));
    }
}

fn minute(moment: Timestamp) -> u64 {
    moment.as_micros() / 60_000_000
}

/// The table of this thread.
fn own_core() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % CORES);
    OWN.with(|own| *own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::heavy_keys::Order;

    const NOON: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn after(seconds: u64) -> Timestamp {
        NOON + Duration::from_secs(seconds)
    }

    fn key() -> Arc<OperatorKey> {
        Arc::new(OperatorKey::default())
    }

    fn found(table: &KeyTable, minutes: u64, now: Timestamp, order: Order) -> Vec<(u64, u64)> {
        table.counts(minutes, now).busiest(order, 1000).iter().map(|counts| (counts.requests, counts.denied)).collect()
    }

    #[test]
    fn requests_and_denials_of_a_key_are_counted_over_several_minutes() {
        let table = KeyTable::default();
        for number in 0..20 {
            table.count_passed(KeyHash(1), after(number * 10), key);
            table.count_denied(KeyHash(2), after(number * 10), key);
            table.finish_minutes(after(number * 10));
        }
        table.count_passed(KeyHash(1), after(190), key);
        let now = after(190);
        assert_eq!(found(&table, 10, now, Order::Requests), [(21, 0), (20, 20)]);
        assert_eq!(found(&table, 10, now, Order::Denied), [(20, 20)]);
        assert_eq!(table.counts(10, now).0[&KeyHash(2)].first, NOON);
        assert!(found(&table, 10, after(2000), Order::Requests).is_empty());
        table.finish_minutes(after(2000));
        assert_eq!(found(&table, 60, after(2000), Order::Denied), [(20, 20)]);
        // The minutes are gone, the hours are not.
        table.finish_minutes(after(3 * 3600));
        assert_eq!(found(&table, 1440, after(3 * 3600), Order::Denied), [(20, 20)]);
        table.finish_minutes(after(30 * 3600));
        assert!(table.is_empty());
    }

    #[test]
    fn one_that_is_denied_is_found_among_very_many_who_pass() {
        let table = KeyTable::default();
        for number in 0..200_000 {
            table.count_passed(KeyHash(1000 + number), NOON, key);
            if number % 1000 == 0 {
                table.count_denied(KeyHash(1), NOON, key);
            }
        }
        assert_eq!(table.counts(1, NOON).busiest(Order::Denied, 1)[0].denied, 200);
        table.finish_minutes(after(60));
        assert_eq!(table.counts(5, after(60)).busiest(Order::Denied, 1)[0].denied, 200);
        assert!(table.counts(5, after(60)).0.len() <= 2 * KEPT);
    }
    #[test]
    fn the_heaviest_twenty_are_within_two_percent_in_a_flood_of_different_keys() {
        let (table, mut random) = (KeyTable::default(), fastrand::Rng::with_seed(7));
        let shares: Vec<f64> = (0..20).map(|rank| 0.003 * 0.93_f64.powi(rank)).collect();
        let mut exact = [0_u64; 20];
        for number in 0..600_000_u32 {
            let now = after(u64::from(number) / 4000);
            let mut point = random.f64();
            let heavy = shares.iter().position(|share| {
                point -= share;
                point < 0.0
            });
            match heavy {
                Some(heavy) => {
                    exact[heavy] += 1;
                    table.count_denied(KeyHash(heavy as u128), now, key);
                }
                None => table.count_passed(KeyHash(1000 + u128::from(number)), now, key),
            }
            if number % 4000 == 0 {
                table.finish_minutes(now);
            }
        }
        let counted = table.counts(10, after(150)).0;
        for (heavy, exact) in exact.into_iter().enumerate() {
            let KeyCounts { requests, denied, .. } = counted[&KeyHash(heavy as u128)];
            assert!(requests <= exact && requests * 100 >= exact * 98, "{heavy}: {requests} of {exact}");
            assert_eq!(requests, denied);
        }
    }
}
