//! The keys that tokens are verified with: where they come from, and the task that fetches them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::app::source_tasks::Pauses;
use crate::gateway::Snapshot;
use crate::gateway::tokens::{KeyFailure, KeySource, LiveKeys, TokenSettings, TokenVerifier};
use crate::rules::jwt::{InvalidKeySet, KeySet};
use crate::wire::http_client::{FetchError, RemoteDocument};
use crate::words::units::counted;

// One task while keys are fetched from a URL.

/// The keys in force, and the task that fetches them.
#[derive(Debug)]
pub(in crate::app) struct KeyTask {
    keys: OpenKeys,
    running: Option<(Arc<LiveKeys>, CancellationToken)>,
}

impl KeyTask {
    /// It does not run yet.
    pub(in crate::app) fn of(keys: OpenKeys) -> Self {
        Self { keys, running: None }
    }

    pub(in crate::app) fn keys(&self) -> &OpenKeys {
        &self.keys
    }

    /// These keys come into force.
    pub(in crate::app) fn replace(&mut self, keys: OpenKeys) {
        self.keys = keys;
        self.start();
    }

    /// Starts the task that fetches these keys, and stops the task for the old keys.
    pub(in crate::app) fn start(&mut self) {
        let wanted = self.keys.keys().cloned();
        let is_wanted = |live| wanted.as_ref().is_some_and(|keys| Arc::ptr_eq(&keys.live, live));
        if self.running.as_ref().is_some_and(|(live, _)| is_wanted(live)) {
            return;
        }
        self.stop();
        if let Some(keys) = wanted
            && let KeySource::Url(document) = keys.source
        {
            let stop = CancellationToken::new();
            let following = follow(document, Arc::clone(&keys.live));
            tokio::spawn(stop.clone().run_until_cancelled_owned(following));
            self.running = Some((keys.live, stop));
        }
    }

    /// Stops it. What is known stays.
    pub(in crate::app) fn stop(&mut self) {
        if let Some((_, stop)) = self.running.take() {
            stop.cancel();
        }
    }
}

// Fetches keys: at the start, every hour, and when a token names a key that is not known.

/// How old a set becomes.
const EVERY: Duration = Duration::from_secs(3600);

/// After failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Requests with invented key names cause at most one fetch in this time.
const BETWEEN_MISSES: Duration = Duration::from_secs(30);

/// A longer document is no set of keys.
const MAX_LENGTH: usize = 1024 * 1024;

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

/// The last log message about a source, so that none is repeated.
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

// The keys of a configuration and of the one before it.

/// The keys of a configuration. `None`: it has no `jwt`.
#[derive(Clone, Debug, Default)]
pub(in crate::app) struct OpenKeys(Option<SourcedKeys>);

/// The source of the keys, and the known keys.
#[derive(Clone, Debug)]
pub(super) struct SourcedKeys {
    pub(super) source: KeySource,
    pub(super) live: Arc<LiveKeys>,
}

impl OpenKeys {
    /// The keys of a configuration. From the same source they stay as they are known.
    pub(in crate::app) fn reopen(&self, settings: Option<&TokenSettings>) -> Self {
        let keys = settings.map(|TokenSettings { keys: source, .. }| match &self.0 {
            Some(before) if before.source == *source => before.clone(),
            _ => SourcedKeys { source: source.clone(), live: first_known(source) },
        });
        Self(keys)
    }

    /// The verifier for this configuration. If nothing has changed, the verifier of the previous snapshot stays.
    pub(in crate::app) fn verifier(
        &self,
        settings: Option<&TokenSettings>,
        before: Option<&Snapshot>,
    ) -> Option<Arc<TokenVerifier>> {
        let (settings, keys) = (settings?, self.0.as_ref()?);
        let before = before.and_then(|before| before.tokens.as_ref());
        Some(TokenVerifier::carry_over(settings, &keys.live, before))
    }

    pub(super) fn keys(&self) -> Option<&SourcedKeys> {
        self.0.as_ref()
    }
}

/// The keys that are known before the first fetch.
fn first_known(source: &KeySource) -> Arc<LiveKeys> {
    Arc::new(match source {
        KeySource::File(set) => LiveKeys::of(Arc::clone(set)),
        KeySource::Url(_) => LiveKeys::default(),
    })
}
