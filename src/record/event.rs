//! A denial, delay, ban, unban or reload, as the audit trail, webhooks and the event stream report it. Keys are masked.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeMap;

use crate::clock::Timestamp;
use crate::clock::wall;

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
    /// The same, also where the key of a limit is one address. Only for what needs the address itself: it is written nowhere.
    pub banned_network: Option<BannedNetwork>,
    /// The id of the ban.
    pub ban: Option<Box<str>>,
    /// As a sentence.
    pub reason: Option<Box<str>>,
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
}

impl EventKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denial => "denial",
            Self::Delay => "delay",
            Self::Ban => "ban",
            Self::Unban => "unban",
            Self::Reload => "reload",
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
        }
    }

    /// An event that lasts for `span`, from its time.
    #[must_use]
    pub fn lasting(self, span: Duration) -> Self {
        Self { until: Some(self.time + span), span: Some(span), ..self }
    }

    /// One line of JSON, without a line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("keys are text, and writing to a string does not fail")
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
        ];
        let optional = self.optional_texts().map(|(name, text)| (name, text.map(Cow::Borrowed)));
        all.into_iter().chain(optional).filter_map(|(name, text)| Some((name, text?))).collect()
    }

    fn optional_texts(&self) -> [(&'static str, Option<&str>); 7] {
        [
            ("list", self.list.as_deref()),
            ("route", self.route.as_deref()),
            ("request_id", self.request_id.as_deref()),
            ("decision", self.decision),
            ("address", self.address.as_deref()),
            ("ban", self.ban.as_deref()),
            ("reason", self.reason.as_deref()),
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

#[cfg(test)]
mod tests {
    use super::*;

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
