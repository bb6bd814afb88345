//! A final decision: its bans have begun, its record is made, and its reservation is taken.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::applied_limit;
use super::bans;
use super::record::DecisionRecord;
use super::story;
use super::suspected_bans;
use super::timing::Timing;
use crate::decision::CarriedSessions;
use crate::decision::Decision;
use crate::decision::Denial;
use crate::decision::Pass;
use crate::decision::ShownPlan;
use crate::gateway::admit::framing::BadRequest;
use crate::gateway::reservation::AwaitedOutcome;
use crate::gateway::reservation::Reservation;
use crate::gateway::snapshot::Snapshot;
use crate::limit::LimitId;
use crate::pool::Pooled;
use crate::route::RouteId;
use crate::route::UpstreamId;
use crate::store::AnyStore;
use crate::store::StoreError;
use crate::store::bans::BanId;

/// A decision, its record and its reservation.
#[derive(Debug)]
pub struct FinalDecision {
    pub record: DecisionRecord,
    pub reservation: Reservation,
    pub action: FinalAction,
    /// The sessions that the request carries; `None`: none that is known.
    pub sessions: Option<Box<CarriedSessions>>,
}

#[derive(Debug)]
pub enum FinalAction {
    /// `delay`: the limit that holds the request before it is forwarded, and for how long.
    Forward {
        upstream: UpstreamId,
        delay: Option<(LimitId, Duration)>,
    },
    Deny(Pooled<Denial>),
}

/// Why a request could not be decided.
#[derive(Clone, Copy, Debug)]
pub enum DecideError {
    /// A key reads the body, and the body is malformed.
    BadRequest(BadRequest),
    /// The store is down, and a limit denies during the outage.
    StoreDown(Option<RouteId>, StoreError),
}

/// Moves what the store has reserved, and what the outcome will settle, out of a decision into a reservation.
pub fn reserve(decision: &mut Decision, store: &Arc<AnyStore>, live: &Arc<Snapshot>) -> Reservation {
    let (slots, pending) = match decision {
        Decision::Pass(pass) => (mem::take(&mut pass.slots), pass.pending.take()),
        // Limits in shadow mode charge denied requests as well.
        Decision::Deny(denial) => (mem::take(&mut denial.slots), denial.pending.take()),
    };
    Reservation::of(store, slots, pending.map(|pending| AwaitedOutcome { live: Arc::clone(live), pending }))
}

impl FinalDecision {
    pub fn pass(
        mut pass: Pass,
        reservation: Reservation,
        live: &Snapshot,
        plan: &impl ShownPlan,
        store: &AnyStore,
        timing: Timing,
    ) -> Self {
        let applied_limit = applied_limit::of_delay(&pass, live, plan, store);
        let kept = story::of_pass(&mut pass, live, plan, store, timing);
        let record = DecisionRecord::of_pass(&mut pass, applied_limit, kept, timing.took);
        Self {
            record,
            reservation,
            action: FinalAction::Forward { upstream: pass.upstream, delay: pass.delay },
            sessions: None,
        }
    }

    /// The same for a request that carries these sessions.
    #[must_use]
    pub fn with_sessions(self, sessions: Option<Box<CarriedSessions>>) -> Self {
        Self { sessions, ..self }
    }

    /// Begins the bans of a denial. `banned`: the ban of the client's address and how long it lasts, if it has one.
    pub async fn deny(
        mut denial: Pooled<Denial>,
        reservation: Reservation,
        live: &Arc<Snapshot>,
        plan: &impl ShownPlan,
        store: &Arc<AnyStore>,
        banned: Option<(BanId, Duration)>,
        timing: Timing,
    ) -> Self {
        if !denial.new_bans.is_empty() {
            let investigate = |suspected| suspected_bans::investigate(suspected, live, store);
            denial = Box::pin(bans::begin(denial, &live.policy, plan, store, investigate)).await;
        }
        let applied_limit = applied_limit::of_denial(&denial, live, plan, store);
        let kept = story::of_denial(&mut denial, live, plan, store, banned.map(|(_, left)| left), timing);
        let ban = bans::ban_of(&denial, banned.map(|(ban, _)| ban));
        let record = DecisionRecord::of_denial(&mut denial, applied_limit, Some(kept), ban, timing.took);
        Self { record, reservation, action: FinalAction::Deny(denial), sessions: None }
    }
}
