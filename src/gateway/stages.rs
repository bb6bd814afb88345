//! What is known of a request after each step: its [`Facts`], what was [`Decided`], how it was [`Forwarded`], and how it
//! [`Ended`]. The record of the request is made from all of them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, mem};

use http::{Method, StatusCode, Version};

use super::snapshot::Snapshot;
use crate::gateway::fault::CallFault;
use crate::gateway::headers;
use crate::listen::Connection;
use crate::record::attacks::SignInAttempt;
use crate::record::kept_requests::{KeptCause, KeptRequest};
use crate::record::{AppliedLimit, DecisionLabel, ObservedOutcome, RequestRecord, TraceId, UpstreamRecord};
use crate::rules::client::Identity;
use crate::rules::decision::{Denial, DenialCause, LimitReports, ListChallenge, Pass, Policy};
use crate::rules::key::KeyHash;
use crate::rules::limit::LimitId;
use crate::rules::request::NotUnderstood;
use crate::rules::route::{RouteId, UpstreamId};
use crate::store::bans::BanId;
use crate::upstream::PreviousAttempts;
use crate::wire::head::{Fields, KnownName, RequestHead};
use crate::words::clock::Timestamp;
use crate::words::digits::HEX_PAIRS;
use crate::words::pool::pool_of;
use crate::words::units::whole_seconds;

// The first stage: the head of the request.

/// The head of a request, and its facts. Once the rules have read the head, its fields are rewritten for the
/// application; method, target and host stay as they came.
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
    /// The call that describes the request may break off, which ends the request. `None`: no proxy describes it, or it does
    /// so at once.
    pub call_fault: Option<CallFault>,
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
            call_fault: None,
            head,
            started,
        }
    }

    /// The facts of a request that a proxy describes and forwards itself. `scheme` is the scheme of the client's
    /// connection. The request gets a fresh id, because the client may have chosen the id in the description.
    /// `omits_body`: the proxy asks with HEAD.
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
            call_fault: None,
            head,
            started,
        }
    }

    /// The request records the call that describes it, should that break off.
    #[must_use]
    pub fn with_call_fault(self, fault: CallFault) -> Self {
        fault.claim_record();
        Self { call_fault: Some(fault), ..self }
    }

    pub fn user_agent(&self) -> Option<&[u8]> {
        self.head.fields.get(KnownName::USER_AGENT)
    }
}

// The second stage: what the rules have decided.

/// In seconds: a short outage of Redis has ended by then.
const UNDECIDED_WAIT: u64 = 1;

/// The final decision about a request, or that there was none.
#[derive(Debug)]
pub struct Decided {
    pub route: Option<RouteId>,
    pub label: DecisionLabel,
    pub decider: Decider,
    /// The id of the ban that denies the request.
    pub ban: Option<String>,
    /// The decision of each limit that applied.
    pub report: LimitReports,
    /// The seconds of `Retry-After`.
    pub retry_after: Option<u64>,
    /// How a limit decided on the request; `None` if no log or event shows it.
    pub applied_limit: Option<Box<AppliedLimit>>,
    /// The hashes of keys with a login name, where the log shows them.
    pub keys: Vec<(LimitId, KeyHash)>,
    /// `None`: the route has no `outcome`, or the request does not pass.
    pub sign_in: Option<Box<SignInAttempt>>,
    /// The story of the request so far; `None` for a request that passes at once.
    pub story: Option<Box<KeptRequest>>,
    /// How long the decision took; `None` when nothing was decided.
    pub took: Option<Duration>,
}

pool_of!(Decided);

/// The rule that decided.
#[derive(Clone, Debug)]
pub enum Decider {
    Nothing,
    Limit(LimitId),
    List(Arc<str>),
}

impl Decider {
    /// The name of the limit that decided.
    pub fn limit<'p>(&self, policy: &'p Policy) -> Option<&'p str> {
        match self {
            Self::Limit(id) => policy.limits.get(usize::from(id.0)).map(|limit| &*limit.name),
            Self::Nothing | Self::List(_) => None,
        }
    }

    /// The name of the list that denies the client.
    pub fn list(&self) -> Option<&str> {
        match self {
            Self::List(name) => Some(name),
            Self::Nothing | Self::Limit(_) => None,
        }
    }
}

impl Decided {
    pub fn undecided(route: Option<RouteId>) -> Self {
        Self {
            route,
            label: DecisionLabel::Error,
            decider: Decider::Nothing,
            ban: None,
            report: LimitReports::default(),
            retry_after: None,
            applied_limit: None,
            keys: Vec::new(),
            sign_in: None,
            story: None,
            took: None,
        }
    }

    /// The store is down, and a limit of this route denies meanwhile.
    pub fn store_down(route: Option<RouteId>) -> Self {
        Self { retry_after: Some(UNDECIDED_WAIT), ..Self::undecided(route) }
    }

    /// `pass` may have a delay: its limit holds the request before it is forwarded.
    pub fn of_pass(
        pass: &mut Pass,
        applied_limit: Option<Box<AppliedLimit>>,
        story: Option<Box<KeptRequest>>,
        took: Duration,
    ) -> Self {
        let (label, decider) = match pass.delay {
            Some((limit, _)) => (DecisionLabel::Delayed, Decider::Limit(limit)),
            None => (DecisionLabel::Allowed, Decider::Nothing),
        };
        Self {
            route: pass.route,
            label,
            decider,
            ban: None,
            report: mem::take(&mut pass.report),
            retry_after: None,
            applied_limit,
            keys: Vec::new(),
            sign_in: None,
            story,
            took: Some(took),
        }
    }

    /// `denial` is final: its bans have begun.
    pub fn of_denial(
        denial: &mut Denial,
        applied_limit: Option<Box<AppliedLimit>>,
        story: Option<Box<KeptRequest>>,
        ban: Option<BanId>,
        took: Duration,
    ) -> Self {
        let decider = match (&denial.cause, denial.limit) {
            (DenialCause::Listed { list } | DenialCause::Challenged(ListChallenge { list, .. }), _) => {
                Decider::List(list.clone())
            }
            (_, Some(limit)) => Decider::Limit(limit),
            (_, None) => Decider::Nothing,
        };
        Self {
            route: denial.route,
            label: DecisionLabel::of_denial(denial),
            decider,
            ban: ban.map(|ban| ban.to_string()),
            report: mem::take(&mut denial.report),
            retry_after: retry_after(denial),
            applied_limit,
            keys: Vec::new(),
            sign_in: None,
            story,
            took: Some(took),
        }
    }

    /// The request cannot be held, so the limit that would have held it denies it.
    pub fn set_denied_instead_of_held(&mut self, denial: &Denial, cause: KeptCause) {
        self.label = DecisionLabel::Denied;
        self.retry_after = retry_after(denial);
        if let Some(limit) = denial.limit {
            self.report.set_denied(limit);
            self.story.iter_mut().for_each(|story| story.set_denied(limit, cause));
        }
    }
}

/// The value of `Retry-After`: whole seconds, at least one.
fn retry_after(denial: &Denial) -> Option<u64> {
    match denial.cause {
        DenialCause::Limited { retry_after, .. } => retry_after.map(|wait| whole_seconds(wait).max(1)),
        _ => None,
    }
}

// The third stage: how the request was forwarded.

/// How a request was forwarded, or is being forwarded.
#[derive(Clone, Debug)]
pub struct Forwarded {
    pub upstream: UpstreamId,
    /// The server that answered, or the last one that was tried. `None`: none yet.
    pub server: Option<Arc<str>>,
    /// The `X-Request-ID` of the answer, where it is not ours.
    pub request_id: Option<Box<str>>,
    pub previous_attempts: PreviousAttempts,
}

impl Forwarded {
    /// The request is being sent, and no server has it yet.
    pub fn to(upstream: UpstreamId) -> Self {
        Self { upstream, server: None, request_id: None, previous_attempts: PreviousAttempts::new() }
    }
}

// The last stage: how the request ended.

/// How a request ended, or how far its answer has come.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// The status that the client got; `None` when it left before.
    pub status: Option<StatusCode>,
    /// Bytes of the answer's body that went to the client.
    pub bytes_out: u64,
    /// Why the application gave no usable answer, as a metric label.
    pub failure: Option<&'static str>,
    /// Why the request was refused or failed, as a sentence for the log.
    pub error: Option<Cow<'static, str>>,
    /// `None`: the route has no `outcome`.
    pub outcome: Option<ObservedOutcome>,
}

// The record of all stages.

/// What a record shows of the head of a request.
#[derive(Clone, Copy, Debug)]
pub struct RecordedHead<'a> {
    pub request_id: &'a str,
    pub identity: Identity,
    pub method: &'a Method,
    pub host: &'a str,
    /// As the client sent it, without the query.
    pub path: &'a str,
    pub query: Option<&'a str>,
    /// `None`: the head was not valid HTTP.
    pub version: Option<Version>,
    pub scheme: &'static str,
    pub user_agent: Option<&'a [u8]>,
    pub trace: Option<TraceId>,
}

impl<'a> RecordedHead<'a> {
    /// A head that was read as a request.
    pub fn of(facts: &'a Facts) -> Self {
        let (path, query) = facts.head.target();
        Self {
            request_id: facts.request_id.as_str(),
            identity: facts.identity,
            method: &facts.head.method,
            host: facts.head.host(),
            path,
            query,
            version: Some(facts.head.version),
            scheme: facts.scheme,
            user_agent: facts.user_agent(),
            trace: facts.trace,
        }
    }

    /// The record of a request with this head. `duration` is how long it was here, `bytes_in` how much of its body came.
    pub fn record(
        self,
        policy: &'a Policy,
        decided: &'a Decided,
        forwarded: Option<&'a Forwarded>,
        ended: &'a Ended,
        duration: Duration,
        bytes_in: u64,
    ) -> RequestRecord<'a> {
        let Self { request_id, identity, method, host, path, query, version, scheme, user_agent, trace } = self;
        RequestRecord {
            request_id,
            identity,
            method,
            host,
            path,
            query,
            version,
            scheme,
            user_agent,
            trace,
            route: decided.route,
            decision: decided.label,
            limit: decided.decider.limit(policy),
            list: decided.decider.list(),
            ban: decided.ban.as_deref(),
            limits: &decided.report.limits,
            unread: decided.report.unread.map(NotUnderstood::as_str),
            retry_after: decided.retry_after,
            status: ended.status,
            outcome: ended.outcome,
            upstream: forwarded.map(|forwarded| UpstreamRecord {
                id: forwarded.upstream,
                server: forwarded.server.as_deref(),
                failure: ended.failure,
                request_id: forwarded.request_id.as_deref(),
                previous_attempts: &forwarded.previous_attempts,
            }),
            error: ended.error.as_deref(),
            duration,
            decision_duration: decided.took,
            bytes_in,
            bytes_out: ended.bytes_out,
            applied_limit: decided.applied_limit.as_deref(),
            keys: &decided.keys,
            sign_in: decided.sign_in.as_deref(),
        }
    }
}

// The id of a request, in its log line, its deny response and the application's own log.

/// Room for every format that proxies write. A longer id is an attempt to fill logs.
const MAX_LENGTH: usize = 64;

/// 32 hexadecimal digits, or the id from a trusted proxy: at most 64 safe characters.
///
/// Aligned, so that the check for UTF-8 goes a word at a time.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct RequestId {
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

impl RequestId {
    /// The id from a trusted proxy, else a fresh one: a client could make its requests look like another client's.
    pub fn of(identity: &Identity, fields: &Fields) -> Self {
        if identity.peer_is_trusted
            && let Some(given) = fields.get(KnownName::X_REQUEST_ID).and_then(Self::from_bytes)
        {
            return given;
        }
        Self::random()
    }

    pub fn random() -> Self {
        let mut bytes = [0; MAX_LENGTH];
        for (digits, byte) in bytes.chunks_exact_mut(2).zip(fastrand::u128(..).to_le_bytes()) {
            digits.copy_from_slice(&HEX_PAIRS[usize::from(byte)]);
        }
        Self { bytes, length: 32 }
    }

    /// `None` when it is empty, too long, or not safe in a log or a page.
    fn from_bytes(given: &[u8]) -> Option<Self> {
        let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:=+/@".contains(byte);
        if given.is_empty() || given.len() > MAX_LENGTH || !given.iter().all(is_safe) {
            return None;
        }
        let mut bytes = [0; MAX_LENGTH];
        bytes[..given.len()].copy_from_slice(given);
        Some(Self { bytes, length: u8::try_from(given.len()).ok()? })
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::rules::client::ClientIp;

    fn id_from(peer_is_trusted: bool, given: &'static str) -> RequestId {
        let peer = ClientIp::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut fields = Fields::default();
        fields.append(KnownName::X_REQUEST_ID, given.as_bytes());
        RequestId::of(&Identity { peer, peer_is_trusted, client: peer }, &fields)
    }

    #[test]
    fn a_fresh_id_is_32_hexadecimal_digits() {
        let id = RequestId::random();
        assert_eq!(id.as_str().len(), 32);
        assert!(id.as_str().bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert_ne!(id.as_str(), RequestId::random().as_str());
    }

    #[test]
    fn a_trusted_proxy_names_the_request() {
        assert_eq!(id_from(true, "Root=1-67891233-abcdef").as_str(), "Root=1-67891233-abcdef");
    }

    #[test]
    fn an_untrusted_peer_does_not_name_the_request() {
        assert_eq!(id_from(false, "mine").as_str().len(), 32);
    }

    #[test]
    fn a_name_that_could_harm_a_log_is_replaced() {
        assert_eq!(id_from(true, "a b").as_str().len(), 32);
        assert_eq!(id_from(true, "\"x\"").as_str().len(), 32);
        assert_eq!(id_from(true, "").as_str().len(), 32);
    }

    proptest! {
        #[test]
        fn a_given_id_is_short_and_safe_or_none(given in prop::collection::vec(any::<u8>(), 0..70)) {
            if let Some(id) = RequestId::from_bytes(&given) {
                prop_assert_eq!(id.as_bytes(), &given[..]);
                prop_assert!(id.as_str().len() <= MAX_LENGTH && !id.as_str().contains(['"', '<', '\\', ' ']));
            }
        }
    }
}
