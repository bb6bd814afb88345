//! What is told of a request when it is over: exactly once, also when its client leaves before.

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::HeaderValue;
use http::Method;
use http::StatusCode;
use http::Uri;
use http::Version;
use http::header::HOST;
use http::header::USER_AGENT;
use http::request::Parts;
use smallvec::SmallVec;

use crate::client::Identity;
use crate::clock::Timestamp;
use crate::decision::Denial;
use crate::decision::Pending;
use crate::decision::conclude::Report;
use crate::decision::device::Newcomer;
use crate::gateway::admit::intake::Intake;
use crate::gateway::admit::request_id::RequestId;
use crate::gateway::core::Core;
use crate::gateway::forward::device;
use crate::gateway::forward::headers;
use crate::gateway::forward::upgrade;
use crate::gateway::respond::audience::Audience;
use crate::gateway::settle::Held;
use crate::gateway::settle::Settling;
use crate::gateway::settle::settle;
use crate::gateway::snapshot::Snapshot;
use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::listen::Connection;
use crate::listen::Interim;
use crate::listen::Refused;
use crate::outcome::Outcome;
use crate::outcome::OutcomeRule;
use crate::record::Event;
use crate::record::Forwarded;
use crate::record::Meaning;
use crate::record::Ruling;
use crate::record::Subject;
use crate::record::TraceId;
use crate::route::RouteId;
use crate::route::UpstreamId;
use crate::store::bans::BanId;
use crate::upstream::Passed;

/// A request's story. It is recorded, and what the request holds is given back, when this is dropped: at the end of
/// the answer, or wherever the client left.
#[derive(Debug)]
pub struct Story {
    pub core: Arc<Core>,
    pub live: Arc<Snapshot>,
    pub request_id: RequestId,
    pub identity: Identity,
    /// Who reads an answer of our own.
    pub audience: Audience,
    method: Method,
    target: Uri,
    version: Version,
    scheme: &'static str,
    /// These two only where requests are logged.
    user_agent: Option<HeaderValue>,
    trace: Option<TraceId>,
    host: Option<HeaderValue>,
    started: Timestamp,
    decided: Option<Duration>,
    pub route: Option<RouteId>,
    pub ruling: Ruling,
    pub decider: Decider,
    /// The ban that denies it.
    pub ban: Option<BanId>,
    pub report: Report,
    /// In how many seconds the client is told to come again.
    pub retry_after: Option<u64>,
    pub status: Option<StatusCode>,
    pub sent: Option<Sent>,
    pub error: Option<Cow<'static, str>>,
    pub intake: Option<Intake>,
    pub bytes_out: u64,
    /// What a limit did to it, where somebody wants to know.
    pub subject: Option<Box<Subject>>,
    held: Held,
    /// What waits for the outcome.
    pending: Option<Box<Pending>>,
    /// Who is to be known from now on: the outcome was a success.
    newcomer: Option<Box<Newcomer>>,
    /// Whether the client takes any answer of success for a tunnel (RFC 8441).
    pub asks_for_tunnel: bool,
    /// Whether the client's connection is encrypted: here, or as far as a trusted proxy says.
    pub is_secure: bool,
    /// The way of informational answers.
    pub interim: Interim,
    /// The outcome, once it was looked for.
    meaning: Option<Meaning>,
}

/// What decided, where something did.
#[derive(Clone, Debug)]
pub enum Decider {
    Nothing,
    Limit(LimitId),
    List(Arc<str>),
}

/// What became of a request on its way to the application.
#[derive(Clone, Debug)]
pub struct Sent {
    pub upstream: UpstreamId,
    pub server: Option<Arc<str>>,
    pub failure: Option<&'static str>,
    pub passed: Passed,
}

impl Story {
    /// The story begins before anything was checked.
    ///
    /// On the heap: it is handed on many times, and at last stands in the body of the answer.
    pub fn begin(
        core: Arc<Core>,
        live: Arc<Snapshot>,
        identity: Identity,
        connection: &Connection,
        parts: &Parts,
        interim: Interim,
    ) -> Box<Self> {
        let (user_agent, trace) = if live.recorder.logs_requests() {
            (parts.headers.get(USER_AGENT).cloned(), TraceId::of(&parts.headers))
        } else {
            (None, None)
        };
        Box::new(Self {
            started: core.clock.now(),
            request_id: RequestId::of(&identity, &parts.headers),
            identity,
            audience: Audience::of(&parts.headers),
            method: parts.method.clone(),
            target: parts.uri.clone(),
            version: parts.version,
            scheme: headers::scheme(&parts.headers, &identity, connection.secured().is_some()),
            user_agent,
            trace,
            host: None,
            decided: None,
            route: None,
            // Until a decision says otherwise, what ends a request is a fault.
            ruling: Ruling::Error,
            decider: Decider::Nothing,
            ban: None,
            retry_after: None,
            report: Report::default(),
            status: None,
            sent: None,
            error: None,
            intake: None,
            bytes_out: 0,
            subject: None,
            held: Held::default(),
            pending: None,
            newcomer: None,
            asks_for_tunnel: upgrade::is_tunnel_in_stream(parts),
            is_secure: false,
            interim,
            meaning: None,
            core,
            live,
        })
    }

    /// The request passed the framing checks: its host is known.
    pub fn is_for(&mut self, host: HeaderValue) {
        self.host = Some(host);
    }

    /// It waits, and keeps nothing of the buffer that its head came in.
    pub fn copy_head(&mut self, parts: &mut Parts) {
        headers::copy(parts);
        self.target = parts.uri.clone();
        self.host = parts.headers.get(HOST).cloned();
        self.user_agent = self.user_agent.take().map(|value| headers::copied(&value));
        self.audience = Audience::of(&parts.headers);
    }

    /// The decision let it pass.
    pub fn passes(&mut self, route: Option<RouteId>, slots: SmallVec<[KeyHash; 2]>, report: Report) {
        self.route = route;
        self.ruling = Ruling::Allowed;
        self.report = report;
        self.hold(slots);
    }

    /// It is held by this limit before it is forwarded.
    pub fn is_delayed_by(&mut self, limit: LimitId) {
        self.ruling = Ruling::Delayed;
        self.decider = Decider::Limit(limit);
    }

    /// It cannot be held, and is denied by the limit that would have held it.
    pub fn is_not_held(&mut self) {
        self.ruling = Ruling::Denied;
    }

    /// What shadows have charged for a request that is denied, for it is given back with its story.
    pub fn takes_over(&mut self, denial: &mut Denial<'_>) {
        self.hold(mem::take(&mut denial.slots));
        self.awaits(denial.pending.take());
    }

    /// What the request holds until its story ends.
    pub fn hold(&mut self, slots: SmallVec<[KeyHash; 2]>) {
        self.held.hold(&self.core.store, slots);
    }

    /// Something waits for the outcome, where its route has one.
    pub fn awaits(&mut self, pending: Option<Box<Pending>>) {
        self.pending = pending;
    }

    /// What the answer is to be held against; `None`: nobody asks what it means.
    pub fn outcome_rule(&self) -> Option<&Arc<OutcomeRule>> {
        let route = self.pending.as_ref()?.route;
        self.live.policy.routes.get(route).outcome.as_ref()
    }

    /// The outcome is there: the store is told, once. `is_through`: so is the answer, and nothing is in flight any more.
    pub fn settle(&mut self, meaning: Meaning, is_through: bool) -> Settling {
        let Some(mut pending) = self.pending.take() else { return Settling::default() };
        self.meaning = Some(meaning);
        self.newcomer = pending.newcomer.take().filter(|_| meaning == Meaning::Known(Outcome::Success)).map(Box::new);
        let outcome = match meaning {
            Meaning::Known(outcome) => Some(outcome),
            Meaning::Unknown => None,
        };
        let held = is_through.then_some(&mut self.held);
        settle(&self.core.store, &self.live, pending, outcome, held)
    }

    /// Whether a success makes the client known by what its answer says.
    pub fn may_be_welcome(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.newcomer.is_some())
    }

    /// The cookie by which the client is known from now on, where that is so. To be asked once.
    pub fn welcome(&mut self) -> Option<HeaderValue> {
        let newcomer = self.newcomer.take()?;
        device::welcome(&self.live.policy, self.core.store.ring(), self.core.clock.now(), &newcomer, self.is_secure)
    }

    /// By this server, after those that it was tried at before.
    pub fn is_answered_by(&mut self, server: Option<Arc<str>>, passed: Passed) {
        if let Some(sent) = &mut self.sent {
            (sent.server, sent.passed) = (server, passed);
        }
    }

    /// The application gave no answer that could be used; `cause` is a metric label.
    pub fn has_failed(&mut self, cause: &'static str) {
        if let Some(sent) = &mut self.sent {
            sent.failure = Some(cause);
        }
    }

    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The decision began `since`, and is now there.
    pub fn was_decided(&mut self, since: Timestamp) {
        self.decided = Some(self.core.clock.now().since(since));
    }

    /// The moment the request came.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// The moment the request came, or now when its body had to be awaited.
    pub fn deciding_since(&self, has_waited: bool) -> Timestamp {
        if has_waited { self.core.clock.now() } else { self.started }
    }
}

/// Tells of a head that was no request: who sent it is known, and what of it could be read.
pub(super) fn tell_of_no_request(core: &Core, connection: &Connection, refused: &Refused) {
    let live = core.live.load();
    let method = refused.method.clone().or_else(|| Method::from_bytes(b"-").ok()).unwrap_or_default();
    live.recorder.record(&Event {
        request_id: RequestId::random().as_str(),
        identity: live.clients.identify(connection.peer.ip(), &HeaderMap::new()),
        method: &method,
        host: refused.host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default(),
        path: refused.target.as_ref().map(Uri::path).unwrap_or_default(),
        query: refused.target.as_ref().and_then(Uri::query),
        version: None,
        scheme: if connection.secured().is_some() { "https" } else { "http" },
        user_agent: None,
        trace: None,
        route: None,
        decision: Ruling::Error,
        limit: None,
        ban: None,
        limits: &[],
        retry_after: None,
        status: Some(refused.status),
        meaning: None,
        forwarded: None,
        error: Some("the head is no HTTP request"),
        duration: Duration::ZERO,
        deciding: None,
        bytes_in: 0,
        bytes_out: 0,
        subject: None,
    });
}

impl Drop for Story {
    fn drop(&mut self) {
        if self.sent.is_some() {
            drop(self.settle(Meaning::Unknown, true));
        } else if let Some(pending) = self.pending.take() {
            // It never was on its way.
            let held = Some(&mut self.held);
            drop(settle(&self.core.store, &self.live, pending, Some(Outcome::Neither), held));
        }
        let limit = match &self.decider {
            Decider::Nothing => None,
            Decider::Limit(id) => self.live.policy.limits.get(usize::from(id.0)).map(|limit| &*limit.name),
            Decider::List(name) => Some(&**name),
        };
        self.live.recorder.record(&Event {
            request_id: self.request_id.as_str(),
            identity: self.identity,
            method: &self.method,
            host: self.host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default(),
            path: self.target.path(),
            query: self.target.query(),
            version: Some(self.version),
            scheme: self.scheme,
            user_agent: self.user_agent.as_ref().map(HeaderValue::as_bytes),
            trace: self.trace,
            route: self.route,
            decision: self.ruling,
            limit,
            ban: self.ban.map(|ban| ban.to_string()).as_deref(),
            limits: &self.report.limits,
            retry_after: self.retry_after,
            status: self.status,
            meaning: self.meaning,
            forwarded: self.sent.as_ref().map(|sent| Forwarded {
                upstream: sent.upstream,
                server: sent.server.as_deref(),
                failure: sent.failure,
                passed: &sent.passed,
            }),
            error: self.error.as_deref(),
            duration: self.core.clock.now().since(self.started),
            deciding: self.decided,
            bytes_in: self.intake.as_ref().map_or(0, Intake::bytes),
            bytes_out: self.bytes_out,
            subject: self.subject.as_deref(),
        });
    }
}
