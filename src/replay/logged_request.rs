//! A request as an access log tells it.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, Version};

use crate::gateway::admit::{framing, strip};
use crate::gateway::header_kind::SignificantHeaders;
use crate::record::ObservedOutcome;
use crate::wire::head;
use crate::wire::head::{FieldName, Fields, KnownName};
use crate::words::clock::Timestamp;

const CLIENT_LEFT: u16 = 499;

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
    /// The status that the client got; `None`: it left before.
    pub status: Option<StatusCode>,
    pub answered_by: AnsweredBy,
    /// The outcome that the gateway logged.
    pub outcome: Option<ObservedOutcome>,
    /// Whether a header that is not below was not sent.
    pub has_all_headers: bool,
    pub headers: Vec<LoggedHeader>,
    /// The headers of the answer.
    pub answer_headers: Vec<LoggedHeader>,
    /// The hashes of keys that the gateway logged.
    pub keys: Vec<LoggedKey>,
}

/// The hash of the key under which a limit counted a request.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedKey {
    pub limit: Box<str>,
    pub hash: Box<str>,
}

impl LoggedKey {
    /// `0123456789abcdef0123456789abcdef login-account`
    pub(super) fn read(text: &str) -> Option<Self> {
        let (hash, limit) = text.split_once(' ')?;
        let is_hash = hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| Self { limit: limit.into(), hash: hash.into() })
    }

    /// The header in which the hash of this limit stands for the value that no log holds. No client sends it: it is put in
    /// after the headers of clients have been read.
    pub(super) fn header_of(limit: &str) -> FieldName {
        let mut name = "portcullis-key-".to_owned();
        for byte in limit.bytes() {
            // Writing to a string does not fail.
            let _ = write!(name, "{byte:02x}");
        }
        name.parse().expect("letters and digits")
    }
}

/// The side that gave the logged answer.
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

/// The logged form of a header.
#[derive(Clone, Debug, PartialEq)]
pub enum LoggedValue {
    Sent(Box<[u8]>),
    NotSent,
    /// Its place is there, and the value was kept out of the log.
    Hidden,
}

impl LoggedRequest {
    /// A request with only the parts that every log has.
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
            keys: Vec::new(),
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
        let keys = self.keys.iter().map(|key| size_of::<LoggedKey>() + key.limit.len() + key.hash.len()).sum::<usize>();
        size_of::<Self>() + self.target.len() + self.host.as_ref().map_or(0, |host| host.len()) + headers + keys
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

// The head of a logged request, as far as the log holds it.

/// In bytes. The gateway accepts 64 KiB by default, and no server much more.
const MAX_HEAD: usize = 128 * 1024;

/// The head as the rules see it, without what the gateway removes. `None`: the gateway refuses the request.
pub(super) fn admitted(
    request: &LoggedRequest,
    significant: &SignificantHeaders,
    has_challenges: bool,
) -> Option<head::RequestHead> {
    let mut head = head(request)?;
    strip(&mut head.fields, significant, has_challenges);
    for LoggedKey { limit, hash } in &request.keys {
        head.fields.append(&LoggedKey::header_of(limit), hash.as_bytes());
    }
    Some(head)
}

/// The head of a logged request, as far as the log holds it. `None`: the gateway refuses it.
pub(super) fn head(request: &LoggedRequest) -> Option<head::RequestHead> {
    if request.size() > MAX_HEAD {
        return None;
    }
    let mut head = head::RequestHead::to(request.method.clone(), &request.target).ok()?;
    append(&mut head.fields, &request.headers);
    match &request.host {
        Some(host) if HeaderValue::from_str(host).is_err() => return None,
        Some(host) => {
            head.fields.remove(KnownName::HOST);
            head.fields.append(KnownName::HOST, host.as_bytes());
        }
        // A request of HTTP/1.0 may do without.
        None => head.version = Version::HTTP_10,
    }
    framing::check(&mut head, SocketAddr::from((Ipv4Addr::LOCALHOST, 80))).ok()?;
    Some(head)
}

pub(super) fn append(fields: &mut Fields, headers: &[LoggedHeader]) {
    for LoggedHeader { name, value } in headers {
        if let LoggedValue::Sent(value) = value
            && HeaderValue::from_bytes(value).is_ok()
        {
            fields.append(name, value);
        }
    }
}
