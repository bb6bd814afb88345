//! Decides what a proxy asks about descriptors, and records it as a request of that proxy.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Version};
use smallvec::SmallVec;

use crate::gateway::decide::request::{FinalAction, FinalDecision, Timing};
use crate::gateway::reservation::Reservation;
use crate::gateway::snapshot::{Snapshot, WorkerState};
use crate::gateway::stages::{Decided, Ended, RecordedHead, RequestId};
use crate::listen::Connection;
use crate::rules::client::{ClientIp, Identity};
use crate::rules::decision::descriptors::{DescriptorCall, DescriptorPlan, DescriptorStatus, InvalidCall};
use crate::rules::decision::{Decision, NewBan, Verdicts};
use crate::rules::key::KeyHash;
use crate::store::{Store, StoreError};
use crate::wire::head::{Fields, KnownName};
use crate::words::clock::Timestamp;
use crate::words::pool::Pooled;

/// The answer to a call about descriptors.
#[derive(Debug)]
pub struct DescriptorAnswer {
    /// Whether the call is denied as a whole.
    pub is_over: bool,
    /// Where each descriptor stands, in the order of the call.
    pub statuses: Vec<DescriptorStatus>,
    /// The fields that the proxy adds to the response: the request id of the call, `RateLimit` fields, `Retry-After`.
    pub fields: Fields,
}

/// A call that was decided, before it is recorded.
struct DecidedCall {
    answer: DescriptorAnswer,
    decided: Pooled<Decided>,
    error: Option<StoreError>,
}

/// Decides the descriptors of a call together, and records the call with the proxy at the other end of `connection` as its
/// client.
pub async fn decide(
    worker: &WorkerState,
    connection: &Connection,
    call: &DescriptorCall,
) -> Result<DescriptorAnswer, InvalidCall> {
    let entry = CallEntry {
        live: worker.live.load_full(),
        connection,
        call,
        request_id: RequestId::random(),
        started: worker.clock.now(),
    };
    let met = match call.meet(&entry.live.policy, &worker.store.hasher()) {
        Ok(met) => met,
        Err(invalid) => {
            let error = invalid.to_string();
            entry.record(worker, Pooled::new(Decided::undecided(None)), StatusCode::BAD_REQUEST, Some(error));
            return Err(invalid);
        }
    };
    if let Some(route) = met.route() {
        entry.live.recorder.mark_answers_unseen(Some(route));
    }
    let DecidedCall { mut answer, decided, error } = decide_plan(worker, &entry.live, met.plan()).await;
    answer.fields.append(KnownName::X_REQUEST_ID, entry.request_id.as_bytes());
    let status = match error {
        Some(_) => StatusCode::SERVICE_UNAVAILABLE,
        None if answer.is_over => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::OK,
    };
    entry.record(worker, decided, status, error.map(|error| error.to_string()));
    Ok(answer)
}

async fn decide_plan(worker: &WorkerState, live: &Arc<Snapshot>, mut plan: DescriptorPlan<'_>) -> DecidedCall {
    let (store, since) = (&worker.store, worker.clock.now());
    if store.bans().has_keys() {
        plan.apply_bans(|key| store.bans().left(key));
    }
    let mut verdicts = Verdicts::new();
    if !store.decide_here(plan.batch(), &mut verdicts) {
        match Box::pin(store.decide(plan.batch())).await {
            Ok(decided) => verdicts = decided.into(),
            Err(error) => return undecided(&plan, error),
        }
    }
    let mut statuses = plan.statuses(&verdicts);
    let now = worker.clock.now();
    let timing = Timing { decided: now, age: now.since(since), took: now.since(since) };
    let reservation = Reservation::default();
    let FinalDecision { decided, action, .. } = match plan.conclude(&verdicts) {
        Decision::Pass(pass) => FinalDecision::pass(pass, reservation, live, &plan, store, timing),
        Decision::Deny(denial) => {
            let banned: SmallVec<[KeyHash; 1]> = denial.new_bans.iter().map(|&NewBan { key, .. }| key).collect();
            let denied = FinalDecision::deny(denial, reservation, live, &plan, store, None, timing).await;
            for status in &mut statuses {
                // The ban lasts longer than the limit would have denied.
                let key = status.key.filter(|key| banned.contains(key));
                status.reset =
                    status.reset.map(|reset| reset.max(key.and_then(|key| store.bans().left(key)).unwrap_or_default()));
            }
            denied
        }
    };
    let mut fields = Fields::default();
    live.ratelimit_headers.write(&mut fields, &decided.report);
    if let Some(seconds) = decided.retry_after {
        fields.append(KnownName::RETRY_AFTER, itoa::Buffer::new().format(seconds).as_bytes());
    }
    let answer = DescriptorAnswer { is_over: matches!(action, FinalAction::Deny(_)), statuses, fields };
    DecidedCall { answer, decided, error: None }
}

/// The store is down, and a limit denies during the outage. By default a proxy lets a request pass after an error, so
/// the answer is a denial.
fn undecided(plan: &DescriptorPlan<'_>, error: StoreError) -> DecidedCall {
    let mut fields = Fields::default();
    fields.append(KnownName::RETRY_AFTER, itoa::Buffer::new().format(OUTAGE_WAIT.as_secs()).as_bytes());
    let answer = DescriptorAnswer { is_over: true, statuses: plan.undecided(OUTAGE_WAIT), fields };
    DecidedCall { answer, decided: Pooled::new(Decided::undecided(plan.route())), error: Some(error) }
}

/// A short outage of Redis has ended by then.
const OUTAGE_WAIT: Duration = Duration::from_secs(1);

/// The facts of a call that are recorded with any result.
struct CallEntry<'c> {
    live: Arc<Snapshot>,
    connection: &'c Connection,
    call: &'c DescriptorCall,
    request_id: RequestId,
    started: Timestamp,
}

impl CallEntry<'_> {
    /// The domain stands in the place of the host. The proxy is the client, because a call names no other.
    fn record(&self, worker: &WorkerState, mut decided: Pooled<Decided>, status: StatusCode, error: Option<String>) {
        let story = decided.story.take();
        let peer = ClientIp::new(self.connection.peer.ip());
        let head = RecordedHead {
            request_id: self.request_id.as_str(),
            identity: Identity { peer, peer_is_trusted: false, client: peer },
            method: &Method::POST,
            host: &self.call.domain,
            path: "",
            query: None,
            version: Some(Version::HTTP_2),
            scheme: if self.connection.tls_info().is_some() { "https" } else { "http" },
            user_agent: None,
            trace: None,
        };
        let ended = Ended { status: Some(status), error: error.map(Into::into), ..Ended::default() };
        let duration = worker.clock.now().since(self.started);
        let request = head.record(&self.live.policy, &decided, None, &ended, duration, 0);
        self.live.recorder.record(&request);
        if let Some(story) = story {
            self.live.recorder.keep_request(story, &request);
        }
    }
}
