//! Webhooks that are notified when a limit is reached.
//!
//! Each channel has a queue and tasks of its own, so that a slow webhook delays no other webhook and no request. Of the gateways
//! on one Redis, the first that claims an event sends it.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::Authority;
use http::{Request, StatusCode, Uri};
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::{Value, json};
use siphasher::sip128::{Hasher128, SipHasher13};
use tokio::sync::mpsc;
use tokio::time;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::record::audit::StoreRedis;
use crate::record::event::{EventKind, EventSubject, Occasion};
use crate::record::metrics::{NotificationMetrics, WriterHealth};
use crate::record::sinks::SendError;
use crate::record::{Event, GatewayName, Metrics, sinks};
use crate::rules::key::KeyHash;
use crate::rules::limit::ChannelId;
use crate::words::clock::Timestamp;
use crate::words::word::Help;

/// From the name lookup to the head of the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why a notification was not delivered. Does not show the secret URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    #[error("the webhook answered {0}")]
    Status(StatusCode),
    #[error("the webhook did not answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("{0}")]
    Request(#[from] http::Error),
    #[error("{0}")]
    Send(#[from] SendError),
}

/// Sends `json`. Only a success status means that it was delivered. Redirections are not followed.
pub(super) async fn post(webhook: &Webhook, json: Bytes) -> Result<(), DeliveryError> {
    let status = timeout(TIMEOUT, exchange(webhook, json)).await.map_err(|_| DeliveryError::Timeout)??;
    if status.is_success() { Ok(()) } else { Err(DeliveryError::Status(status)) }
}

async fn exchange(webhook: &Webhook, json: Bytes) -> Result<StatusCode, DeliveryError> {
    let request = Request::post(webhook.url())
        .header(HOST, webhook.authority())
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
        .header(CONNECTION, "close")
        .body(Full::new(json))?;
    // The body of the answer is not read.
    Ok(sinks::send(request).await?.status())
}

// The URL of a webhook. Its path is its password, so it is never shown.

/// An http or https URL. Only its scheme and host are shown.
#[derive(Clone, Eq, PartialEq)]
pub struct Webhook(Uri);

/// Why a text is not a webhook URL. Never shows the text itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidWebhook {
    #[error("a webhook is an http:// or https:// URL")]
    NotHttp,
    #[error("a webhook's URL has no user name or password: the secret stands in its path")]
    Credentials,
}

impl Help for InvalidWebhook {
    fn help(&self) -> String {
        let help = match self {
            Self::NotHttp => "write one such as `https://hooks.example.com/...`, with the secret in its path",
            Self::Credentials => "remove what stands before the `@`",
        };
        help.to_owned()
    }
}

impl Webhook {
    pub fn parse(text: &str) -> Result<Self, InvalidWebhook> {
        let uri = text.trim().parse::<Uri>().map_err(|_| InvalidWebhook::NotHttp)?;
        let is_http = uri.scheme_str().is_some_and(|scheme| scheme == "http" || scheme == "https");
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        if is_http && authority.contains('@') {
            return Err(InvalidWebhook::Credentials);
        }
        if !is_http || uri.host().is_none_or(str::is_empty) || authority.ends_with(':') {
            return Err(InvalidWebhook::NotHttp);
        }
        Ok(Self(uri))
    }

    pub fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// The host name or address, without the brackets of IPv6.
    pub fn host(&self) -> &str {
        self.0.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    pub fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// The value of the Host field.
    pub(super) fn authority(&self) -> &str {
        self.0.authority().map(Authority::as_str).unwrap_or_default()
    }

    /// The whole URL, with the secret in its path.
    pub(super) fn url(&self) -> &Uri {
        &self.0
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/***", self.0.scheme_str().unwrap_or_default(), self.authority())
    }
}

// The message that a webhook gets.

/// An event, and how many like it were suppressed since the last notification.
#[derive(Clone, Debug)]
pub(super) struct Notification {
    event: Arc<Event>,
    subject: Arc<EventSubject>,
    suppressed: u64,
    /// What of all gateways only one sends; `None`: no other gateway has this event.
    claim: Option<String>,
}

impl Notification {
    /// The event as in the audit trail, the number of suppressed ones, and the same as a sentence for chats.
    fn to_json(&self, gateway: &str) -> Value {
        let mut message = json!(&*self.event);
        message["suppressed"] = json!(self.suppressed);
        message["gateway"] = json!(gateway);
        message["version"] = json!(env!("CARGO_PKG_VERSION"));
        message["text"] = json!(self.sentence(gateway));
        message
    }

    fn sentence(&self, gateway: &str) -> String {
        let sentence = self.subject.sentence(&self.event);
        let more = match self.suppressed {
            0 => String::new(),
            suppressed => format!(", {suppressed} more since the last message"),
        };
        format!("portcullis {gateway}: {sentence}{more}")
    }
}

// The `notify` section of the configuration.

/// Channels in the order of `limit::ChannelId`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NotifySettings {
    pub channels: Vec<ChannelSettings>,
}

/// A webhook, and how often it is notified at most.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChannelSettings {
    pub name: Arc<str>,
    pub webhook: Webhook,
    /// At most one notification in this time for each limit and key.
    pub every: Duration,
}

impl ChannelSettings {
    /// `every` where the configuration leaves it out.
    pub const EVERY: Duration = Duration::from_secs(60);
}

// A running channel: suppresses repeated notifications, queues the others, and sends them from a task of its own.

/// More notifications than this would arrive too late to help.
const MAX_QUEUED: usize = 1024;

/// How often a notification is sent at most.
const MAX_ATTEMPTS: u32 = 7;

/// The wait before the second attempt. Each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The sending end of the queue. When the last holder drops it, the task sends the queue and ends.
#[derive(Debug)]
pub struct WebhookChannel {
    settings: ChannelSettings,
    suppression: Mutex<Suppression>,
    queue: mpsc::Sender<Notification>,
    counters: NotificationMetrics,
}

/// What the channels need besides their settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelContext<'a> {
    pub(super) metrics: &'a Metrics,
    /// The gateway that sends.
    pub(super) gateway: &'a Arc<GatewayName>,
    /// Where the gateways of one store agree which of them sends; `None`: this one is alone.
    pub(super) redis: Option<&'a Arc<dyn StoreRedis>>,
    /// Runs the tasks of the channels.
    pub(super) tasks: &'a TaskTracker,
    /// When it is cancelled, each task tries to send its queue once more and ends.
    pub(super) closing: &'a CancellationToken,
}

impl WebhookChannel {
    /// To be called within a runtime.
    pub(super) fn open(settings: ChannelSettings, context: ChannelContext<'_>) -> Arc<Self> {
        let ChannelContext { metrics, gateway, redis, tasks, closing } = context;
        let counters = metrics.notifications(&settings.name);
        let (queue, notifications) = mpsc::channel(MAX_QUEUED);
        let (claimed, to_send) = mpsc::channel(MAX_QUEUED);
        let claims = Claims { redis: redis.cloned(), held: held(settings.every) };
        tasks.spawn(claim_queued(claims, notifications, claimed, counters.clone(), closing.clone()));
        let sender = Sender { settings: settings.clone(), gateway: Arc::clone(gateway), closing: closing.clone() };
        tasks.spawn(sender.send_queued(to_send, counters.clone(), metrics.writer("notify")));
        let suppression = Mutex::new(Suppression::new(settings.every));
        Arc::new(Self { settings, suppression, queue, counters })
    }

    pub fn settings(&self) -> &ChannelSettings {
        &self.settings
    }

    /// Queues a notification, unless the same limit and key had one lately. Does not wait.
    pub fn notify(
        &self,
        event: &Arc<Event>,
        subject: &Arc<EventSubject>,
        limit: &Arc<str>,
        key: KeyHash,
        now: Timestamp,
    ) {
        let verdict = self.suppression.lock().check(limit, key, Occasion::of(event), now);
        match verdict {
            SendVerdict::Send { suppressed } => {
                let (event, subject) = (Arc::clone(event), Arc::clone(subject));
                // Only one gateway sees the request of a sign-in.
                let is_seen_by_all = event.kind != EventKind::SignedInAfterFailures;
                let claim = is_seen_by_all.then(|| claim_of(&self.settings.name, limit, key));
                let notification = Notification { event, subject, suppressed, claim };
                if self.queue.try_send(notification).is_err() {
                    self.counters.dropped();
                }
            }
            SendVerdict::Suppress => self.counters.suppressed(),
            SendVerdict::Full => self.counters.dropped(),
        }
    }
}

/// What is claimed, on all gateways alike: a short name that shows nothing.
fn claim_of(channel: &str, limit: &str, KeyHash(key): KeyHash) -> String {
    let mut hasher = SipHasher13::new();
    (channel, limit, key).hash(&mut hasher);
    format!("{:032x}", hasher.finish128().as_u128())
}

/// Which gateway sends what several of them notice.
#[derive(Debug)]
struct Claims {
    redis: Option<Arc<dyn StoreRedis>>,
    /// How long an event is claimed.
    held: Duration,
}

/// A little shorter than `every`, so that the gateway that has sent a notification may send the next one when it is due.
fn held(every: Duration) -> Duration {
    every.saturating_sub((every / 10).min(Duration::from_secs(1)))
}

impl Claims {
    /// Whether this gateway is to send it. While Redis does not answer, each gateway is.
    async fn take(&self, notification: &Notification) -> bool {
        match (&self.redis, &notification.claim) {
            (Some(redis), Some(claim)) => redis.claim(claim, self.held).await,
            _ => true,
        }
    }
}

/// Claims at once what is queued, also while the webhook hangs: a late claim would find an earlier one ended.
async fn claim_queued(
    claims: Claims,
    mut notifications: mpsc::Receiver<Notification>,
    claimed: mpsc::Sender<Notification>,
    counters: NotificationMetrics,
    closing: CancellationToken,
) {
    loop {
        let notification = tokio::select! {
            biased;
            notification = notifications.recv() => notification,
            () = closing.cancelled(), if !notifications.is_closed() => {
                notifications.close();
                continue;
            }
        };
        let Some(notification) = notification else { return };
        if !claims.take(&notification).await {
            counters.suppressed();
        } else if claimed.try_send(notification).is_err() {
            counters.dropped();
        }
    }
}

/// Sends the claimed notifications of a channel.
#[derive(Debug)]
struct Sender {
    settings: ChannelSettings,
    gateway: Arc<GatewayName>,
    closing: CancellationToken,
}

impl Sender {
    async fn send_queued(
        self,
        mut notifications: mpsc::Receiver<Notification>,
        counters: NotificationMetrics,
        health: Arc<WriterHealth>,
    ) {
        while let Some(notification) = notifications.recv().await {
            let name = &*self.settings.name;
            match self.send_with_retries(&notification).await {
                Ok(()) => {
                    counters.delivered();
                    if health.worked() {
                        info!(channel = name, "the webhook of `{name}` takes notifications again");
                    }
                }
                Err(error) => {
                    counters.failed();
                    let words =
                        || format!("The webhook of `{name}` takes no notifications: {error}. They are given up.");
                    if health.failed(words) {
                        warn!(channel = name, "the webhook of `{name}` takes no notifications: this one is given up");
                    }
                }
            }
        }
    }

    /// Retries for about half a minute, besides the time of the attempts themselves. Fails with the last reason.
    async fn send_with_retries(&self, notification: &Notification) -> Result<(), DeliveryError> {
        let json = Bytes::from(notification.to_json(&self.gateway.get()).to_string());
        let mut wait = FIRST_WAIT;
        let mut attempt = 1;
        loop {
            let Err(error) = post(&self.settings.webhook, json.clone()).await else { return Ok(()) };
            let name = &*self.settings.name;
            info!(channel = name, attempt, "the webhook of `{name}` did not take a notification: {error}");
            if attempt == MAX_ATTEMPTS || self.closing.is_cancelled() {
                return Err(error);
            }
            attempt += 1;
            tokio::select! {
                () = time::sleep(wait) => {}
                // The gateway stops: one more attempt at once, the last.
                () = self.closing.cancelled() => {}
            }
            wait *= 2;
        }
    }
}

// Lets one notification pass for each limit and key in a given time, and counts the suppressed ones.

/// About 6 MB.
const MAX_KEYS: usize = 64 * 1024;

/// Looking through all keys takes a millisecond.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// How many times `every` a count of suppressed notifications is kept.
const KEPT_INTERVALS: u32 = 10;

/// Remembers the last notification of each limit and key.
#[derive(Debug)]
pub(super) struct Suppression {
    every: Duration,
    last_sent: HashMap<(Arc<str>, KeyHash), LastSent>,
    swept: Timestamp,
}

#[derive(Debug)]
struct LastSent {
    at: Timestamp,
    /// How many were suppressed since.
    suppressed: u64,
    /// `false`: whoever began the ban has told of it, perhaps another gateway.
    is_own: bool,
}

/// Whether to send a notification.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SendVerdict {
    /// With the number of notifications that were suppressed since the last one.
    Send { suppressed: u64 },
    /// One was sent lately.
    Suppress,
    /// There is no room to remember another key.
    Full,
}

impl Suppression {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, last_sent: HashMap::new(), swept: Timestamp::EPOCH }
    }

    pub(super) fn check(&mut self, limit: &Arc<str>, key: KeyHash, what: Occasion, now: Timestamp) -> SendVerdict {
        self.sweep(now);
        let id = (Arc::clone(limit), key);
        let is_full = self.last_sent.len() >= MAX_KEYS;
        match self.last_sent.get_mut(&id) {
            Some(last) if now.since(last.at) < self.every && (last.is_own || what != Occasion::BanBegins) => {
                last.suppressed += 1;
                SendVerdict::Suppress
            }
            Some(last) => {
                let suppressed = std::mem::take(&mut last.suppressed);
                (last.at, last.is_own) = (now, true);
                SendVerdict::Send { suppressed }
            }
            None if is_full => SendVerdict::Full,
            None if what == Occasion::BanStands => {
                self.last_sent.insert(id, LastSent { at: now, suppressed: 1, is_own: false });
                SendVerdict::Suppress
            }
            None => {
                self.last_sent.insert(id, LastSent { at: now, suppressed: 0, is_own: true });
                SendVerdict::Send { suppressed: 0 }
            }
        }
    }

    /// Removes keys that may be notified again and have no suppressed ones to report. A count that is never reported is
    /// removed after [`KEPT_INTERVALS`].
    fn sweep(&mut self, now: Timestamp) {
        if now.since(self.swept) < self.every.max(MIN_SWEEP_INTERVAL) {
            return;
        }
        self.swept = now;
        let every = self.every;
        self.last_sent.retain(|_, last| {
            let age = now.since(last.at);
            age < every || (last.suppressed > 0 && age < every * KEPT_INTERVALS)
        });
        self.last_sent.shrink_to(1024);
    }
}

// The running webhook channels of a configuration.

#[derive(Clone, Debug, Default)]
pub struct WebhookChannels(Vec<Arc<WebhookChannel>>);

impl WebhookChannels {
    /// `None`: the configuration has no such channel. One that names it is refused when it is read.
    pub fn get(&self, id: ChannelId) -> Option<&Arc<WebhookChannel>> {
        self.0.get(usize::from(id.0))
    }

    /// The channels of `settings`. Unchanged channels keep their queues and their list of recent notifications.
    pub(super) fn reopen(&self, settings: &NotifySettings, context: ChannelContext<'_>) -> Self {
        let channels = settings.channels.iter().map(|settings| {
            let kept = self.0.iter().find(|channel| channel.settings() == settings);
            kept.map_or_else(|| WebhookChannel::open(settings.clone(), context), Arc::clone)
        });
        Self(channels.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(60);

    fn second(second: u64) -> Timestamp {
        Timestamp::from_micros((1000 + second) * 1_000_000)
    }

    #[test]
    fn each_limit_and_key_is_notified_once_in_a_while_and_what_is_suppressed_is_counted() {
        let (mut suppression, login, api) = (Suppression::new(EVERY), Arc::from("login"), Arc::from("api"));
        assert_eq!(
            suppression.check(&login, KeyHash(1), Occasion::Other, second(0)),
            SendVerdict::Send { suppressed: 0 }
        );
        for _ in 0..9 {
            assert_eq!(suppression.check(&login, KeyHash(1), Occasion::Other, second(59)), SendVerdict::Suppress);
        }
        assert_eq!(
            suppression.check(&login, KeyHash(2), Occasion::Other, second(59)),
            SendVerdict::Send { suppressed: 0 }
        );
        assert_eq!(
            suppression.check(&api, KeyHash(1), Occasion::Other, second(59)),
            SendVerdict::Send { suppressed: 0 }
        );
        assert_eq!(
            suppression.check(&login, KeyHash(1), Occasion::Other, second(60)),
            SendVerdict::Send { suppressed: 9 }
        );
        assert_eq!(suppression.check(&login, KeyHash(1), Occasion::Other, second(61)), SendVerdict::Suppress);
        assert_eq!(
            suppression.check(&login, KeyHash(1), Occasion::Other, second(240)),
            SendVerdict::Send { suppressed: 1 }
        );
    }

    #[test]
    fn a_ban_is_told_when_it_begins_and_what_meets_it_reminds_of_it_later() {
        let (mut suppression, login) = (Suppression::new(EVERY), Arc::from("login"));
        let mut check = |what, at| suppression.check(&login, KeyHash(1), what, second(at));
        // Another gateway began the ban, and told of it.
        assert_eq!(check(Occasion::BanStands, 0), SendVerdict::Suppress);
        assert_eq!(check(Occasion::BanStands, 60), SendVerdict::Send { suppressed: 1 });
        // Here a request on another core meets the ban before the one that began it has ended.
        let mut check = |what, at| suppression.check(&login, KeyHash(2), what, second(at));
        assert_eq!(check(Occasion::BanStands, 60), SendVerdict::Suppress);
        assert_eq!(check(Occasion::BanBegins, 60), SendVerdict::Send { suppressed: 1 });
        assert_eq!(check(Occasion::BanBegins, 61), SendVerdict::Suppress);
    }

    #[tokio::test(start_paused = true)]
    async fn a_webhook_that_takes_nothing_is_a_fault_for_an_hour() {
        let (metrics, tasks) = (Metrics::new(), TaskTracker::new());
        let webhook = Webhook::parse("http://127.0.0.1:1/").unwrap();
        let settings = ChannelSettings { name: "ops".into(), webhook, every: EVERY };
        let context = ChannelContext {
            metrics: &metrics,
            gateway: &Arc::default(),
            redis: None,
            tasks: &tasks,
            closing: &CancellationToken::new(),
        };
        let channel = WebhookChannel::open(settings, context);
        let event = Arc::new(Event::new(EventKind::Denial));
        channel.notify(&event, &Arc::default(), &"login".into(), KeyHash(1), second(0));
        // Those that are gone have no faults: it is seen before its task ends.
        let now = crate::words::clock::wall();
        let faults = loop {
            let faults = metrics.writer_faults(now);
            if !faults.is_empty() {
                break faults;
            }
            time::sleep(Duration::from_secs(1)).await;
        };
        assert!(faults[0].sentence.starts_with("The webhook of `ops` takes no notifications: "), "{faults:?}");
        assert_eq!(metrics.writer_faults(now + Duration::from_secs(4000)), []);
    }

    #[test]
    fn many_keys_take_bounded_room_and_make_way_when_their_time_is_over() {
        let (mut suppression, login) = (Suppression::new(EVERY), Arc::from("login"));
        for key in 0..MAX_KEYS as u128 {
            assert_eq!(
                suppression.check(&login, KeyHash(key), Occasion::Other, second(0)),
                SendVerdict::Send { suppressed: 0 }
            );
        }
        assert_eq!(suppression.check(&login, KeyHash(u128::MAX), Occasion::Other, second(1)), SendVerdict::Full);
        assert_eq!(
            suppression.check(&login, KeyHash(u128::MAX), Occasion::Other, second(60)),
            SendVerdict::Send { suppressed: 0 }
        );
        assert_eq!(suppression.last_sent.len(), 1);
    }

    #[test]
    fn a_webhook_shows_its_host_and_never_its_path() {
        let webhook = Webhook::parse("https://hooks.example.com/T0/s3cret?token=abc").unwrap();
        assert_eq!(format!("{webhook} {webhook:?}"), "https://hooks.example.com/*** https://hooks.example.com/***");
        assert_eq!((webhook.host(), webhook.port(), webhook.is_https()), ("hooks.example.com", 443, true));
        assert_eq!(webhook.url().path_and_query().unwrap(), "/T0/s3cret?token=abc");
        let local = Webhook::parse("http://[::1]:8065").unwrap();
        assert_eq!((local.host(), local.port(), local.url().path()), ("::1", 8065, "/"));
    }

    #[test]
    fn only_http_urls_are_taken() {
        for text in [
            "",
            "hooks.example.com/T0",
            "ftp://example.com/",
            "https://",
            "/T0",
            "https://example.com:/",
            "ops@example.com",
        ] {
            assert_eq!(Webhook::parse(text), Err(InvalidWebhook::NotHttp), "{text}");
        }
        assert_eq!(Webhook::parse("https://me:secret@example.com/"), Err(InvalidWebhook::Credentials));
    }
}
