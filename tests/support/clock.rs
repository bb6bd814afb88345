//! The wall clock of tests: bounded waits instead of sleeps.

use std::thread;
use std::time::Duration;
use std::time::Instant;

/// The longest that a test waits for anything, on a machine that is busy with much else.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Measures the time since it was started.
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

/// Waits until `holds` returns true. After [`PATIENCE`] the test fails with `promise`.
#[track_caller]
pub fn eventually(promise: &str, mut holds: impl FnMut() -> bool) {
    let waited = Stopwatch::start();
    while !holds() {
        assert!(waited.elapsed() < PATIENCE, "not within {PATIENCE:?}: {promise}");
        thread::sleep(Duration::from_millis(5));
    }
}
