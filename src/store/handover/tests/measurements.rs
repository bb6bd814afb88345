//! How long the slowest request waits while counts move: prints it for an earlier version of the transfer too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use super::*;

/// What a process that serves saw meanwhile.
struct Asked {
    requests: u64,
    slowest: Duration,
}

/// Asks about two keys at a time, as fast as it gets answers.
#[expect(clippy::disallowed_methods, reason = "it measures")]
async fn ask(store: &MovableStore, rule: &Rule, keys: u128, is_over: &AtomicBool) -> Asked {
    let mut asked = Asked { requests: 0, slowest: Duration::ZERO };
    while !is_over.load(Ordering::Relaxed) {
        let key = || 2 * fastrand::u128(..keys) + 1;
        let charges = [charge(rule, key(), 0), charge(rule, key(), 0)];
        let batch = Batch { charges: charges.into_iter().collect(), ..Batch::default() };
        let begun = Instant::now();
        store.decide(&batch).await.expect("it is decided");
        asked.slowest = asked.slowest.max(begun.elapsed());
        asked.requests += 1;
        if asked.requests.is_multiple_of(100) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    asked
}

#[expect(clippy::print_stderr, clippy::disallowed_methods, reason = "it is for people")]
fn measure(keys: usize, version: TransferVersion) {
    let (clock, rules) = (clock(), rules());
    let settings = MemorySettings { max_keys: 2 * keys, max_sessions: 1000, snapshot: None };
    let new = || MemoryStore::new(&settings, Clock::Manual(clock.clone()));
    let before = Arc::new(MovableStore::from(new()));
    for key in 0..keys as u128 {
        before.decide_now(&one(charge(&rules[0], 2 * key + 1, 0)));
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| run(ask(&before, &rules[0], keys as u128, &is_over)));
        let (took, after) = run(async {
            thread::sleep(Duration::from_millis(100));
            let begun = Instant::now();
            let after = begin(&before, new(), version, 16 << 10).await.complete().await;
            let took = begun.elapsed();
            is_over.store(true, Ordering::Relaxed);
            // Its last request is answered.
            while !asking.is_finished() {
                task::yield_now().await;
            }
            (took, after.len())
        });
        let Asked { requests, slowest } = asking.join().expect("no panic");
        eprintln!("{version:?}: {after} keys in {took:?}, the slowest of {requests} requests took {slowest:?}");
    });
}

#[test]
#[ignore = "measures"]
fn how_long_requests_wait_for_keys_that_move_is_printed() {
    for keys in [1_000_000, 10_000_000] {
        for version in [TransferVersion::V3, TransferVersion::V4, TransferVersion::V4, TransferVersion::V4] {
            measure(keys, version);
        }
    }
}
