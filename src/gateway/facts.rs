//! Facts from the head of a request, kept until the request is recorded.

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

/// The request as it came. Later steps do not change it.
#[derive(Debug)]
pub struct Facts {
    pub request_id: RequestId,
    pub identity: Identity,
    /// The format of the gateway's own answers to this client.
    pub preference: ReplyPreference,
    pub method: Method,
    pub target: Uri,
    pub version: Version,
    pub scheme: &'static str,
    /// Whether the client's connection is encrypted: to the gateway, or to a trusted proxy that says so.
    pub is_secure: bool,
    /// Only when requests are logged, as is `trace`.
    pub user_agent: Option<HeaderValue>,
    pub trace: Option<TraceId>,
    /// Whether the client takes any successful answer for the start of a tunnel (RFC 8441).
    pub asks_for_tunnel: bool,
    /// `None` until the framing checks have found exactly one host.
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

    /// Empty when the host is not text.
    pub fn host(&self) -> &str {
        self.host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default()
    }

    /// Copies the head out of the buffer that it was read into, so that a held request does not keep that buffer.
    pub fn copy_head(&mut self, parts: &mut Parts) {
        headers::copy(parts);
        self.target = parts.uri.clone();
        self.host = parts.headers.get(HOST).cloned();
        self.user_agent = self.user_agent.take().map(|value| headers::copied(&value));
        self.preference = ReplyPreference::of(&parts.headers);
    }
}
