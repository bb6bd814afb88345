//! One request in progress, from its head to the end of its answer.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::StatusCode;

use super::admit::progress::BodyProgress;
use super::admit::request_id::RequestId;
use super::call_fault::CallFault;
use super::call_fault::Fault;
use super::decide::record::DecisionRecord;
use super::facts::Facts;
use super::forward::device;
use super::reservation::Answered;
use super::reservation::Reservation;
use super::reservation::SettlementTask;
use super::snapshot::Snapshot;
use super::worker_state::WorkerState;
use crate::client::Identity;
use crate::decision::CarriedSessions;
use crate::decision::GainedSessions;
use crate::decision::device::DeviceEnrollment;
use crate::head::Fields;
use crate::head::KnownName;
use crate::head::Name;
use crate::listen::InterimSender;
use crate::listen::RefusedHead;
use crate::outcome::Outcome;
use crate::outcome::OutcomeRule;
use crate::pool::Pooled;
use crate::record::DecisionLabel;
use crate::record::ObservedOutcome;
use crate::record::RequestRecord;
use crate::record::UpstreamRecord;
use crate::record::spans::RequestTrace;
use crate::request::NotUnderstood;
use crate::route::UpstreamId;
use crate::upstream::PreviousAttempts;

/// A request and its reservation. Dropping it, at the end of the answer or when the client disconnects, gives back what
/// is still reserved and records the request.
#[derive(Debug)]
pub struct Exchange {
    pub worker: Arc<WorkerState>,
    pub live: Arc<Snapshot>,
    pub facts: Facts,
    /// Sends informational (1xx) answers to the client.
    pub interim: InterimSender,
    decision: DecisionRecord,
    reservation: Reservation,
    /// Counts the body of the request, if it has one.
    body: Option<BodyProgress>,
    /// `None` when the request was not sent to an application.
    forwarding: Option<Forwarding>,
    /// The outcome, once it was observed.
    meaning: Option<ObservedOutcome>,
    /// The device to enroll with this answer, if it is a success.
    enrollment: Option<Box<DeviceEnrollment>>,
    /// The sessions that the request carries; `None`: none that is known.
    sessions: Option<Box<CarriedSessions>>,
    /// The status that the client got; `None` when it left before.
    status: Option<StatusCode>,
    bytes_out: u64,
    error: Option<Cow<'static, str>>,
    /// `None`: no proxy describes the request, or it does so at once.
    call_fault: Option<CallFault>,
    /// `None`: the request is not traced.
    trace: Option<Box<RequestTrace>>,
}

/// How a request was forwarded.
#[derive(Clone, Debug)]
struct Forwarding {
    upstream: UpstreamId,
    server: Option<Arc<str>>,
    failure: Option<&'static str>,
    /// The `X-Request-ID` of the answer, where it is not ours.
    request_id: Option<Box<str>>,
    previous_attempts: PreviousAttempts,
}

impl Exchange {
    /// On the heap, because it is passed on many times and ends in the body of the answer.
    pub fn begin(
        worker: Arc<WorkerState>,
        live: Arc<Snapshot>,
        mut facts: Facts,
        interim: InterimSender,
    ) -> Pooled<Self> {
        let trace = live.recorder.tracer().and_then(|tracer| tracer.begin(&facts.head.fields));
        if let Some(trace) = &trace {
            facts.trace = Some(trace.id());
        }
        Pooled::new(Self {
            worker,
            live,
            facts,
            interim,
            decision: DecisionRecord::undecided(None),
            reservation: Reservation::default(),
            body: None,
            forwarding: None,
            meaning: None,
            enrollment: None,
            sessions: None,
            status: None,
            bytes_out: 0,
            error: None,
            call_fault: None,
            trace,
        })
    }

    /// Takes the final decision, and its reservation.
    pub fn set_decision(&mut self, decision: DecisionRecord, reservation: Reservation) {
        if let (Some(trace), Some(took)) = (&mut self.trace, decision.took) {
            trace.decided(self.worker.clock.now(), took);
        }
        (self.decision, self.reservation) = (decision, reservation);
    }

    pub fn decision(&self) -> &DecisionRecord {
        &self.decision
    }

    pub fn decision_mut(&mut self) -> &mut DecisionRecord {
        &mut self.decision
    }

    /// Takes the counter of the request's body, or of its tunnel.
    pub fn set_body(&mut self, progress: Option<BodyProgress>) {
        self.body = progress;
    }

    pub fn body(&self) -> Option<&BodyProgress> {
        self.body.as_ref()
    }

    /// The request is being sent to this upstream.
    pub fn set_upstream(&mut self, upstream: UpstreamId) {
        self.reservation.mark_sent();
        let previous_attempts = PreviousAttempts::new();
        self.forwarding =
            Some(Forwarding { upstream, server: None, failure: None, request_id: None, previous_attempts });
    }

    /// A proxy has asked, and sends the request to the application itself.
    pub fn set_passed_on(&mut self) {
        self.reservation.mark_sent();
        if !self.facts.front.sees_end() {
            self.live.recorder.note_unseen(self.decision.route);
        }
    }

    /// Tells the application, in its head, which trace it continues, where the request is traced.
    pub fn continue_trace(&mut self) {
        let Some(trace) = &mut self.trace else { return };
        let fields = &mut self.facts.head.fields;
        if !trace.has_parent() {
            // It belonged to a `traceparent` that is not valid.
            fields.remove(Name::of("tracestate"));
        }
        fields.insert(KnownName::TRACEPARENT, trace.forwarded(self.worker.clock.now()).as_bytes());
    }

    /// How the server was reached that answered, or the last one tried.
    fn server_scheme(&self) -> &'static str {
        let settings = self.forwarding.as_ref().and_then(|it| self.live.upstreams.get(usize::from(it.upstream.0)));
        let mut servers = settings.into_iter().flat_map(|upstream| &upstream.settings().servers);
        let server = servers.find(|server| Some(server.name()) == self.server());
        if server.is_some_and(|server| server.verified_as.is_some()) { "https" } else { "http" }
    }

    /// The server that answered, or the last one that was tried.
    pub fn set_server(&mut self, server: Option<Arc<str>>, previous_attempts: PreviousAttempts) {
        if let Some(forwarding) = &mut self.forwarding {
            (forwarding.server, forwarding.previous_attempts) = (server, previous_attempts);
        }
    }

    /// The application knows the request by another id than the gateway.
    pub fn set_upstream_request_id(&mut self, id: &[u8]) {
        if let Some(forwarding) = &mut self.forwarding {
            let id = &id[..id.len().min(LONGEST_LOGGED_ID)];
            forwarding.request_id = Some(String::from_utf8_lossy(id).into());
        }
    }

    /// The application gave no usable answer; `cause` is a metric label.
    pub fn set_failure(&mut self, cause: &'static str) {
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.failure = Some(cause);
        }
    }

    /// The server that answered, or the last one tried.
    pub fn server(&self) -> Option<&str> {
        self.forwarding.as_ref()?.server.as_deref()
    }

    /// Why the request was refused or failed, as a sentence for the log.
    pub fn set_error(&mut self, error: impl Into<Cow<'static, str>>) {
        self.error = Some(error.into());
    }

    /// The call that describes the request may break off, which ends the request. The request then records the call.
    pub fn set_call_fault(&mut self, fault: CallFault) {
        fault.claim_record();
        self.call_fault = Some(fault);
    }

    /// The status that the client gets.
    pub fn set_status(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// The client left before the answer came.
    pub fn clear_status(&mut self) {
        self.status = None;
    }

    /// Adds bytes of the answer's body that went to the client.
    pub fn add_bytes_out(&mut self, bytes: u64) {
        self.bytes_out += bytes;
    }

    /// The rule that decides the outcome; `None` when nothing depends on it.
    pub fn outcome_rule(&self) -> Option<&Arc<OutcomeRule>> {
        self.reservation.outcome_rule()
    }

    /// Settles the request in the store by what its answer says, once. `is_through`: the answer has ended as well, so the
    /// slots are given back. Where the settlement is to tell the outcome, that goes to
    /// [`set_outcome`](Self::set_outcome).
    pub fn settle(&mut self, answered: Answered, is_through: bool) -> SettlementTask {
        let Some(settled) = self.reservation.settle(answered, is_through) else {
            return SettlementTask::default();
        };
        self.meaning = Some(settled.outcome.map_or(ObservedOutcome::Unknown, ObservedOutcome::Known));
        self.enrollment = settled.enrollment;
        settled.settlement
    }

    /// What the answer means, once the store has said whose it is.
    pub fn set_outcome(&mut self, outcome: Outcome) {
        self.meaning = Some(ObservedOutcome::Known(outcome));
    }

    /// The request carries these sessions, which its answer may renew or end.
    pub fn set_sessions(&mut self, sessions: Option<Box<CarriedSessions>>) {
        self.sessions = sessions;
    }

    /// Renews or ends the sessions that the request carries, by the head of its answer.
    pub fn renew_sessions(&mut self, answer: &Fields) {
        let Some(sessions) = &self.sessions else { return };
        let store = &self.worker.store;
        let changes = sessions.changes(&self.live.policy, answer, &store.hasher());
        if !changes.is_empty() {
            // This process knows at once; the others hear of it from a task.
            drop(store.change_sessions(changes.into_vec()));
        }
    }

    /// Where the body of a success may have tokens.
    pub fn awaited_tokens(&self) -> Option<&Arc<[Box<str>]>> {
        self.reservation.awaited_tokens()
    }

    /// The sessions that the head of the answer gives its client.
    pub fn gained(&self, answer: &Fields) -> GainedSessions {
        self.reservation.gained(answer)
    }

    /// Adds the tokens in the body of the answer.
    pub fn add_tokens(&self, gained: &mut GainedSessions, tokens: &[Box<str>]) {
        self.reservation.add_tokens(gained, tokens);
    }

    /// Whether the request holds concurrency slots until it ends.
    pub fn holds_slots(&self) -> bool {
        self.reservation.holds_slots()
    }

    /// Whether the client gets the head of the answer only when its outcome is known: a success sets a device cookie, or
    /// gives a session that the store has to learn before.
    pub fn holds_head(&self) -> bool {
        self.reservation.may_enroll() || self.reservation.may_sign_in()
    }

    /// Takes the device cookie for the answer, after a success. `None` on a second call.
    pub fn take_device_cookie(&mut self) -> Option<String> {
        let is_success = self.meaning == Some(ObservedOutcome::Known(Outcome::Success));
        let enrollment = self.enrollment.take().filter(|_| is_success)?;
        let now = self.worker.clock.now();
        let ring = self.worker.store.key_ring().load_for_signing(now);
        device::set_cookie(&self.live.policy, &ring, now, &enrollment, self.facts.is_secure)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(meaning) = self.reservation.abandon() {
            self.meaning = Some(meaning);
        }
        let story = self.decision.story.take();
        let Self { facts, decision, .. } = &*self;
        let (path, query) = facts.head.target();
        let ban = decision.ban.map(|ban| ban.to_string());
        let now = self.worker.clock.now();
        let fault = self.call_fault.as_ref().and_then(CallFault::get);
        // What was decided before stays as it is.
        let fault_status =
            fault.and_then(|fault: &Fault| fault.status).filter(|_| decision.label == DecisionLabel::Error);
        let record = RequestRecord {
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
            route: decision.route,
            decision: decision.label,
            limit: decision.decider.limit(&self.live.policy),
            list: decision.decider.list(),
            ban: ban.as_deref(),
            limits: &decision.report.limits,
            unread: decision.report.unread.map(NotUnderstood::as_str),
            retry_after: decision.retry_after,
            status: self.status.or(fault_status),
            outcome: self.meaning,
            upstream: self.forwarding.as_ref().map(|forwarding| UpstreamRecord {
                id: forwarding.upstream,
                server: forwarding.server.as_deref(),
                failure: forwarding.failure,
                request_id: forwarding.request_id.as_deref(),
                previous_attempts: &forwarding.previous_attempts,
            }),
            error: self.error.as_deref().or_else(|| fault.map(|fault| &*fault.words)),
            duration: now.since(facts.started),
            decision_duration: decision.took,
            bytes_in: self.body.as_ref().map_or(0, BodyProgress::bytes),
            bytes_out: self.bytes_out,
            applied_limit: decision.applied_limit.as_deref(),
        };
        self.live.recorder.record(&record);
        if let Some(story) = story {
            self.live.recorder.keep_story(story, &record);
        }
        if let Some(trace) = &self.trace {
            self.live.recorder.end_trace(trace, &record, self.server_scheme(), now);
        }
    }
}

/// Records a malformed head: its client, and the parts that could be read.
pub(super) fn record_malformed_head(
    live: &Snapshot,
    request_id: RequestId,
    identity: Identity,
    scheme: &'static str,
    refused: &RefusedHead,
    reason: &str,
) {
    let method = refused.method.clone().or_else(|| Method::from_bytes(b"-").ok()).unwrap_or_default();
    live.recorder.record(&RequestRecord {
        request_id: request_id.as_str(),
        identity,
        method: &method,
        host: refused.host.as_deref().unwrap_or_default(),
        path: refused.path.as_deref().unwrap_or_default(),
        query: refused.query.as_deref(),
        version: None,
        scheme,
        user_agent: None,
        trace: None,
        route: None,
        decision: DecisionLabel::Error,
        limit: None,
        list: None,
        ban: None,
        limits: &[],
        unread: None,
        retry_after: None,
        status: Some(refused.status),
        outcome: None,
        upstream: None,
        error: Some(reason),
        duration: Duration::ZERO,
        decision_duration: None,
        bytes_in: 0,
        bytes_out: 0,
        applied_limit: None,
    });
}

/// In bytes: of an application's id of a request the log has so much.
const LONGEST_LOGGED_ID: usize = 200;
