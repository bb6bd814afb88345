//! Our own request log in the formats `json` and `ecs`.

use std::borrow::Cow;
use std::time::Duration;

use http::Method;
use serde::Deserialize;

use super::LogLine;
use super::time;
use crate::client::forwarded;
use crate::clock::Timestamp;
use crate::head::KnownName;
use crate::outcome::Outcome;
use crate::record::DecisionLabel;
use crate::record::ObservedOutcome;
use crate::replay::AnsweredBy;
use crate::replay::LoggedHeader;
use crate::replay::LoggedRequest;
use crate::replay::LoggedValue;

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
    #[serde(borrow, alias = "portcullis.upstream")]
    pub(super) upstream: Option<Cow<'l, str>>,
    pub(super) duration_ms: Option<f64>,
    /// In nanoseconds.
    #[serde(rename = "event.duration")]
    pub(super) duration: Option<u64>,
}

pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    if line.first() != Some(&b'{') {
        return None;
    }
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    let mut read = line.read(time::of_rfc3339(&line.time)?)?;
    if let LogLine::Request(request) = &mut read {
        let sent = line.user_agent.as_ref();
        let value = sent.map_or(LoggedValue::NotSent, |value| LoggedValue::Sent(value.as_bytes().into()));
        request.headers = vec![LoggedHeader::new(KnownName::USER_AGENT, value)];
    }
    Some(read)
}

impl Line<'_> {
    /// The request of a line that was written at `end`, when the request had ended. Without its headers.
    pub(super) fn read(&self, end: Timestamp) -> Option<LogLine> {
        let client = forwarded::address(self.client.as_bytes())?;
        let decision = DecisionLabel::ALL.into_iter().find(|label| label.as_str() == self.decision)?;
        let is_forwarded = self.upstream.is_some();
        // Of a head that is malformed, there is no protocol.
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
        let mut logged = LoggedRequest::new(time::before(end, duration), client, method, &target);
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
        logged.answered_by = match (decision, self.status) {
            // Of a request that a proxy asked about, the status is the gateway's own, unless Envoy showed the answer.
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
