//! The wall clock of tests: bounded waits instead of sleeps.

use std::thread;
use std::time::Duration;
use std::time::Instant;

/// Nothing a test waits for takes longer than this on a machine that works.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Time passed since a moment of the test.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "tests of a running process live in real time")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Waits until `promise` holds, and fails with its name when it does not hold in time.
#[track_caller]
pub fn eventually(promise: &str, mut holds: impl FnMut() -> bool) {
    let waited = Stopwatch::start();
    while !holds() {
        assert!(waited.elapsed() < PATIENCE, "not within {PATIENCE:?}: {promise}");
        thread::sleep(Duration::from_millis(5));
    }
}
