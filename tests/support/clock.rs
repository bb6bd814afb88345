//! The wall clock of tests: bounded waits instead of sleeps.

use std::thread;
use std::time::{Duration, Instant};

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
    found_within(PATIENCE, || holds().then_some(()).ok_or_else(|| promise.to_owned()));
}

/// What `look` finds, once it finds it. After `span` the test fails with what was amiss at the last look.
#[track_caller]
pub fn found_within<T>(span: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let waited = Stopwatch::start();
    loop {
        match look() {
            Ok(found) => return found,
            Err(amiss) => assert!(waited.elapsed() < span, "not within {span:?}: {amiss}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// What `look` finds, once it has found the same so many times in a row.
#[track_caller]
pub fn settled<T: PartialEq>(times: usize, every: Duration, mut look: impl FnMut() -> T) -> T {
    let (waited, mut last, mut same) = (Stopwatch::start(), look(), 1);
    while same < times {
        assert!(waited.elapsed() < PATIENCE, "not the same {times} times in a row within {PATIENCE:?}");
        thread::sleep(every);
        let now = look();
        same = if now == last { same + 1 } else { 1 };
        last = now;
    }
    last
}

/// Asserts at every look for so long: where nothing may happen, and no later event would show that it has not.
pub fn throughout(span: Duration, mut asserts: impl FnMut()) {
    let waited = Stopwatch::start();
    while waited.elapsed() < span {
        asserts();
        thread::sleep(Duration::from_millis(20));
    }
}

/// The traffic beside what is tested: does the same again and again, with pauses, until it is over.
pub fn repeat_until(mut is_over: impl FnMut() -> bool, pause: Duration, mut work: impl FnMut()) {
    while !is_over() {
        work();
        thread::sleep(pause);
    }
}
