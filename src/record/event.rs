//! A denial, delay, ban, unban or reload, as the audit trail, webhooks and the event stream report it. Keys are masked.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use ipnet::IpNet;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::record::attacks::Account;
use crate::record::audit::{AuditContext, AuditError, AuditSettings, AuditTrail, StoreRedis};
use crate::record::event_stream::{EventStream, PastEvents};
use crate::record::notify::{ChannelContext, NotifySettings, WebhookChannels};
use crate::record::{DecisionLabel, GatewayName, Metrics};
use crate::rules::client::Prefix;
use crate::rules::decision::Policy;
use crate::rules::key::Selector;
use crate::rules::limit::LimitId;
use crate::words::clock::{Clock, Timestamp, wall};
use crate::words::units::{Span, whole_seconds};

/// Built once and shared by all that report it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub time: Timestamp,
    pub kind: EventKind,
    /// The limit that decided.
    pub limit: Option<Arc<str>>,
    /// The list that denies the client.
    pub list: Option<Box<str>>,
    /// Each selector of the key and its value, masked; `None` where there is no key.
    pub key: Option<Vec<(String, String)>>,
    /// The client whose request caused it.
    pub client: Option<IpAddr>,
    /// When the denial, delay or ban ends, if that is known.
    pub until: Option<Timestamp>,
    /// How long it lasts, from `time`.
    pub span: Option<Duration>,
    pub route: Option<Arc<str>>,
    pub request_id: Option<Box<str>>,
    /// As in the request log.
    pub decision: Option<&'static str>,
    /// The banned address or network, where no key is banned.
    pub address: Option<Box<str>>,
    /// The banned network, also if the key of a limit is one address. Only for sinks that need the address itself: it
    /// is never written to a log.
    pub banned_network: Option<BannedNetwork>,
    /// The id of the ban.
    pub ban: Option<Box<str>>,
    /// As a sentence.
    pub reason: Option<Box<str>>,
    /// The account that was signed in to, and its failures before.
    pub account: Option<FailedAccount>,
}

/// An account that failed before somebody signed in to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FailedAccount {
    pub account: Account,
    /// Within the hour before.
    pub failures: u64,
    /// From how many clients.
    pub clients: u64,
}

/// A network whose ban begins or is lifted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BannedNetwork {
    pub network: IpNet,
    /// An operator has set the ban, perhaps in the place of another one.
    pub by_operator: bool,
}

/// The `event` of the JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventKind {
    Denial,
    Delay,
    Ban,
    Unban,
    Reload,
    /// Somebody has signed in to an account that failed several times.
    SignedInAfterFailures,
}

impl EventKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denial => "denial",
            Self::Delay => "delay",
            Self::Ban => "ban",
            Self::Unban => "unban",
            Self::Reload => "reload",
            Self::SignedInAfterFailures => "signed_in_after_failures",
        }
    }
}

impl Event {
    /// An event that happens now. Only its kind is known yet.
    pub fn new(kind: EventKind) -> Self {
        Self {
            time: wall(),
            kind,
            limit: None,
            list: None,
            key: None,
            client: None,
            until: None,
            span: None,
            route: None,
            request_id: None,
            decision: None,
            address: None,
            banned_network: None,
            ban: None,
            reason: None,
            account: None,
        }
    }

    /// An event that lasts for `span`, from its time.
    #[must_use]
    pub fn lasting(self, span: Duration) -> Self {
        Self { until: Some(self.time + span), span: Some(span), ..self }
    }

    fn is_decided(&self, decision: DecisionLabel) -> bool {
        self.decision == Some(decision.as_str())
    }

    /// One line of JSON, without a line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("keys are text, and writing to a string does not fail")
    }

    /// As operators see it who ask this gateway: names of accounts are in clear.
    pub fn for_operators(&self) -> Value {
        let mut json = json!(self);
        if let Some(failed) = &self.account {
            json["account"] = json!(failed.account.name);
        }
        json
    }

    /// Every known field as text, under its name in the JSON. For sinks that store only text.
    pub(super) fn texts(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let owned = |text: String| Some(Cow::Owned(text));
        let key = self.key.as_deref().map(|key| {
            let json = serde_json::to_string(&KeyObject(key)).expect("a map of strings is JSON");
            Cow::Owned(json)
        });
        let all = [
            ("time", owned(self.time.to_string())),
            ("event", Some(Cow::Borrowed(self.kind.as_str()))),
            ("limit", self.limit.as_deref().map(Cow::Borrowed)),
            ("key", key),
            ("client", self.client.and_then(|client| owned(client.to_string()))),
            ("until", self.until.and_then(|until| owned(until.to_string()))),
            ("for", self.span.and_then(|span| owned(span.as_secs_f64().to_string()))),
            ("failures", self.account.as_ref().and_then(|failed| owned(failed.failures.to_string()))),
            ("clients", self.account.as_ref().and_then(|failed| owned(failed.clients.to_string()))),
        ];
        let optional = self.optional_texts().map(|(name, text)| (name, text.map(Cow::Borrowed)));
        all.into_iter().chain(optional).filter_map(|(name, text)| Some((name, text?))).collect()
    }

    fn optional_texts(&self) -> [(&'static str, Option<&str>); 8] {
        [
            ("list", self.list.as_deref()),
            ("route", self.route.as_deref()),
            ("request_id", self.request_id.as_deref()),
            ("decision", self.decision),
            ("address", self.address.as_deref()),
            ("ban", self.ban.as_deref()),
            ("reason", self.reason.as_deref()),
            ("account", self.account.as_ref().map(|failed| &*failed.account.masked)),
        ]
    }
}

/// The first six fields are always there, `null` where unknown. The others are there only where they are known.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("time", &self.time.to_string())?;
        map.serialize_entry("event", self.kind.as_str())?;
        map.serialize_entry("limit", &self.limit.as_deref())?;
        map.serialize_entry("key", &self.key.as_deref().map(KeyObject))?;
        map.serialize_entry("client", &self.client.map(|client| client.to_string()))?;
        map.serialize_entry("until", &self.until.map(|until| until.to_string()))?;
        if let Some(span) = self.span {
            // Whole seconds without a decimal point.
            let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            if millis.is_multiple_of(1000) {
                map.serialize_entry("for", &(millis / 1000))?;
            } else {
                map.serialize_entry("for", &span.as_secs_f64())?;
            }
        }
        for (name, text) in self.optional_texts() {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        if let Some(FailedAccount { failures, clients, .. }) = &self.account {
            map.serialize_entry("failures", failures)?;
            map.serialize_entry("clients", clients)?;
        }
        map.end()
    }
}

/// A key as a JSON object: selector to masked value.
#[derive(Clone, Copy)]
struct KeyObject<'a>(&'a [(String, String)]);

impl Serialize for KeyObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(selector, value)| (selector, value)))
    }
}

// What messages say: the occasion, and whom an event concerns.

/// What a notification would tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Occasion {
    BanBegins,
    /// A request met a ban that had begun before. The first of them tells nothing new, the next ones remind of it.
    BanStands,
    Other,
}

impl Occasion {
    pub(super) fn of(event: &Event) -> Self {
        match event.kind {
            EventKind::Ban => Self::BanBegins,
            EventKind::Denial if event.is_decided(DecisionLabel::Banned) => Self::BanStands,
            _ => Self::Other,
        }
    }
}

/// More routes are counted and not named.
const MOST_ROUTES_NAMED: usize = 5;

/// What the events of a limit or a route concern, which their fields do not say.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct EventSubject {
    /// Where the limit stands: `the route login`.
    place: String,
    /// The places of the parts of its key that are user names.
    names: Vec<usize>,
    /// By how many bits of an address its key counts clients.
    prefix: Prefix,
}

impl EventSubject {
    /// Of the events of one limit of `policy`.
    pub fn of_limit(policy: &Policy, id: LimitId) -> Self {
        let parts = &policy.limit(id).key.parts;
        let name_of_user = |place: &usize| parts[*place].selector.is_login_name();
        let names = policy.limit(id).key.names.iter().copied().chain((0..parts.len()).filter(name_of_user)).collect();
        let own = parts.iter().flat_map(|part| part.selector.choices()).find_map(|selector| match selector {
            Selector::ClientIp(prefix) => Some(*prefix),
            _ => None,
        });
        let routes = policy.routes.all().iter().filter(|route| route.limits.contains(&id));
        let routes: Vec<&str> = routes.map(|route| &*route.name).collect();
        let place = if policy.everywhere.contains(&id) { "every route".to_owned() } else { named_routes(&routes) };
        Self { place, names, prefix: own.flatten().unwrap_or(policy.client_prefix) }
    }

    /// Of the events of one route.
    pub fn of_route(name: &str) -> Self {
        Self { place: named_routes(&[name]), ..Self::default() }
    }

    /// What happened to whom: `locks the route login for everyone for 5m, by the limit login-lockdown, until ..`.
    pub fn sentence(&self, event: &Event) -> String {
        let is_for_all = event.key.as_ref().is_some_and(Vec::is_empty);
        let (whom, place) = (self.whom(event), self.place_of(event));
        // What is left of a ban is a little less than its length.
        let ban = Span(Duration::from_secs(event.span.map(whole_seconds).unwrap_or_default()));
        let happened = match event.kind {
            EventKind::Ban if is_for_all => format!("locks {place} for everyone for {ban}"),
            EventKind::Ban => format!("bans {whom} on {place} for {ban}"),
            EventKind::Unban => format!("lifts the ban of {whom}"),
            EventKind::Delay => format!("delays {whom} on {place} by {}", Span(event.span.unwrap_or_default())),
            EventKind::Denial if event.is_decided(DecisionLabel::Banned) && is_for_all => {
                format!("keeps {place} locked for everyone")
            }
            EventKind::Denial if event.is_decided(DecisionLabel::Banned) => {
                format!("keeps {whom}, banned before, off {place}")
            }
            EventKind::Denial if event.is_decided(DecisionLabel::Challenged) => format!("challenges {whom} on {place}"),
            EventKind::Denial => format!("denies {whom} on {place}"),
            EventKind::SignedInAfterFailures => {
                let account = event.account.as_ref().map(|failed| &*failed.account.masked).unwrap_or_default();
                format!("{whom} has signed in to the account {account} on {place}")
            }
            EventKind::Reload => "reloads its configuration".to_owned(),
        };
        let shows_client = whom.contains("the client") || whom.contains("the network");
        let details = [
            event.limit.as_deref().map(|limit| format!(", by the limit {limit}")),
            event.until.filter(|_| event.kind != EventKind::Delay).map(|until| format!(", until {until}")),
            event.reason.as_deref().map(|reason| format!(", {reason}")),
            event.client.filter(|_| !shows_client).map(|client| format!(", last by the client {client}")),
        ];
        details.into_iter().flatten().fold(happened, |sentence, detail| sentence + &detail)
    }

    /// A ban holds wherever its limit stands, anything else is about one request.
    fn place_of(&self, event: &Event) -> String {
        match &event.route {
            Some(route) if event.kind != EventKind::Ban && !event.is_decided(DecisionLabel::Banned) => {
                named_routes(&[route])
            }
            _ => self.place.clone(),
        }
    }

    /// `the client 203.0.113.9 with the account a***1f3c`.
    fn whom(&self, event: &Event) -> String {
        let parts = event.key.as_deref().unwrap_or_default();
        let client = || event.client.map(|client| self.client(client));
        let named = parts.iter().enumerate().map(|(place, (selector, value))| match selector.parse() {
            Ok(Selector::ClientIp(_)) => client().unwrap_or_else(|| format!("the client {value}")),
            Ok(Selector::User) => format!("the account {value}"),
            _ if value.is_empty() => format!("those without {selector}"),
            _ if self.names.contains(&place) => named_value("account", value),
            Ok(Selector::Host) => format!("the host {value}"),
            _ => named_value(selector, value),
        });
        let named: Vec<_> = named.collect();
        match (&event.key, event.address.as_deref()) {
            (None, Some(address)) => format!("the client {address}"),
            (None, None) => client().unwrap_or_else(|| "everyone".to_owned()),
            (Some(_), _) if named.is_empty() => "everyone".to_owned(),
            (Some(_), _) => named.join(" with "),
        }
    }

    /// As the key counts it.
    fn client(&self, client: IpAddr) -> String {
        let (prefix, all) = match client {
            IpAddr::V4(_) => (self.prefix.v4, 32),
            IpAddr::V6(_) => (self.prefix.v6, 128),
        };
        match IpNet::new(client, prefix) {
            Ok(network) if prefix < all => format!("the network {}", network.trunc()),
            _ => format!("the client {client}"),
        }
    }
}

/// `the account a***1f3c`. Asterisks alone tell nobody which one it is.
fn named_value(what: &str, value: &str) -> String {
    if value == "***" { format!("one {what} (its value is never shown)") } else { format!("the {what} {value}") }
}

fn named_routes(names: &[&str]) -> String {
    match names {
        [] => "every route".to_owned(),
        [one] => format!("the route {one}"),
        [some @ .., last] if names.len() <= MOST_ROUTES_NAMED => format!("the routes {} and {last}", some.join(", ")),
        all => format!("{} routes", all.len()),
    }
}

// Hands events to the audit trail and the event stream, and opens the webhook channels.

/// Lives as long as the process. A reload replaces the audit trail and the webhook channels.
#[derive(Debug)]
pub struct EventBus {
    trail: ArcSwap<AuditTrail>,
    /// Whether the trail has any sink. Every denial reads this.
    has_trail: AtomicBool,
    stream: EventStream,
    past: PastEvents,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl EventBus {
    pub(super) fn new() -> Self {
        Self {
            trail: ArcSwap::from_pointee(AuditTrail::default()),
            has_trail: AtomicBool::new(false),
            stream: EventStream::new(Clock::system()),
            past: PastEvents::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Opens the sinks of the audit trail. [`Self::set_trail`] puts them in force. To be called within a runtime.
    pub fn open_trail(
        &self,
        settings: &AuditSettings,
        redis: Option<&Arc<dyn StoreRedis>>,
        metrics: &Metrics,
    ) -> Result<AuditTrail, AuditError> {
        AuditTrail::open(
            settings,
            Some(&self.trail.load()),
            AuditContext { metrics, redis, tasks: &self.tasks, closing: &self.closing },
        )
    }

    pub fn set_trail(&self, trail: AuditTrail) {
        trail.put_in_force();
        let has_trail = !trail.is_empty();
        self.trail.store(Arc::new(trail));
        self.has_trail.store(has_trail, Ordering::Release);
    }

    /// Opens the webhook channels of a configuration. Unchanged channels are taken from `previous`. To be called within
    /// a runtime.
    pub(super) fn open_channels(
        &self,
        settings: &NotifySettings,
        previous: &WebhookChannels,
        metrics: &Metrics,
        gateway: &Arc<GatewayName>,
        redis: Option<&Arc<dyn StoreRedis>>,
    ) -> WebhookChannels {
        let context = ChannelContext { metrics, gateway, redis, tasks: &self.tasks, closing: &self.closing };
        previous.reopen(settings, context)
    }

    pub fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// The newest bans and reloads.
    pub fn past(&self) -> &PastEvents {
        &self.past
    }

    /// Whether an event may reach the audit trail or a subscriber of the stream.
    pub(super) fn has_consumers(&self) -> bool {
        self.stream.has_subscribers() || self.has_trail()
    }

    /// Whether an event reaches the audit trail.
    pub(super) fn has_trail(&self) -> bool {
        self.has_trail.load(Ordering::Acquire)
    }

    /// Hands an event to the audit trail and the stream. The recorder notifies the webhooks. Does not wait.
    pub fn publish(&self, event: &Arc<Event>) {
        self.trail.load().append(event);
        self.stream.publish(event);
        self.past.keep(event);
    }

    /// Publishes the event of a request. The stream takes a bounded number of these in a second: `is_streamed` says
    /// whether it takes this one.
    pub(super) fn publish_request(&self, event: &Arc<Event>, is_streamed: bool) {
        self.trail.load().append(event);
        if is_streamed {
            self.stream.publish(event);
        }
    }

    /// Keeps an event that another gateway publishes, for the list of recent events. The audit trail also gets lifted
    /// bans.
    pub fn keep_remote(&self, event: &Arc<Event>) {
        self.trail.load().append_remote_lift(event);
        self.past.keep(event);
    }

    /// Ends the stream, and waits until all published events are written and sent, but no longer than `at_most`.
    pub async fn close(&self, at_most: Duration) {
        self.stream.close_subscriptions();
        self.closing.cancel();
        self.has_trail.store(false, Ordering::Release);
        let writers = self.trail.swap(Arc::new(AuditTrail::default())).finished();
        self.tasks.close();
        let all = async {
            for writer in writers {
                writer.wait().await;
            }
            self.tasks.wait().await;
        };
        drop(timeout(at_most, all).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::attacks::AccountId;

    #[test]
    fn a_sentence_says_what_happened_to_whom_and_where() {
        let subject = EventSubject {
            place: named_routes(&["login", "api", "admin"]),
            names: vec![1],
            prefix: Prefix { v4: 32, v6: 64 },
        };
        let key = |parts: &[(&str, &str)]| {
            Some(parts.iter().map(|(selector, value)| ((*selector).to_owned(), (*value).to_owned())).collect())
        };
        let event = |kind, parts: &[(&str, &str)]| Event {
            limit: Some("pace".into()),
            key: key(parts),
            client: Some([203, 0, 113, 9].into()),
            route: Some("login".into()),
            ..event_of(kind)
        };
        let banned = |parts: &[(&str, &str)]| event(EventKind::Ban, parts).lasting(Duration::from_secs(900));
        let (client, both) = ([("client_ip", "203.0.*.*")], [("client_ip", "203.0.*.*"), ("param.log", "m***1f3c")]);
        let of_key = |subject: &EventSubject, event: &Event| subject.sentence(event);
        let (until, by) = ("until 2023-11-14T22:28:20.250Z", "by the limit pace");
        for (event, expected) in [
            (
                banned(&[]),
                format!(
                    "locks the routes login, api and admin for everyone for 15m, {by}, {until}, last by the client 203.0.113.9"
                ),
            ),
            (
                banned(&client),
                format!("bans the client 203.0.113.9 on the routes login, api and admin for 15m, {by}, {until}"),
            ),
            (
                event(EventKind::Denial, &both),
                format!("denies the client 203.0.113.9 with the account m***1f3c on the route login, {by}"),
            ),
            (
                event(EventKind::Denial, &[("bearer", "***")]),
                format!(
                    "denies one bearer (its value is never shown) on the route login, {by}, last by the client 203.0.113.9"
                ),
            ),
            (
                event(EventKind::Denial, &[("client_ip", "203.0.*.*"), ("param.pin", "***")]),
                format!(
                    "denies the client 203.0.113.9 with one account (its value is never shown) on the route login, {by}"
                ),
            ),
            (
                event(EventKind::Denial, &[]),
                format!("denies everyone on the route login, {by}, last by the client 203.0.113.9"),
            ),
            (
                event(EventKind::Delay, &client).lasting(Duration::from_secs(20)),
                format!("delays the client 203.0.113.9 on the route login by 20s, {by}"),
            ),
        ] {
            assert_eq!(of_key(&subject, &event), expected);
        }
        let network = EventSubject { prefix: Prefix { v4: 24, v6: 64 }, place: named_routes(&[]), ..subject };
        let expected = format!("bans the network 203.0.113.0/24 on every route for 15m, {by}, {until}");
        assert_eq!(of_key(&network, &banned(&client)), expected);
        let of_six = Event { client: Some("2001:db8::9".parse().unwrap()), ..banned(&client) };
        assert!(of_key(&network, &of_six).starts_with("bans the network 2001:db8::/64 on"));
        let reason = Some("after 6 failures from 2 clients within the hour".into());
        let account = Account { id: AccountId(1), name: "mary".into(), masked: "m***1f3c".into() };
        let account = Some(FailedAccount { account, failures: 6, clients: 2 });
        let client = Some([203, 0, 113, 9].into());
        let sign_in = Event { client, reason, account, ..event_of(EventKind::SignedInAfterFailures) };
        assert_eq!(
            EventSubject::of_route("login").sentence(&sign_in),
            "the client 203.0.113.9 has signed in to the account m***1f3c on the route login, \
             after 6 failures from 2 clients within the hour"
        );
    }

    fn event_of(kind: EventKind) -> Event {
        Event { time: Timestamp::from_micros(1_700_000_000_250_000), ..Event::new(kind) }
    }

    #[test]
    fn the_first_six_fields_are_there_even_where_unknown() {
        let json = event_of(EventKind::Reload).to_json();
        assert_eq!(
            json,
            r#"{"time":"2023-11-14T22:13:20.250Z","event":"reload","limit":null,"key":null,"client":null,"until":null}"#
        );
    }

    #[test]
    fn an_event_says_who_what_why_and_until_when() {
        let event = Event {
            limit: Some("login".into()),
            key: Some(vec![("client_ip".into(), "198.51.100.*".into()), ("param.u".into(), "a***".into())]),
            client: Some([198, 51, 100, 7].into()),
            request_id: Some("r1".into()),
            reason: Some("a \"word\"".into()),
            ..event_of(EventKind::Ban).lasting(Duration::from_secs(900))
        };
        assert_eq!(
            event.to_json(),
            "{\"time\":\"2023-11-14T22:13:20.250Z\",\"event\":\"ban\",\"limit\":\"login\",\
             \"key\":{\"client_ip\":\"198.51.100.*\",\"param.u\":\"a***\"},\"client\":\"198.51.100.7\",\
             \"until\":\"2023-11-14T22:28:20.250Z\",\"for\":900,\"request_id\":\"r1\",\"reason\":\"a \\\"word\\\"\"}"
        );
        let texts = event.texts();
        let text = |name| texts.iter().find(|(known, _)| *known == name).map(|(_, text)| &**text);
        assert_eq!(text("key"), Some(r#"{"client_ip":"198.51.100.*","param.u":"a***"}"#));
        assert_eq!((text("for"), text("client"), text("route")), (Some("900"), Some("198.51.100.7"), None));
        assert!(event_of(EventKind::Delay).lasting(Duration::from_millis(1500)).to_json().contains(r#""for":1.5"#));
    }
}
