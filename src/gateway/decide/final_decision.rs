//! A decision that is final: its subject is named, its bans have begun, and what was reserved with it is held.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::bans;
use super::record::DecisionRecord;
use super::subject;
use crate::decision::Decision;
use crate::decision::Denial;
use crate::decision::Pass;
use crate::decision::Plan;
use crate::gateway::admit::framing::BadRequest;
use crate::gateway::reservation::AwaitedOutcome;
use crate::gateway::reservation::Reservation;
use crate::gateway::snapshot::Snapshot;
use crate::limit::LimitId;
use crate::route::RouteId;
use crate::route::UpstreamId;
use crate::store::AnyStore;
use crate::store::StoreError;
use crate::store::bans::BanId;

/// What is to be done with a request.
#[derive(Debug)]
pub struct FinalDecision<'l> {
    pub record: DecisionRecord,
    pub reservation: Reservation,
    pub action: FinalAction<'l>,
}

#[derive(Debug)]
pub enum FinalAction<'l> {
    /// `delay`: it is held before it is forwarded, by this limit and for so long.
    Forward {
        upstream: UpstreamId,
        delay: Option<(LimitId, Duration)>,
    },
    Deny(Box<Denial<'l>>),
}

/// Why there is no decision.
#[derive(Clone, Copy, Debug)]
pub enum DecideError {
    /// The body, which a key reads, is none.
    BadRequest(BadRequest),
    /// The store is away, and a limit denies meanwhile.
    StoreDown(Option<RouteId>, StoreError),
}

/// What a store has reserved with a decision, and what its outcome will settle. It is the reservation's from now on.
pub fn reserve(decision: &mut Decision<'_>, store: &Arc<AnyStore>, live: &Arc<Snapshot>) -> Reservation {
    let (slots, pending) = match decision {
        Decision::Pass(pass) => (mem::take(&mut pass.slots), pass.pending.take()),
        // What shadows have charged for a request that is denied.
        Decision::Deny(denial) => (mem::take(&mut denial.slots), denial.pending.take()),
    };
    Reservation::of(store, slots, pending.map(|pending| AwaitedOutcome { live: Arc::clone(live), pending }))
}

impl<'l> FinalDecision<'l> {
    pub fn pass(
        mut pass: Pass,
        reservation: Reservation,
        live: &Snapshot,
        plan: &Plan<'_, '_>,
        store: &AnyStore,
        took: Duration,
    ) -> Self {
        let subject = subject::of_delay(&pass, live, plan, store);
        let record = DecisionRecord::of_pass(&mut pass, subject, took);
        Self { record, reservation, action: FinalAction::Forward { upstream: pass.upstream, delay: pass.delay } }
    }

    /// Begins the bans of a denial. `banned`: the ban of the client's address, where it has one.
    pub async fn deny(
        mut denial: Box<Denial<'l>>,
        reservation: Reservation,
        live: &Arc<Snapshot>,
        plan: &Plan<'_, '_>,
        store: &Arc<AnyStore>,
        (banned, took): (Option<BanId>, Duration),
    ) -> Self {
        if !denial.new_bans.is_empty() {
            denial = Box::pin(bans::begin(denial, live, plan, store)).await;
        }
        let subject = subject::of_denial(&denial, live, plan, store);
        let ban = bans::ban_of(&denial, banned);
        let record = DecisionRecord::of_denial(&mut denial, subject, ban, took);
        Self { record, reservation, action: FinalAction::Deny(denial) }
    }
}
