//! Our own request log in the formats `json` and `ecs`.

use std::borrow::Cow;
use std::time::Duration;

use http::Method;
use serde::Deserialize;

use super::LogLine;
use crate::record::{DecisionLabel, ObservedOutcome};
use crate::replay::formats::scanner;
use crate::replay::formats::scanner::Scanner;
use crate::replay::{AnsweredBy, LoggedHeader, LoggedKey, LoggedRequest, LoggedValue};
use crate::rules::client::forwarded;
use crate::rules::outcome::Outcome;
use crate::wire::head::KnownName;
use crate::words::clock::Timestamp;

/// The fields of one line, under the names of either format.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Line<'l> {
    #[serde(borrow, alias = "@timestamp")]
    pub(super) time: Cow<'l, str>,
    #[serde(borrow, alias = "client.ip")]
    pub(super) client: Cow<'l, str>,
    #[serde(borrow, alias = "http.version")]
    pub(super) protocol: Option<Cow<'l, str>>,
    #[serde(borrow, alias = "http.request.method")]
    pub(super) method: Cow<'l, str>,
    #[serde(borrow, alias = "url.domain")]
    pub(super) host: Cow<'l, str>,
    #[serde(rename = "url.port")]
    pub(super) port: Option<u16>,
    #[serde(borrow, alias = "url.path")]
    pub(super) path: Cow<'l, str>,
    #[serde(borrow, alias = "url.query")]
    pub(super) query: Option<Cow<'l, str>>,
    #[serde(borrow, alias = "user_agent.original")]
    pub(super) user_agent: Option<Cow<'l, str>>,
    #[serde(borrow, alias = "event.action")]
    pub(super) decision: Cow<'l, str>,
    #[serde(alias = "http.response.status_code")]
    pub(super) status: Option<u16>,
    #[serde(borrow, alias = "portcullis.outcome")]
    pub(super) outcome: Option<Cow<'l, str>>,
    #[serde(borrow, alias = "portcullis.keys")]
    pub(super) keys: Option<Cow<'l, str>>,
    #[serde(borrow, alias = "portcullis.upstream")]
    pub(super) upstream: Option<Cow<'l, str>>,
    pub(super) duration_ms: Option<f64>,
    /// In nanoseconds.
    #[serde(rename = "event.duration")]
    pub(super) duration: Option<u64>,
    /// With a message, of a line of the operational log, which may share the file.
    #[serde(borrow)]
    level: Option<Cow<'l, str>>,
    #[serde(borrow)]
    message: Option<Cow<'l, str>>,
    #[serde(borrow, rename = "event.dataset")]
    dataset: Option<Cow<'l, str>>,
}

/// The levels of the operational log.
const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    if line.first() != Some(&b'{') {
        return None;
    }
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    let end = scanner::of_rfc3339(&line.time)?;
    if line.is_operational() {
        return Some(LogLine::NoRequest);
    }
    let mut read = line.read(end)?;
    if let LogLine::Request(request) = &mut read {
        let sent = line.user_agent.as_ref();
        let value = sent.map_or(LoggedValue::NotSent, |value| LoggedValue::Sent(value.as_bytes().into()));
        request.headers = vec![LoggedHeader::new(KnownName::USER_AGENT, value)];
    }
    Some(read)
}

impl Line<'_> {
    fn is_operational(&self) -> bool {
        let has_level = self.message.is_some() && self.level.as_ref().is_some_and(|level| LEVELS.contains(&&**level));
        let is_of_log = self.dataset.as_ref().is_some_and(|dataset| dataset == "portcullis.log");
        self.decision.is_empty() && (has_level || is_of_log)
    }

    /// The request of a line that was written at `end`, when the request had ended. Without its headers.
    pub(super) fn read(&self, end: Timestamp) -> Option<LogLine> {
        let client = forwarded::address(self.client.as_bytes())?;
        let decision = DecisionLabel::ALL.into_iter().find(|label| label.as_str() == self.decision)?;
        let is_forwarded = self.upstream.is_some();
        // A malformed head has no protocol.
        if self.path.is_empty()
            && self.method == "POST"
            && (decision != DecisionLabel::Error || self.protocol.is_some())
        {
            return Some(LogLine::DescriptorCall);
        }
        if decision == DecisionLabel::Error && !is_forwarded || self.path.is_empty() {
            // Refused as malformed, before any rule.
            return Some(LogLine::NoRequest);
        }
        let method = Method::from_bytes(self.method.as_bytes()).ok()?;
        let duration = match (self.duration_ms, self.duration) {
            (Some(millis), _) => Duration::try_from_secs_f64(millis / 1000.0).ok(),
            (None, Some(nanos)) => Some(Duration::from_nanos(nanos)),
            (None, None) => None,
        };
        let target = match &self.query {
            None => Cow::Borrowed(&*self.path),
            Some(query) => Cow::Owned(format!("{}?{query}", self.path)),
        };
        let mut logged = LoggedRequest::new(scanner::before(end, duration), client, method, &target);
        logged.duration = duration;
        // A request without a query has no field either.
        logged.has_query = self.query.is_some();
        logged.host = match (&*self.host, self.port) {
            ("", _) => None,
            (host, None) => Some(host.into()),
            (host, Some(port)) => Some(format!("{host}:{port}").into()),
        };
        logged = logged.answered_with(self.status.unwrap_or(0));
        logged.outcome = self.outcome.as_deref().and_then(outcome);
        logged.keys = self.keys.as_deref().unwrap_or_default().lines().filter_map(LoggedKey::read).collect();
        logged.answered_by = match (decision, self.status) {
            // If a proxy asked about the request, the status is the gateway's own, unless Envoy showed the answer.
            (DecisionLabel::Allowed | DecisionLabel::Delayed, Some(_))
                if is_forwarded || matches!(logged.outcome, Some(ObservedOutcome::Known(_))) =>
            {
                AnsweredBy::Application
            }
            (DecisionLabel::Error, Some(502 | 503)) => AnsweredBy::NoApplication,
            _ => AnsweredBy::Unknown,
        };
        Some(LogLine::Request(logged))
    }
}

pub(super) fn outcome(word: &str) -> Option<ObservedOutcome> {
    let known = Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == word).map(ObservedOutcome::Known);
    known.or((word == ObservedOutcome::Unknown.as_str()).then_some(ObservedOutcome::Unknown))
}

/// `2026-11-21T07:58:52.123Z 198.51.100.7 GET example.com/a?b 200 allowed upstream=app 1.234ms id=4f`
pub(super) fn read_human(line: &[u8]) -> Option<LogLine> {
    let text = str::from_utf8(line).ok()?;
    let mut words = Scanner::new(text.as_bytes());
    let end = scanner::of_rfc3339(words.text_word()?)?;
    let client = words.text_word()?;
    if LEVELS.contains(&client) {
        return Some(LogLine::NoRequest);
    }
    let method = words.text_word()?;
    let target = words.text_word()?;
    let status = words.text_word()?;
    let decision = words.text_word()?;
    // A call about descriptors has a domain and no path.
    let (host, target) = target.split_at(target.find(['/', '*']).unwrap_or(target.len()));
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let mut line = Line {
        client: client.into(),
        method: method.into(),
        host: host.into(),
        path: path.into(),
        query: query.map(Into::into),
        decision: decision.into(),
        status: status.parse().ok(),
        ..Line::default()
    };
    while let Some(word) = words.text_word() {
        // The text of an error comes last, and is free.
        if word.starts_with("error=") {
            break;
        }
        if let Some(upstream) = word.strip_prefix("upstream=") {
            line.upstream = Some(upstream.into());
        } else if let Some(outcome) = word.strip_prefix("outcome=") {
            line.outcome = Some(outcome.into());
        } else if let Some(millis) = word.strip_suffix("ms").and_then(|millis| millis.parse().ok()) {
            line.duration_ms = Some(millis);
        }
    }
    line.read(end)
}

// Our own request log in the format `otel`: a `LogRecord` of OpenTelemetry in each line.

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogRecord<'l> {
    #[serde(borrow)]
    time_unix_nano: Cow<'l, str>,
    #[serde(borrow, default)]
    severity_text: Cow<'l, str>,
    #[serde(borrow)]
    attributes: Vec<Attribute<'l>>,
}

#[derive(Deserialize)]
struct Attribute<'l> {
    #[serde(borrow)]
    key: Cow<'l, str>,
    #[serde(borrow)]
    value: AnyValue<'l>,
}

#[derive(Deserialize)]
struct AnyValue<'l> {
    #[serde(borrow, rename = "stringValue")]
    text: Option<Cow<'l, str>>,
    /// As text, because JSON numbers need not hold 64 bits.
    #[serde(borrow, rename = "intValue")]
    integer: Option<Cow<'l, str>>,
    #[serde(rename = "doubleValue")]
    float: Option<f64>,
}

pub(super) fn read_otel(line: &[u8]) -> Option<LogLine> {
    if line.first() != Some(&b'{') {
        return None;
    }
    let record: LogRecord<'_> = serde_json::from_slice(line).ok()?;
    let nanos: u64 = record.time_unix_nano.parse().ok()?;
    let mut line = Line::default();
    let mut user_agent = LoggedValue::NotSent;
    for Attribute { key, value } in record.attributes {
        let text = value.text;
        let number = value.integer.and_then(|number| number.parse().ok());
        match &*key {
            "client.address" => line.client = text.unwrap_or_default(),
            "network.protocol.version" => line.protocol = text,
            "http.request.method" => line.method = text.unwrap_or_default(),
            "server.address" => line.host = text.unwrap_or_default(),
            "server.port" => line.port = number,
            "url.path" => line.path = text.unwrap_or_default(),
            "url.query" => line.query = text,
            "user_agent.original" => {
                user_agent = LoggedValue::Sent(text.unwrap_or_default().as_bytes().into());
            }
            "portcullis.decision" => line.decision = text.unwrap_or_default(),
            "http.response.status_code" => line.status = number,
            "portcullis.outcome" => line.outcome = text,
            "portcullis.keys" => line.keys = text,
            "portcullis.upstream" => line.upstream = text,
            "portcullis.duration_ms" => line.duration_ms = value.float,
            _ => {}
        }
    }
    if line.decision.is_empty() && LEVELS.contains(&&*record.severity_text) {
        return Some(LogLine::NoRequest);
    }
    let mut read = line.read(Timestamp::from_micros(nanos / 1000))?;
    if let LogLine::Request(request) = &mut read {
        request.headers = vec![LoggedHeader::new(KnownName::USER_AGENT, user_agent)];
    }
    Some(read)
}
