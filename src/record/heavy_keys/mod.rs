//! The heaviest keys of each limit, and the heaviest clients, over the last minutes and hours.
//!
//! Each core counts into tables of its own, a minute at a time; once a second the process checks whether a minute has
//! ended, and merges the counts of the cores.

pub mod space_saving;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

pub use self::space_saving::{CountsByKey, KeyCounts, Order};
use crate::record::heavy_keys::space_saving::{Entry, SpaceSaving};
use crate::rules::key::{KeyHash, OperatorKey, OperatorPart};
use crate::words::clock::Timestamp;

// The heaviest keys of one limit, or the heaviest clients.

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

/// The heaviest keys of the last hour by the minute, and of the last day by the hour. After a minute has ended, it
/// keeps `KEPT` keys by requests, as many by denials and as many by failures.
#[derive(Debug, Default)]
pub struct KeyTable {
    /// The counts of each core in the current minute, in a box because most limits are met by no request for hours.
    cores: [Mutex<Option<Box<CoreTable>>>; CORES],
    finished: Mutex<Finished>,
}

/// The counts of one core in one minute.
#[derive(Debug)]
struct CoreTable {
    minute: u64,
    /// The keys with the most requests, denials and failures, counted in this order.
    heaviest: SpaceSaving<KeyHash, SeenKey, 3>,
}

/// The facts of a key that a core counts.
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

impl KeyTable {
    /// Counts a request of a key that passes; `key` makes its readable form when it is counted for the first time.
    pub fn count_passed(&self, hash: KeyHash, now: Timestamp, key: impl FnOnce() -> Arc<OperatorKey>) {
        self.count(hash, [1, 0, 0], now, key, |_| ());
    }

    /// Counts a request of a key that is denied or held, and returns the readable form of the key.
    pub fn count_denied(
        &self,
        hash: KeyHash,
        now: Timestamp,
        key: impl FnOnce() -> Arc<OperatorKey>,
    ) -> Arc<OperatorKey> {
        self.count(hash, [1, 1, 0], now, key, Arc::clone)
    }

    /// Counts a request that this limit lets pass and another limit denies.
    pub fn count_met(&self, hash: KeyHash, now: Timestamp, key: impl FnOnce() -> Arc<OperatorKey>) -> Arc<OperatorKey> {
        self.count(hash, [1, 0, 0], now, key, Arc::clone)
    }

    /// Counts a failure of a key whose request was counted when it came.
    pub fn count_failed(&self, hash: KeyHash, now: Timestamp, key: &Arc<OperatorKey>) {
        self.count(hash, [0, 0, 1], now, || Arc::clone(key), |_| ());
    }

    /// The readable form of a key, which is most often known from when it was counted.
    pub fn shown_key(&self, hash: KeyHash, key: impl FnOnce() -> Arc<OperatorKey>) -> Arc<OperatorKey> {
        let core = self.cores[own_core()].lock();
        let known = core.as_ref().and_then(|table| table.heaviest.get(&hash));
        known.map_or_else(key, |entry| Arc::clone(&entry.value.key))
    }

    fn count<T>(
        &self,
        hash: KeyHash,
        weights: [u64; 3],
        now: Timestamp,
        key: impl FnOnce() -> Arc<OperatorKey>,
        then: impl FnOnce(&Arc<OperatorKey>) -> T,
    ) -> T {
        let mut core = self.cores[own_core()].lock();
        let table = core.get_or_insert_with(|| Box::new(CoreTable::new(minute(now))));
        let new = || SeenKey { key: key(), first: now, last: now };
        table.heaviest.add(hash, weights, new, |entry| {
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

    /// Every key of the last `minutes`, with the certain part of its count. In no order.
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
                let [requests, denied, failed] = *counts;
                (hash, KeyCounts { key: Arc::clone(key), requests, denied, failed, first: *first, last: *last })
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

// The tables of all limits, by their names.

/// Lives as long as the process: a limit that keeps its name in a reload keeps its table.
#[derive(Debug, Default)]
pub struct KeyTables {
    clients: Arc<KeyTable>,
    limits: Mutex<BTreeMap<Arc<str>, Arc<KeyTable>>>,
}

impl KeyTables {
    /// The clients, denied by any rule.
    pub fn clients(&self) -> &Arc<KeyTable> {
        &self.clients
    }

    /// The table of a limit; it is made when it is asked for first.
    pub fn limit(&self, name: &Arc<str>) -> Arc<KeyTable> {
        Arc::clone(self.limits.lock().entry(Arc::clone(name)).or_default())
    }

    /// The counts of one minute, for other gateways.
    pub fn minute(&self, minute: u64) -> MinuteRecord {
        let tables: Vec<_> =
            self.limits.lock().iter().map(|(name, table)| (name.to_string(), Arc::clone(table))).collect();
        let limits = tables.into_iter().map(|(name, table)| (name, KeyRecord::heaviest(table.minute(minute))));
        MinuteRecord {
            clients: KeyRecord::heaviest(self.clients.minute(minute)),
            limits: limits.filter(|(_, keys)| !keys.is_empty()).collect(),
        }
    }

    /// To be called once a second.
    pub fn finish_minutes(&self, now: Timestamp) {
        self.clients.finish_minutes(now);
        let tables: Vec<_> = self.limits.lock().values().map(Arc::clone).collect();
        for table in tables {
            table.finish_minutes(now);
        }
        // No configuration has these limits any more.
        self.limits.lock().retain(|_, table| Arc::strong_count(table) > 1 || !table.is_empty());
    }
}

// The counts by key of one gateway in one minute, as it sends them to the others.

/// How many keys of a minute are sent to other gateways: this many by requests, by denials and by failures each.
const TOLD: usize = 50;

/// The heaviest keys of one minute. User names are masked.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct MinuteRecord {
    pub clients: Vec<KeyRecord>,
    /// By the name of the limit.
    pub limits: Vec<(String, Vec<KeyRecord>)>,
}

/// The counts of one key.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct KeyRecord {
    hash: KeyHash,
    /// Each selector and its value.
    parts: Vec<(String, String)>,
    requests: u64,
    denied: u64,
    failed: u64,
    first: Timestamp,
    last: Timestamp,
}

impl MinuteRecord {
    /// The number of the minute of this moment, since the Unix epoch.
    pub fn number(moment: Timestamp) -> u64 {
        moment.as_micros() / 60_000_000
    }

    /// The encoding for other gateways.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("names and counts can be written")
    }

    /// `None`: another version has written it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// The keys of a limit, or the clients.
    pub fn keys(&self, limit: Option<&str>) -> &[KeyRecord] {
        match limit {
            None => &self.clients,
            Some(limit) => self.limits.iter().find(|(name, _)| name == limit).map_or(&[], |(_, keys)| keys),
        }
    }
}

impl KeyRecord {
    pub(super) fn heaviest(mut counts: CountsByKey) -> Vec<Self> {
        counts.keep_heaviest(TOLD);
        let masked = |part: &OperatorPart| (part.selector.clone(), part.masked.as_ref().unwrap_or(&part.value).clone());
        let record = |(hash, counts): (KeyHash, KeyCounts)| Self {
            hash,
            parts: counts.key.parts.iter().map(masked).collect(),
            requests: counts.requests,
            denied: counts.denied,
            failed: counts.failed,
            first: counts.first,
            last: counts.last,
        };
        let mut records: Vec<Self> = counts.0.into_iter().map(record).collect();
        // In one order, so that a record that says the same has the same bytes.
        records.sort_unstable_by_key(|record| record.hash);
        records
    }

    /// Adds it to the counts of its key. If this process knows the key in clear, it keeps that.
    pub fn add_to(&self, CountsByKey(counts): &mut CountsByKey) {
        let counted = |key: Arc<OperatorKey>| KeyCounts {
            key,
            requests: self.requests,
            denied: self.denied,
            failed: self.failed,
            first: self.first,
            last: self.last,
        };
        if let Some(known) = counts.get_mut(&self.hash) {
            let counted = counted(Arc::clone(&known.key));
            known.merge(&counted);
            return;
        }
        let part = |(selector, value): &(String, String)| OperatorPart {
            selector: selector.clone(),
            value: value.clone(),
            masked: None,
        };
        let key = OperatorKey { parts: self.parts.iter().map(part).collect() };
        counts.insert(self.hash, counted(Arc::new(key)));
    }

    pub fn last(&self) -> Timestamp {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, *};

    #[test]
    fn a_user_name_is_told_masked_and_stays_in_clear_where_it_is_known() {
        let key = |value: &str, masked: Option<&str>| {
            let part = OperatorPart {
                selector: "param.user".to_owned(),
                value: value.to_owned(),
                masked: masked.map(str::to_owned),
            };
            Arc::new(OperatorKey { parts: vec![part] })
        };
        let counts = KeyCounts {
            key: key("alice", Some("a***1f3c")),
            requests: 3,
            denied: 1,
            failed: 2,
            first: Timestamp::from_micros(5),
            last: Timestamp::from_micros(9),
        };
        let told = KeyRecord::heaviest(CountsByKey([(KeyHash(7), counts.clone())].into()));
        let record = MinuteRecord { clients: Vec::new(), limits: vec![("login".to_owned(), told)] };
        let read = MinuteRecord::from_bytes(&record.to_bytes()).unwrap();
        assert!(!String::from_utf8_lossy(&record.to_bytes()).contains("alice"));
        let mut elsewhere = CountsByKey::default();
        read.keys(Some("login")).iter().for_each(|key| key.add_to(&mut elsewhere));
        assert_eq!(elsewhere.0[&KeyHash(7)].key, key("a***1f3c", None));
        let mut here = CountsByKey([(KeyHash(7), counts)].into());
        read.keys(Some("login")).iter().for_each(|key| key.add_to(&mut here));
        assert_eq!((here.0[&KeyHash(7)].requests, here.0[&KeyHash(7)].denied), (6, 2));
        assert_eq!(here.0[&KeyHash(7)].key, key("alice", Some("a***1f3c")));
        assert!(read.keys(None).is_empty() && read.keys(Some("other")).is_empty());
    }

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
