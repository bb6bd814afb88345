//! A batch decided in memory: what a request's limits cost once its keys are known.

use std::cell::LazyCell;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use futures_util::FutureExt;
use portcullis::rules::decision::{Batch, Charge};
use portcullis::rules::key::KeyHash;
use portcullis::rules::limit::{Algorithm, Rule};
use portcullis::store::memory::MemorySettings;
use portcullis::store::{MemoryStore, Store};
use portcullis::words::clock::{Clock, ManualClock, Timestamp};

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("memory_store");
    let four = rule(Algorithm::SlidingWindowLog, "1/second; 20/minute; 200/hour; 800/day");
    passed(&mut group, "four_rates_passed/one_key", &four, 1, 1);
    passed(&mut group, "four_rates_passed/10000_keys", &four, 1, 10_000);
    passed(&mut group, "four_limits_of_four_rates_passed/10000_keys", &four, 4, 10_000);
    refused(&mut group, "four_rates_refused/one_key", &four);
    for (name, algorithm) in [
        ("sliding_window_counter", Algorithm::SlidingWindowCounter),
        ("bucketed_window", Algorithm::BucketedWindow { buckets: None }),
        ("fixed_window", Algorithm::FixedWindow),
        ("token_bucket", Algorithm::TokenBucket { burst: None }),
    ] {
        let four = rule(algorithm, "1/second; 20/minute; 200/hour; 800/day");
        passed(&mut group, &format!("{name}/four_rates_passed/10000_keys"), &four, 1, 10_000);
    }
    let (minute, hour) = (rule(Algorithm::SlidingWindowLog, "20/minute"), rule(Algorithm::SlidingWindowLog, "1/hour"));
    new_keys(&mut group, "new_keys/store_full", &minute, &minute);
    new_keys(&mut group, "new_keys/all_refusing", &hour, &minute);
    memory(&mut group, 1, &minute);
    memory(&mut group, 20, &minute);
    group.finish();
}

/// Requests that pass and are charged, a day's worth apart for each key.
fn passed(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, rule: &Rule, limits: u128, keys: u128) {
    let (clock, store) = store(1_000_000);
    let step = Duration::from_secs(120) / u32::try_from(keys).expect("a few keys");
    let mut number = 0;
    group.bench_function(name, |bench| {
        bench.iter(|| {
            clock.advance(step);
            number = (number + 1) % keys;
            assert!(decide(&store, rule, (0..limits).map(|limit| key(limit * keys + number))));
        });
    });
}

fn refused(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, rule: &Rule) {
    // The system's clock, which is asked for each request.
    let store =
        MemoryStore::new(&MemorySettings { max_keys: 1_000_000, max_sessions: 1000, snapshot: None }, Clock::system());
    (0..800).for_each(|_| _ = decide(&store, rule, [key(1)]));
    group.bench_function(name, |bench| bench.iter(|| black_box(decide(&store, rule, [key(1)]))));
}

/// Each request is another key, in a store that is full of keys of which each was charged once under `before`.
fn new_keys(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, before: &Rule, rule: &Rule) {
    const MAX_KEYS: usize = 100_000;
    let mut number = 0;
    let full = LazyCell::new(|| {
        let store = store(MAX_KEYS).1;
        (0..2 * MAX_KEYS as u128).for_each(|number| _ = decide(&store, before, [key(u128::MAX - 2 - number)]));
        store
    });
    group.bench_function(name, |bench| {
        let store = LazyCell::force(&full);
        bench.iter(|| {
            number += 1;
            black_box(decide(store, rule, [key(number)]))
        });
    });
}

/// What a key takes, by what the process takes.
#[expect(clippy::print_stdout, reason = "this is what the measurement is for")]
fn memory(group: &mut BenchmarkGroup<'_, WallTime>, requests: u32, rule: &Rule) {
    const KEYS: u64 = 200_000;
    let measured = LazyCell::new(|| {
        let before = resident();
        let (_clock, store) = store(400_000);
        for _ in 0..requests {
            (0..KEYS).for_each(|number| assert!(decide(&store, rule, [key(number.into())])));
        }
        let bytes = resident().saturating_sub(before) / KEYS;
        println!("{KEYS} keys of {requests} requests each: {bytes} bytes a key");
    });
    group.bench_function(format!("memory/{requests}_requests_a_key"), |bench| {
        LazyCell::force(&measured);
        bench.iter(resident);
    });
}

/// Bytes of memory in use by this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    let kib = line.trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap_or_default() * 1024
}

fn store(max_keys: usize) -> (ManualClock, MemoryStore) {
    let clock = ManualClock::at(Timestamp::from_micros(1_772_323_200_000_000));
    let store = MemoryStore::new(
        &MemorySettings { max_keys, max_sessions: 1000, snapshot: None },
        Clock::Manual(clock.clone()),
    );
    (clock, store)
}

fn rule(algorithm: Algorithm, rates: &str) -> Rule {
    Rule::Rates { algorithm, rates: rates.parse().expect("rates"), cost: NonZeroU32::MIN }
}

/// Spread as hashes are.
fn key(number: u128) -> KeyHash {
    KeyHash((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

fn decide(store: &MemoryStore, rule: &Rule, keys: impl IntoIterator<Item = KeyHash>) -> bool {
    let charges = (0..).zip(keys).map(|(limit, key)| Charge::new(limit, key, rule));
    let batch = Batch { charges: charges.collect(), ..Batch::default() };
    let verdicts = store.decide(&batch).now_or_never().expect("memory never waits");
    verdicts.expect("memory answers").iter().all(portcullis::rules::decision::Verdict::passes)
}
