//! Bounded waits for asynchronous conversations.

use std::time::Duration;

use super::clock::{PATIENCE, Stopwatch};

/// What a future yields. After six times [`PATIENCE`], which is enough for a whole conversation, the test fails with
/// `promise`: one that never ends would hold up all tests instead.
pub async fn in_time<F: Future>(promise: &str, future: F) -> F::Output {
    let Ok(output) = tokio::time::timeout(6 * PATIENCE, future).await else {
        panic!("not within {:?}: {promise}", 6 * PATIENCE);
    };
    output
}

/// Waits until `holds` returns true, while the other tasks of the test go on. After [`PATIENCE`] the test fails with `promise`.
pub async fn until(promise: &str, mut holds: impl FnMut() -> bool) {
    within(promise, PATIENCE, async || holds()).await;
}

/// Asserts again and again for `span`, while the other tasks of the test go on.
pub async fn all_the_while(span: Duration, mut asserts: impl AsyncFnMut()) {
    let waited = Stopwatch::start();
    while waited.elapsed() < span {
        asserts().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until `holds` returns true, while the other tasks of the test go on. After `span` the test fails with `promise`.
pub async fn within(promise: &str, span: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let waited = Stopwatch::start();
    while !holds().await {
        assert!(waited.elapsed() < span, "not within {span:?}: {promise}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
