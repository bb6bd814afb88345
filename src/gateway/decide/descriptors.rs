//! Decides what a proxy asks about descriptors, and records it as a request of that proxy.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::StatusCode;
use http::Version;
use smallvec::SmallVec;

use super::final_decision::FinalAction;
use super::final_decision::FinalDecision;
use super::record::DecisionRecord;
use super::timing::Timing;
use crate::client::ClientIp;
use crate::client::Identity;
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::decision::NewBan;
use crate::decision::Verdicts;
use crate::decision::descriptors::DescriptorCall;
use crate::decision::descriptors::DescriptorPlan;
use crate::decision::descriptors::DescriptorStatus;
use crate::decision::descriptors::InvalidCall;
use crate::gateway::admit::request_id::RequestId;
use crate::gateway::reservation::Reservation;
use crate::gateway::snapshot::Snapshot;
use crate::gateway::worker_state::WorkerState;
use crate::head::Fields;
use crate::head::KnownName;
use crate::key::KeyHash;
use crate::listen::Connection;
use crate::record::RequestRecord;
use crate::store::Store;
use crate::store::StoreError;

/// The answer to a call about descriptors.
#[derive(Debug)]
pub struct DescriptorAnswer {
    /// Whether the call is denied as a whole.
    pub is_over: bool,
    /// Where each descriptor stands, in the order of the call.
    pub statuses: Vec<DescriptorStatus>,
    /// What the proxy adds to the response of the request: the request id of the call, `RateLimit` fields, `Retry-After`.
    pub fields: Fields,
}

/// A call that was decided, before it is recorded.
struct Decided {
    answer: DescriptorAnswer,
    record: DecisionRecord,
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
            entry.record(worker, DecisionRecord::undecided(None), StatusCode::BAD_REQUEST, Some(&error));
            return Err(invalid);
        }
    };
    if let Some(route) = met.route() {
        entry.live.recorder.note_unseen(Some(route));
    }
    let Decided { mut answer, record, error } = decide_plan(worker, &entry.live, met.plan()).await;
    answer.fields.append(KnownName::X_REQUEST_ID, entry.request_id.as_bytes());
    let status = match error {
        Some(_) => StatusCode::SERVICE_UNAVAILABLE,
        None if answer.is_over => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::OK,
    };
    entry.record(worker, record, status, error.map(|error| error.to_string()).as_deref());
    Ok(answer)
}

async fn decide_plan(worker: &WorkerState, live: &Arc<Snapshot>, mut plan: DescriptorPlan<'_>) -> Decided {
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
    let FinalDecision { record, action, .. } = match plan.conclude(&verdicts) {
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
    live.ratelimit_headers.write(&mut fields, &record.report);
    if let Some(seconds) = record.retry_after {
        fields.append(KnownName::RETRY_AFTER, itoa::Buffer::new().format(seconds).as_bytes());
    }
    let answer = DescriptorAnswer { is_over: matches!(action, FinalAction::Deny(_)), statuses, fields };
    Decided { answer, record, error: None }
}

/// The store is down, and a limit denies during the outage. A proxy takes an error for a pass unless it is told otherwise, so
/// the answer is a denial.
fn undecided(plan: &DescriptorPlan<'_>, error: StoreError) -> Decided {
    let mut fields = Fields::default();
    fields.append(KnownName::RETRY_AFTER, itoa::Buffer::new().format(OUTAGE_WAIT.as_secs()).as_bytes());
    let answer = DescriptorAnswer { is_over: true, statuses: plan.undecided(OUTAGE_WAIT), fields };
    Decided { answer, record: DecisionRecord::undecided(plan.route()), error: Some(error) }
}

/// A short outage of Redis has ended by then.
const OUTAGE_WAIT: Duration = Duration::from_secs(1);

/// What is recorded of a call, whatever becomes of it.
struct CallEntry<'c> {
    live: Arc<Snapshot>,
    connection: &'c Connection,
    call: &'c DescriptorCall,
    request_id: RequestId,
    started: Timestamp,
}

impl CallEntry<'_> {
    /// The domain stands in the place of the host. The proxy is the client, because a call names no other.
    fn record(&self, worker: &WorkerState, mut decision: DecisionRecord, status: StatusCode, error: Option<&str>) {
        let story = decision.story.take();
        let peer = ClientIp::new(self.connection.peer.ip());
        let ban = decision.ban.map(|ban| ban.to_string());
        let request = RequestRecord {
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
            route: decision.route,
            decision: decision.label,
            limit: decision.decider.limit(&self.live.policy),
            list: decision.decider.list(),
            ban: ban.as_deref(),
            limits: &decision.report.limits,
            unread: None,
            retry_after: decision.retry_after,
            status: Some(status),
            outcome: None,
            upstream: None,
            error,
            duration: worker.clock.now().since(self.started),
            decision_duration: decision.took,
            bytes_in: 0,
            bytes_out: 0,
            applied_limit: decision.applied_limit.as_deref(),
        };
        self.live.recorder.record(&request);
        if let Some(story) = story {
            self.live.recorder.keep_story(story, &request);
        }
    }
}
