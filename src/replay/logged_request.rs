//! A request as an access log tells it.

use std::net::IpAddr;
use std::time::Duration;

use http::Method;
use http::StatusCode;

use crate::clock::Timestamp;
use crate::head::FieldName;
use crate::record::ObservedOutcome;

/// A request as an access log tells it. What the log does not hold is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    /// When the request began, to the precision of the log.
    pub started: Timestamp,
    /// From the start of the request to the end of its answer.
    pub duration: Option<Duration>,
    /// The address that the log names. A proxy that knows its own proxies has found the client already.
    pub client: IpAddr,
    pub method: Method,
    pub host: Option<Box<str>>,
    /// The path and the query, or an absolute URL, as they were sent.
    pub target: Box<str>,
    /// Whether the query would be in the target: a log may leave all queries out.
    pub has_query: bool,
    /// What the client got; `None` where it left before.
    pub status: Option<StatusCode>,
    pub answered_by: AnsweredBy,
    /// The outcome that the gateway logged.
    pub outcome: Option<ObservedOutcome>,
    /// Whether a header that is not below was not sent.
    pub has_all_headers: bool,
    pub headers: Vec<LoggedHeader>,
    /// The headers of the answer.
    pub answer_headers: Vec<LoggedHeader>,
}

/// Who gave the answer that was logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnsweredBy {
    Application,
    /// The gateway answered for an application that it did not reach.
    NoApplication,
    /// The gateway denied the request, or the application did not answer it to the end. What the application would have
    /// said is unknown.
    Unknown,
}

/// A header that a log has a place for.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedHeader {
    pub name: FieldName,
    pub value: LoggedValue,
}

/// What a log says of a header.
#[derive(Clone, Debug, PartialEq)]
pub enum LoggedValue {
    Sent(Box<[u8]>),
    NotSent,
    /// Its place is there, and the value was kept out of the log.
    Hidden,
}

impl LoggedRequest {
    /// A request of which only the parts are known that every log has.
    pub(super) fn new(started: Timestamp, client: IpAddr, method: Method, target: &str) -> Self {
        Self {
            started,
            duration: None,
            client,
            method,
            host: host_of(target),
            target: target.into(),
            has_query: true,
            status: None,
            answered_by: AnsweredBy::Unknown,
            outcome: None,
            has_all_headers: false,
            headers: Vec::new(),
            answer_headers: Vec::new(),
        }
    }

    /// The status of an answer. Codes that no application sends mean that there was none: nginx logs 499 where the
    /// client left, HAProxy -1, Caddy 0.
    #[must_use]
    pub(super) fn answered_with(self, status: u16) -> Self {
        let Ok(code) = StatusCode::from_u16(status) else { return self };
        let answered_by = if status == CLIENT_LEFT { AnsweredBy::Unknown } else { AnsweredBy::Application };
        Self { status: Some(code), answered_by, ..self }
    }

    /// The path and the query as they were sent, without scheme and host.
    pub fn path_and_query(&self) -> &str {
        let Some((_, rest)) = self.target.split_once("://") else { return &self.target };
        if self.target.starts_with('/') {
            return &self.target;
        }
        rest.find('/').map_or("/", |slash| &rest[slash..])
    }

    /// About how many bytes of memory it takes.
    pub(super) fn size(&self) -> usize {
        let header = |header: &LoggedHeader| size_of::<LoggedHeader>() + header.size();
        let headers = self.headers.iter().chain(&self.answer_headers).map(header).sum::<usize>();
        size_of::<Self>() + self.target.len() + self.host.as_ref().map_or(0, |host| host.len()) + headers
    }
}

impl LoggedHeader {
    pub(super) fn new(name: impl Into<FieldName>, value: LoggedValue) -> Self {
        Self { name: name.into(), value }
    }

    fn size(&self) -> usize {
        match &self.value {
            LoggedValue::Sent(value) => value.len(),
            LoggedValue::NotSent | LoggedValue::Hidden => 0,
        }
    }
}

/// The host of an absolute URL, which HTTP/2 has in place of a path in some logs.
fn host_of(target: &str) -> Option<Box<str>> {
    let (scheme, rest) = target.split_once("://")?;
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let is_scheme = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    (is_scheme && !host.is_empty()).then(|| host.into())
}

const CLIENT_LEFT: u16 = 499;
