//! Bounded waits for asynchronous conversations.

use super::clock::PATIENCE;

/// What a future yields. After six times [`PATIENCE`], which is enough for a whole conversation, the test fails with
/// `promise`: one that never ends would hold up all tests instead.
pub async fn in_time<F: Future>(promise: &str, future: F) -> F::Output {
    let Ok(output) = tokio::time::timeout(6 * PATIENCE, future).await else {
        panic!("not within {:?}: {promise}", 6 * PATIENCE);
    };
    output
}
