//! Fetches keys: at the start, every hour, and when a token names a key that is not known.

use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tokio::time::Instant;
use tracing::error;
use tracing::info;
use tracing::warn;

use crate::app::pauses::Pauses;
use crate::gateway::tokens::LiveKeys;
use crate::gateway::tokens::live_keys::KeyFailure;
use crate::http_client::FetchError;
use crate::http_client::RemoteDocument;
use crate::jwt::InvalidKeySet;
use crate::jwt::KeySet;
use crate::units::counted;

/// Fetches keys for ever, and puts them in force.
pub(super) async fn follow(document: RemoteDocument, live: Arc<LiveKeys>) {
    let mut pauses = Pauses::up_to(LONGEST_PAUSE);
    let mut log = SourceLog::default();
    let mut next_miss = Instant::now();
    loop {
        let pause = match fetch(&document).await {
            Ok(set) => {
                log.fetched(&document, &set, live.set().as_deref());
                live.replace(set);
                pauses.reset();
                spread(EVERY)
            }
            Err(error) => {
                live.fail(KeyFailure { source: document.url.to_string(), reason: error.to_string() });
                log.failed(&document, &error, live.set().is_some());
                pauses.next(fastrand::f64())
            }
        };
        tokio::select! {
            () = time::sleep(pause) => {}
            () = missed(&live, next_miss) => next_miss = Instant::now() + BETWEEN_MISSES,
        }
    }
}

/// How old a set becomes.
const EVERY: Duration = Duration::from_secs(3600);

/// After failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Whoever invents names of keys causes one question in so long.
const BETWEEN_MISSES: Duration = Duration::from_secs(30);

/// A longer document is no set of keys.
const MAX_LENGTH: usize = 1024 * 1024;

/// Up to a tenth less, so that gateways that were started together do not ask together for ever.
fn spread(span: Duration) -> Duration {
    span.mul_f64(1.0 - 0.1 * fastrand::f64())
}

/// Waits until a token names a key that is not known, but at least until `earliest`.
async fn missed(live: &LiveKeys, earliest: Instant) {
    time::sleep_until(earliest).await;
    live.missed().await;
}

async fn fetch(document: &RemoteDocument) -> Result<KeySet, KeyError> {
    let text = document.fetch("application/jwk-set+json, application/json", MAX_LENGTH).await?;
    Ok(KeySet::parse(&text)?)
}

/// Why there are no new keys.
#[derive(Debug, thiserror::Error)]
enum KeyError {
    #[error("{0}")]
    Unfetched(#[from] FetchError),
    #[error("{0}")]
    Invalid(#[from] InvalidKeySet),
}

/// What was logged about a source, so that nothing is said twice.
#[derive(Debug, Default)]
struct SourceLog {
    /// The last failure.
    failing: Option<String>,
}

impl SourceLog {
    fn fetched(&mut self, document: &RemoteDocument, set: &KeySet, before: Option<&KeySet>) {
        let was_failing = self.failing.take().is_some();
        if was_failing || before != Some(set) {
            let (url, keys) = (&document.url, set.len());
            info!(%url, keys, "tokens are verified with {} of {url}", counted(keys, "key"));
        }
    }

    fn failed(&mut self, document: &RemoteDocument, error: &KeyError, is_known: bool) {
        let (url, reason) = (&document.url, error.to_string());
        if self.failing.as_ref() == Some(&reason) {
            return;
        }
        let therefore = if is_known {
            "the keys that are known stay in force"
        } else {
            "no key is known, and no token is verified"
        };
        match error {
            KeyError::Unfetched(_) => warn!(%url, reason, "cannot fetch the keys of {url}: {reason}; {therefore}"),
            KeyError::Invalid(_) => error!(%url, reason, "{url} is no set of keys: {reason}; {therefore}"),
        }
        self.failing = Some(reason);
    }
}
