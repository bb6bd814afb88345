//! Entries on their way to a stream in Redis.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::time;
use tokio_util::task::TaskTracker;
use tracing::error;
use tracing::info;

use super::RedisStream;
use crate::record::event::Event;

/// A Redis that takes entries.
pub trait StreamAppender: fmt::Debug + Send + Sync {
    /// Appends one entry, of fields and their texts.
    fn append<'a>(
        &'a self,
        stream: &'a RedisStream,
        fields: &'a [(&'static str, String)],
    ) -> Pin<Box<dyn Future<Output = AppendOutcome> + Send + 'a>>;
}

/// What came of an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AppendOutcome {
    Appended,
    /// Redis is away and was sent nothing: it may be tried again.
    Unavailable,
    /// It was refused, or nobody knows whether it arrived: it is not sent again. In words.
    Lost(String),
}

/// The near end of the queue. The task ends with the last holder, when everything is sent.
#[derive(Debug)]
pub(super) struct Relay {
    queue: mpsc::Sender<Arc<Event>>,
    dropped: Counter,
}

/// What waits while Redis is away; about 10 MB.
const QUEUE: usize = 16 * 1024;

/// How often a Redis that is away is tried.
const PACE: Duration = Duration::from_millis(250);

impl Relay {
    pub(super) fn start(
        stream: RedisStream,
        redis: Arc<dyn StreamAppender>,
        dropped: Counter,
        tasks: &TaskTracker,
    ) -> Self {
        let (queue, entries) = mpsc::channel(QUEUE);
        tasks.spawn(send_on(stream, redis, entries, dropped.clone()));
        Self { queue, dropped }
    }

    pub(super) fn enter(&self, event: &Arc<Event>) {
        if self.queue.try_send(Arc::clone(event)).is_err() {
            self.dropped.inc();
        }
    }
}

async fn send_on(
    stream: RedisStream,
    redis: Arc<dyn StreamAppender>,
    mut entries: mpsc::Receiver<Arc<Event>>,
    dropped: Counter,
) {
    let mut is_well = true;
    while let Some(event) = entries.recv().await {
        let texts = event.texts();
        let fields: Vec<_> = texts.into_iter().map(|(name, text)| (name, text.into_owned())).collect();
        let outcome = loop {
            match redis.append(&stream, &fields).await {
                AppendOutcome::Unavailable => time::sleep(PACE).await,
                other => break other,
            }
        };
        match outcome {
            AppendOutcome::Lost(why) => {
                dropped.inc();
                if is_well {
                    let key = &stream.key;
                    error!(%key, "the audit trail cannot be written to the stream `{key}`, entries are lost: {why}");
                }
                is_well = false;
            }
            AppendOutcome::Appended | AppendOutcome::Unavailable => {
                if !is_well {
                    info!("the audit trail is written to the stream `{}` again", stream.key);
                }
                is_well = true;
            }
        }
    }
}
