//! One request in progress, from its head to the end of its answer.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::{Method, StatusCode};

use super::reservation::Reservation;
use super::snapshot::{Snapshot, WorkerState};
use super::stages::{Decided, Ended, Facts, Forwarded, Front, RecordedHead, RequestId};
use crate::gateway::body::expect::BodyProgress;
use crate::gateway::fault::{CallFault, Fault};
use crate::gateway::headers;
use crate::listen::{InterimSender, RefusedHead};
use crate::record::DecisionLabel;
use crate::record::kept_requests::KeptCause;
use crate::record::spans::RequestTrace;
use crate::rules::client::Identity;
use crate::rules::decision::{CarriedSessions, Denial};
use crate::rules::route::UpstreamId;
use crate::upstream::PreviousAttempts;
use crate::wire::head::Fields;
use crate::words::clock;
use crate::words::pool::{Pooled, pool_of};

/// A request, and its stages as far as it has come. Dropping it, at the end of the answer or when the client
/// disconnects, releases its reservation and records it.
///
/// Each stage is written in one place: [`Decided`] by `enforce`, [`Forwarded`] by `forward`, and [`Ended`] by what
/// answers: `respond` or the body of the application's answer.
#[derive(Debug)]
pub struct Exchange {
    pub worker: Arc<WorkerState>,
    pub live: Arc<Snapshot>,
    pub facts: Facts,
    /// Sends informational (1xx) answers to the client.
    pub interim: InterimSender,
    /// `None`: the request is not traced.
    pub trace: Option<Box<RequestTrace>>,
    /// What the store holds for the request, until an answer settles it.
    pub reservation: Reservation,
    /// `None`: nothing was decided.
    decided: Option<Pooled<Decided>>,
    /// `None` when the request was not sent to an application.
    forwarded: Option<Forwarded>,
    ended: Ended,
    /// The sessions that the request carries; `None`: none that is known.
    sessions: Option<Box<CarriedSessions>>,
    /// Counts the body of the request, if it has one.
    received: Option<BodyProgress>,
    /// Counts what a tunnel sends to the client.
    sent: Option<BodyProgress>,
}

pool_of!(Exchange);

impl Exchange {
    /// On the heap, because it is passed on many times and ends in the body of the answer. `facts` reads the head there.
    /// `received` counts the body of the request, if it has one.
    #[inline]
    pub fn begin(
        worker: Arc<WorkerState>,
        live: Arc<Snapshot>,
        facts: impl FnOnce(&Snapshot) -> Facts,
        received: Option<BodyProgress>,
        interim: InterimSender,
    ) -> Pooled<Self> {
        let mut exchange = Pooled::made_by(|| Self {
            facts: facts(&live),
            worker,
            live,
            interim,
            trace: None,
            reservation: Reservation::default(),
            decided: None,
            forwarded: None,
            ended: Ended::default(),
            sessions: None,
            received,
            sent: None,
        });
        exchange.begin_trace();
        exchange
    }

    fn begin_trace(&mut self) {
        let tracer = self.live.recorder.tracer();
        self.trace = tracer.and_then(|tracer| tracer.begin(&self.facts.head.fields));
        if let Some(trace) = &self.trace {
            self.facts.trace = Some(trace.id());
        }
    }

    /// The rules have decided: the final decision, what the store has reserved, and the sessions that the request carries.
    pub fn decide(
        &mut self,
        decided: Pooled<Decided>,
        reservation: Reservation,
        sessions: Option<Box<CarriedSessions>>,
    ) {
        if let (Some(trace), Some(took)) = (&mut self.trace, decided.took) {
            trace.decided(self.worker.clock.now(), took);
        }
        (self.decided, self.reservation, self.sessions) = (Some(decided), reservation, sessions);
    }

    /// The request cannot be held, so the limit that would have held it denies it.
    pub fn deny_instead_of_holding(&mut self, denial: &Denial, cause: KeptCause) {
        if let Some(decided) = &mut self.decided {
            decided.set_denied_instead_of_held(denial, cause);
        }
    }

    /// The request goes to the application: to this upstream, or by the proxy that has asked.
    pub fn pass(&mut self, upstream: UpstreamId) {
        self.reservation.mark_sent();
        let front = self.facts.front;
        if front == Front::Gateway {
            let is_there = self.live.upstreams.get(usize::from(upstream.0)).is_some();
            self.forwarded = is_there.then(|| Forwarded::to(upstream));
        } else if !front.sees_end() {
            self.live.recorder.mark_answers_unseen(self.decided().route);
        }
    }

    /// A server has answered, or was the last one tried. `request_id`: the id of the request in the answer, which is kept
    /// where the application has another one than the gateway.
    pub fn reach(&mut self, server: Option<Arc<str>>, previous_attempts: PreviousAttempts, request_id: Option<&[u8]>) {
        if let Some(forwarded) = &mut self.forwarded {
            (forwarded.server, forwarded.previous_attempts) = (server, previous_attempts);
            let own = request_id.filter(|own| *own != self.facts.request_id.as_bytes());
            let start = own.map(|id| &id[..id.len().min(LONGEST_LOGGED_ID)]);
            forwarded.request_id = start.map(|id| String::from_utf8_lossy(id).into());
        }
    }

    /// The connection becomes a tunnel: these count the bytes both ways.
    pub fn tunnel(&mut self, received: BodyProgress, sent: BodyProgress) {
        (self.received, self.sent) = (Some(received), Some(sent));
    }

    /// The gateway refuses the request, or the application did not answer. `error` is a sentence for the log.
    pub fn refuse(&mut self, error: impl Into<Cow<'static, str>>) {
        if let Some(decided) = &mut self.decided {
            decided.label = DecisionLabel::Error;
        }
        self.ended.error = Some(error.into());
    }

    /// The application gave no usable answer; `failure` is a metric label.
    pub fn fail(&mut self, failure: &'static str) {
        self.ended.failure = Some(failure);
    }

    /// The application's answer ended before its end.
    pub fn cut_short(&mut self) {
        self.fail("cut_short");
        self.ended.error = Some(Cow::Borrowed("the answer was cut short"));
    }

    /// The status that the client gets.
    pub fn answer(&mut self, status: StatusCode) {
        self.ended.status = Some(status);
    }

    /// The client left before the answer came.
    pub fn lose_client(&mut self) {
        self.ended.status = None;
    }

    /// Adds bytes of the answer's body that went to the client.
    pub fn add_bytes_out(&mut self, bytes: u64) {
        self.ended.bytes_out += bytes;
    }

    pub fn decided(&self) -> &Decided {
        self.decided.as_deref().unwrap_or(&UNDECIDED)
    }

    /// The counter of the request's body, or of its tunnel.
    pub fn received(&self) -> Option<&BodyProgress> {
        self.received.as_ref()
    }

    /// The server that answered, or the last one tried.
    pub fn server(&self) -> Option<&str> {
        self.forwarded.as_ref()?.server.as_deref()
    }

    /// Renews or ends in the store the sessions that the request carries, by the head of its answer.
    pub fn renew_sessions(&self, answer: &Fields) {
        let Some(sessions) = &self.sessions else { return };
        let store = &self.worker.store;
        let changes = sessions.changes(&self.live.policy, answer, clock::wall(), &store.hasher());
        if !changes.is_empty() {
            // This process knows at once; the others hear of it from a task.
            drop(store.change_sessions(changes.into_vec()));
        }
    }

    /// Takes the device cookie for the answer, after a success. `None` on a second call.
    pub fn take_device_cookie(&mut self) -> Option<String> {
        let enrollment = self.reservation.take_enrollment()?;
        let now = self.worker.clock.now();
        let ring = self.worker.store.key_ring().load_for_signing(now);
        headers::set_cookie(&self.live.policy, &ring, now, &enrollment, self.facts.is_secure)
    }

    /// How the server was reached that answered, or the last one tried.
    fn server_scheme(&self) -> &'static str {
        let settings = self.forwarded.as_ref().and_then(|it| self.live.upstreams.get(usize::from(it.upstream.0)));
        let mut servers = settings.into_iter().flat_map(|upstream| &upstream.settings().servers);
        let server = servers.find(|server| Some(server.name()) == self.server());
        if server.is_some_and(|server| server.verified_as.is_some()) { "https" } else { "http" }
    }

    /// What is known only at the end: what tunnels have sent, the outcome, and a call that has broken off.
    fn end(&mut self) {
        let label = self.decided().label;
        let Self { facts, ended, reservation, sent, .. } = self;
        ended.outcome = reservation.end();
        if let Some(sent) = sent {
            ended.bytes_out += sent.bytes();
        }
        if let Some(Fault { words, status }) = facts.call_fault.as_ref().and_then(CallFault::get) {
            // An earlier decision stays as it is.
            ended.status = ended.status.or(status.filter(|_| label == DecisionLabel::Error));
            ended.error.get_or_insert_with(|| words.clone().into());
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.end();
        let story = self.decided.as_mut().and_then(|decided| decided.story.take());
        let now = self.worker.clock.now();
        let (duration, bytes_in) =
            (now.since(self.facts.started), self.received.as_ref().map_or(0, BodyProgress::bytes));
        let head = RecordedHead::of(&self.facts);
        let record =
            head.record(&self.live.policy, self.decided(), self.forwarded.as_ref(), &self.ended, duration, bytes_in);
        self.live.recorder.record(&record);
        if let Some(story) = story {
            self.live.recorder.keep_request(story, &record);
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
    let head = RecordedHead {
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
    };
    let ended = Ended { status: Some(refused.status), error: Some(reason.to_owned().into()), ..Ended::default() };
    live.recorder.record(&head.record(&live.policy, &UNDECIDED, None, &ended, Duration::ZERO, 0));
}

/// Shown for a request that was refused before it was decided.
static UNDECIDED: LazyLock<Decided> = LazyLock::new(|| Decided::undecided(None));

/// In bytes: of an application's id of a request the log has so much.
const LONGEST_LOGGED_ID: usize = 200;

// Whether a request goes on without its client.

/// Whether a request goes on when its client leaves. Set by the step that the request is in, and read by who drops its future.
#[derive(Debug, Default)]
pub struct Persistence(AtomicBool);

impl Persistence {
    pub fn set(&self, persists: bool) {
        self.0.store(persists, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
