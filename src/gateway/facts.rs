//! What is known of a request from its head, kept until the request is recorded.

use http::Method;
use http::Version;

use super::admit::request_id::RequestId;
use super::forward::headers;
use super::snapshot::Snapshot;
use crate::client::Identity;
use crate::clock::Timestamp;
use crate::head::KnownName;
use crate::head::RequestHead;
use crate::listen::Connection;
use crate::record::TraceId;

/// The head of a request, and what it says. Once the rules have read the head, its fields become those that the
/// application gets; method, target and host stay as they came.
#[derive(Debug)]
pub struct Facts {
    pub head: RequestHead,
    pub request_id: RequestId,
    pub identity: Identity,
    pub scheme: &'static str,
    /// Whether the client's connection is encrypted: to the gateway, or to a trusted proxy that says so.
    pub is_secure: bool,
    /// Only when requests are logged.
    pub trace: Option<TraceId>,
    /// Whether the client takes any successful answer for the start of a tunnel (RFC 8441).
    pub asks_for_tunnel: bool,
    /// Whether the answer has no body: the request, or the question of a proxy, is HEAD.
    pub omits_body: bool,
    pub front: Front,
    pub started: Timestamp,
}

/// By which front a request came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Front {
    /// Its client sent it here, and it is forwarded from here.
    Gateway,
    /// A proxy describes it, and forwards it itself.
    ForwardAuth,
    /// Envoy describes it, and forwards it itself.
    ExtAuthz,
    /// Envoy describes it, forwards it itself, and shows the answer.
    ExtProc,
}

impl Front {
    /// Whether who gets the answer takes any success for a pass.
    pub fn takes_success_for_pass(self) -> bool {
        self == Self::ForwardAuth
    }

    /// Whether the end of the request will be known here, so that it can give its concurrency slots back.
    pub fn sees_end(self) -> bool {
        matches!(self, Self::Gateway | Self::ExtProc)
    }
}

impl Facts {
    /// `may_upgrade`: the client asks for another protocol.
    pub fn of(
        head: RequestHead,
        identity: Identity,
        connection: &Connection,
        live: &Snapshot,
        may_upgrade: bool,
        started: Timestamp,
    ) -> Self {
        let is_tls = connection.tls_info().is_some();
        let scheme = headers::scheme(&head.fields, &identity, is_tls);
        Self {
            request_id: RequestId::of(&identity, &head.fields),
            identity,
            scheme,
            is_secure: is_tls || matches!(scheme, "https" | "wss"),
            trace: if live.recorder.logs_requests() { TraceId::of(&head.fields) } else { None },
            asks_for_tunnel: head.version == Version::HTTP_2 && may_upgrade,
            omits_body: head.method == Method::HEAD,
            front: Front::Gateway,
            head,
            started,
        }
    }

    /// Of a request that a proxy describes and forwards itself. `scheme` is that of the client's connection. The request has
    /// a fresh id: what the question names may be the client's word. `omits_body`: the question is HEAD.
    pub fn described(
        head: RequestHead,
        identity: Identity,
        live: &Snapshot,
        scheme: &'static str,
        front: Front,
        omits_body: bool,
        started: Timestamp,
    ) -> Self {
        Self {
            request_id: RequestId::random(),
            identity,
            scheme,
            is_secure: scheme == "https",
            trace: if live.recorder.logs_requests() { TraceId::of(&head.fields) } else { None },
            asks_for_tunnel: false,
            omits_body,
            front,
            head,
            started,
        }
    }

    pub fn user_agent(&self) -> Option<&[u8]> {
        self.head.fields.get(KnownName::USER_AGENT)
    }
}
