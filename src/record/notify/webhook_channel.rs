//! A channel that runs: who may be told of what, a queue, and a task that sees to it that messages arrive.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::info;
use tracing::warn;

use super::ChannelSettings;
use super::pace::May;
use super::pace::Pace;
use super::post::post;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::record::event::Event;
use crate::record::metrics::NoticeMetrics;

/// The near end. The task ends with the last holder, when everything is sent.
#[derive(Debug)]
pub struct WebhookChannel {
    settings: ChannelSettings,
    pace: Mutex<Pace>,
    queue: mpsc::Sender<Notice>,
    counts: NoticeMetrics,
}

/// What is to be told.
#[derive(Clone, Debug)]
struct Notice {
    event: Arc<Event>,
    suppressed: u64,
}

/// More than this is told to nobody in time.
const QUEUE: usize = 1024;

/// How often a message is tried, and how long is waited before the second time; each further wait is twice as long.
const TRIES: u32 = 7;
const FIRST_WAIT: Duration = Duration::from_millis(500);

impl WebhookChannel {
    /// To be called within a runtime. From when `closing` is cancelled, nothing is tried again.
    pub(super) fn open(
        channel: ChannelSettings,
        counts: NoticeMetrics,
        tasks: &TaskTracker,
        closing: CancellationToken,
    ) -> Arc<Self> {
        let (queue, notices) = mpsc::channel(QUEUE);
        tasks.spawn(deliver(channel.clone(), notices, counts.clone(), closing));
        let pace = Mutex::new(Pace::new(channel.every));
        Arc::new(Self { settings: channel, pace, queue, counts })
    }

    pub fn settings(&self) -> &ChannelSettings {
        &self.settings
    }

    /// Tells of it, unless the same was told lately. Waits for nobody.
    pub(in crate::record) fn tell(&self, event: &Arc<Event>, limit: &Arc<str>, key: KeyHash, now: Timestamp) {
        let may = self.pace.lock().ask(limit, key, now);
        match may {
            May::Tell { suppressed } => {
                let notice = Notice { event: Arc::clone(event), suppressed };
                if self.queue.try_send(notice).is_err() {
                    self.counts.dropped();
                }
            }
            May::Wait => self.counts.suppressed(),
            May::Full => self.counts.dropped(),
        }
    }
}

async fn deliver(
    channel: ChannelSettings,
    mut notices: mpsc::Receiver<Notice>,
    counts: NoticeMetrics,
    closing: CancellationToken,
) {
    let mut is_well = true;
    loop {
        let notice = tokio::select! {
            biased;
            notice = notices.recv() => notice,
            () = closing.cancelled(), if !notices.is_closed() => {
                notices.close();
                continue;
            }
        };
        let Some(notice) = notice else { return };
        let arrived = insist(&channel, &notice, &closing).await;
        if arrived {
            counts.delivered();
        } else {
            counts.failed();
        }
        let name = &*channel.name;
        match (is_well, arrived) {
            (false, true) => info!(channel = name, "messages reach the webhook of `{name}` again"),
            (true, false) => {
                warn!(channel = name, "messages do not reach the webhook of `{name}`, this one is given up");
            }
            _ => {}
        }
        is_well = arrived;
    }
}

/// Tries until it arrives, for about half a minute and what the tries themselves take.
async fn insist(channel: &ChannelSettings, notice: &Notice, closing: &CancellationToken) -> bool {
    let json = Bytes::from(message(notice).to_string());
    let mut wait = FIRST_WAIT;
    for attempt in 1..=TRIES {
        match post(&channel.webhook, json.clone()).await {
            Ok(()) => return true,
            Err(error) => {
                let name = &*channel.name;
                info!(channel = name, attempt, "the webhook of `{name}` did not take a message: {error}");
            }
        }
        if attempt == TRIES || closing.is_cancelled() {
            break;
        }
        tokio::select! {
            () = time::sleep(wait) => {}
            // Once more, and that is it.
            () = closing.cancelled() => {}
        }
        wait *= 2;
    }
    false
}

/// What the audit trail says, how much was not told, and the same in words for chats.
fn message(notice: &Notice) -> Value {
    let Notice { event, suppressed } = notice;
    let mut message = json!(&**event);
    message["suppressed"] = json!(suppressed);
    message["gateway"] = json!("portcullis");
    message["version"] = json!(env!("CARGO_PKG_VERSION"));
    message["text"] = json!(words(event, *suppressed));
    message
}

fn words(event: &Event, suppressed: u64) -> String {
    let mut words = format!("portcullis: {}", event.kind.as_str());
    let key = event.key.as_deref().unwrap_or_default();
    let key: Vec<_> = key.iter().map(|(selector, value)| format!("{selector}={value}")).collect();
    let about = [
        event.limit.as_deref().map(|limit| format!(" by {limit}")),
        (!key.is_empty()).then(|| format!(" of {}", key.join(" "))),
        event.client.map(|client| format!(", client {client}")),
        event.until.map(|until| format!(", until {until}")),
        (suppressed > 0).then(|| format!(", {suppressed} more since the last message")),
    ];
    words.extend(about.into_iter().flatten());
    words
}
