//! What the head of a request says, kept until the request is recorded.

use http::HeaderValue;
use http::Method;
use http::Uri;
use http::Version;
use http::header::HOST;
use http::header::USER_AGENT;
use http::request::Parts;

use super::admit::request_id::RequestId;
use super::forward::headers;
use super::respond::preference::ReplyPreference;
use super::snapshot::Snapshot;
use crate::client::Identity;
use crate::clock::Timestamp;
use crate::listen::Connection;
use crate::listen::OnUpgrade;
use crate::record::TraceId;

/// A request as it came. Nothing that happens to it later changes this.
#[derive(Debug)]
pub struct Facts {
    pub request_id: RequestId,
    pub identity: Identity,
    /// Who reads an answer of our own.
    pub preference: ReplyPreference,
    pub method: Method,
    pub target: Uri,
    pub version: Version,
    pub scheme: &'static str,
    /// Whether the client's connection is encrypted: here, or as far as a trusted proxy says.
    pub is_secure: bool,
    /// These two only where requests are logged.
    pub user_agent: Option<HeaderValue>,
    pub trace: Option<TraceId>,
    /// Whether the client takes any answer of success for the beginning of a tunnel (RFC 8441).
    pub asks_for_tunnel: bool,
    /// `None` until the framing checks have found exactly one.
    pub host: Option<HeaderValue>,
    pub started: Timestamp,
}

impl Facts {
    pub fn of(parts: &Parts, identity: Identity, connection: &Connection, live: &Snapshot, started: Timestamp) -> Self {
        let (user_agent, trace) = if live.recorder.logs_requests() {
            (parts.headers.get(USER_AGENT).cloned(), TraceId::of(&parts.headers))
        } else {
            (None, None)
        };
        let is_tls = connection.tls_info().is_some();
        let scheme = headers::scheme(&parts.headers, &identity, is_tls);
        Self {
            request_id: RequestId::of(&identity, &parts.headers),
            identity,
            preference: ReplyPreference::of(&parts.headers),
            method: parts.method.clone(),
            target: parts.uri.clone(),
            version: parts.version,
            scheme,
            is_secure: is_tls || scheme == "https",
            user_agent,
            trace,
            asks_for_tunnel: parts.version == Version::HTTP_2 && parts.extensions.get::<OnUpgrade>().is_some(),
            host: None,
            started,
        }
    }

    /// Empty where it has none that is text.
    pub fn host(&self) -> &str {
        self.host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default()
    }

    /// The request is held: neither this nor its head keep anything of the buffer that the head came in.
    pub fn copy_head(&mut self, parts: &mut Parts) {
        headers::copy(parts);
        self.target = parts.uri.clone();
        self.host = parts.headers.get(HOST).cloned();
        self.user_agent = self.user_agent.take().map(|value| headers::copied(&value));
        self.preference = ReplyPreference::of(&parts.headers);
    }
}
