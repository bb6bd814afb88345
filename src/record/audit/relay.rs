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
use crate::record::happening::Happening;

/// A Redis that takes entries.
pub trait Append: fmt::Debug + Send + Sync {
    /// Appends one entry, of fields and their texts.
    fn append<'a>(
        &'a self,
        stream: &'a RedisStream,
        fields: &'a [(&'static str, String)],
    ) -> Pin<Box<dyn Future<Output = Appended> + Send + 'a>>;
}

/// What came of an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Appended {
    Done,
    /// Redis is away and was sent nothing: it may be tried again.
    Away,
    /// It was refused, or nobody knows whether it arrived: it is not sent again. In words.
    Lost(String),
}

/// The near end of the queue. The task ends with the last holder, when everything is sent.
#[derive(Debug)]
pub(super) struct Relay {
    queue: mpsc::Sender<Arc<Happening>>,
    dropped: Counter,
}

/// What waits while Redis is away; about 10 MB.
const QUEUE: usize = 16 * 1024;

/// How often a Redis that is away is tried.
const PACE: Duration = Duration::from_millis(250);

impl Relay {
    pub(super) fn start(stream: RedisStream, redis: Arc<dyn Append>, dropped: Counter, tasks: &TaskTracker) -> Self {
        let (queue, entries) = mpsc::channel(QUEUE);
        tasks.spawn(send_on(stream, redis, entries, dropped.clone()));
        Self { queue, dropped }
    }

    pub(super) fn enter(&self, happening: &Arc<Happening>) {
        if self.queue.try_send(Arc::clone(happening)).is_err() {
            self.dropped.inc();
        }
    }
}

async fn send_on(
    stream: RedisStream,
    redis: Arc<dyn Append>,
    mut entries: mpsc::Receiver<Arc<Happening>>,
    dropped: Counter,
) {
    let mut is_well = true;
    while let Some(happening) = entries.recv().await {
        let texts = happening.texts();
        let fields: Vec<_> = texts.into_iter().map(|(name, text)| (name, text.into_owned())).collect();
        let outcome = loop {
            match redis.append(&stream, &fields).await {
                Appended::Away => time::sleep(PACE).await,
                other => break other,
            }
        };
        match outcome {
            Appended::Lost(why) => {
                dropped.inc();
                if is_well {
                    let key = &stream.key;
                    error!(%key, "the audit trail cannot be written to the stream `{key}`, entries are lost: {why}");
                }
                is_well = false;
            }
            Appended::Done | Appended::Away => {
                if !is_well {
                    info!("the audit trail is written to the stream `{}` again", stream.key);
                }
                is_well = true;
            }
        }
    }
}
