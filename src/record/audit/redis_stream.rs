//! Sends events to a stream in the store's Redis.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::time;
use tokio_util::task::TaskTracker;
use tracing::{error, info};

use super::RedisStream;
use crate::record::metrics::WriterHealth;
use crate::record::{Event, Metrics};

/// How many events wait while Redis is down; about 10 MB.
const MAX_QUEUED: usize = 16 * 1024;

/// How long to wait before an event is sent again to a Redis that is down.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// The sending end of the queue. When the last holder drops it, the task sends the queue and ends.
#[derive(Debug)]
pub(super) struct RedisStreamWriter {
    queue: mpsc::Sender<Arc<Event>>,
    dropped: Counter,
}

impl RedisStreamWriter {
    pub(super) fn start(
        stream: RedisStream,
        redis: Arc<dyn StoreRedis>,
        metrics: &Metrics,
        tasks: &TaskTracker,
    ) -> Self {
        let (queue, events) = mpsc::channel(MAX_QUEUED);
        let (dropped, health) = (metrics.audit_dropped("redis_stream"), metrics.writer("audit"));
        tasks.spawn(send_queued(stream, redis, events, dropped.clone(), health));
        Self { queue, dropped }
    }

    pub(super) fn append(&self, event: &Arc<Event>) {
        if self.queue.try_send(Arc::clone(event)).is_err() {
            self.dropped.inc();
        }
    }
}

async fn send_queued(
    stream: RedisStream,
    redis: Arc<dyn StoreRedis>,
    mut events: mpsc::Receiver<Arc<Event>>,
    dropped: Counter,
    health: Arc<WriterHealth>,
) {
    while let Some(event) = events.recv().await {
        let texts = event.texts();
        let fields: Vec<_> = texts.into_iter().map(|(name, text)| (name, text.into_owned())).collect();
        let outcome = loop {
            match redis.append(&stream, &fields).await {
                AppendOutcome::Unavailable => time::sleep(RETRY_INTERVAL).await,
                other => break other,
            }
        };
        match outcome {
            AppendOutcome::Lost(reason) => {
                dropped.inc();
                let key = &stream.key;
                let words =
                    || format!("The audit trail cannot be written to the stream `{key}`: {reason}. Events are lost.");
                if health.failed(words) {
                    error!(%key, "the audit trail cannot be written to the stream `{key}`, events are lost: {reason}");
                }
            }
            AppendOutcome::Appended | AppendOutcome::Unavailable => {
                if health.worked() {
                    info!("the audit trail is written to the stream `{}` again", stream.key);
                }
            }
        }
    }
}

// How records reach the store's Redis.

/// The store's Redis, as far as the audit trail and messages need it.
pub trait StoreRedis: fmt::Debug + Send + Sync {
    /// Appends one entry of field names and texts.
    fn append<'a>(
        &'a self,
        stream: &'a RedisStream,
        fields: &'a [(&'static str, String)],
    ) -> Pin<Box<dyn Future<Output = AppendOutcome> + Send + 'a>>;

    /// Whether this gateway is the first to claim `what` in the time `held`. Also `true` where Redis does not say.
    fn claim<'a>(&'a self, what: &'a str, held: Duration) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// Whether Redis took an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AppendOutcome {
    Appended,
    /// Redis is down and was sent nothing. The entry may be sent again.
    Unavailable,
    /// Redis refused the entry or did not answer. The entry is not sent again, so that it is never there twice. With
    /// the reason as a sentence.
    Lost(String),
}
