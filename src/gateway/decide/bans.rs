//! Bans: denies banned keys, and bans keys that reach a limit with a ban.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use smallvec::{SmallVec, smallvec};
use tokio::time::sleep;

use crate::gateway::snapshot::Snapshot;
use crate::rules::decision::batch::Items;
use crate::rules::decision::{Batch, Charge, Denial, DenialCause, NewBan, Penalty, Plan, Policy, ShownPlan};
use crate::rules::key::{Hashers, KeyHash};
use crate::rules::limit::{Action, ActionSeverity, Count, Detail, Ladder, Limit, LimitId, Rate, Rule, Standing};
use crate::store::bans::{BanId, BanSubject};
use crate::store::{AnyStore, Store};
use crate::words::pool::Pooled;
use crate::words::units::{Span, counted};

/// `Retry-After` of a request that was denied because of requests in progress.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// Denies the keys that are banned. Asks the store only whether the client is known, and only when a ban depends on it.
pub async fn apply(plan: &mut Plan<'_, '_>, store: &AnyStore) {
    let bans = store.bans();
    let left = |key| bans.left(key);
    let is_known = match plan.known_client_check(left) {
        // In doubt the client is not known.
        Some(batch) => store.look(&batch).await.is_ok_and(|verdicts| verdicts.iter().all(|verdict| verdict.is_exempt)),
        None => false,
    };
    plan.apply_bans(is_known, left);
}

/// The ban behind a denial, if there is one. `address` is the ban of the client's address.
pub(in crate::gateway) fn ban_of(denial: &Denial, address: Option<BanId>) -> Option<BanId> {
    match (&denial.cause, denial.penalty) {
        (DenialCause::Banned, _) => address,
        (_, Penalty::Ban) => denial.key.map(BanId::of_key),
        _ => None,
    }
}

/// Begins the bans of a denial, and writes into the denial how long they last. The denial is final then. `investigate` gets
/// the bans that depend on requests in progress.
pub async fn begin(
    mut denial: Pooled<Denial>,
    policy: &Policy,
    plan: &impl ShownPlan,
    store: &AnyStore,
    mut investigate: impl FnMut(SuspectedBan),
) -> Pooled<Denial> {
    for ban in starting_bans(&denial, policy, plan, &store.hashers()) {
        let (limit, key) = (ban.limit, ban.key);
        let is_decisive = denial.limit == Some(limit);
        let left = if store.is_unsettled(key).await {
            // Requests in progress hold part of the limit and may give it back, so this denial proves no attack yet.
            if is_decisive {
                denial.penalty = Penalty::None;
                denial.is_suspect = true;
            }
            denial.report.set_denied(limit);
            for met in denial.met.iter_mut().filter(|met| met.limit == limit) {
                met.applied = Some(ActionSeverity::Deny);
            }
            denial.new_bans.retain(|other| other.key != key);
            investigate(ban.suspected(plan.client()));
            RETRY_SOON
        } else {
            let met = denial.met.iter().find(|met| met.limit == limit);
            let reason = reason(policy.limit(limit), met.map_or(&[][..], |met| &met.standings));
            let begun = store.ban_by_limit(ban.subject, ban.ladder, &reason).await;
            begun.left(store.bans().now())
        };
        if is_decisive {
            denial.wait = denial.wait.max(Some(left));
        }
        let shows = policy.limit(limit).headers != Detail::None;
        if let DenialCause::Limited { retry_after, .. } = &mut denial.cause
            && shows
        {
            *retry_after = (*retry_after).max(Some(left));
        }
    }
    denial
}

/// A ban that begins, and its subject.
struct StartingBan<'l> {
    limit: LimitId,
    key: KeyHash,
    ladder: &'l Ladder,
    subject: BanSubject,
}

impl StartingBan<'_> {
    fn suspected(self, client: Option<IpAddr>) -> SuspectedBan {
        SuspectedBan { limit: self.limit, key: self.key, subject: self.subject, client }
    }
}

fn starting_bans<'l>(
    denial: &Denial,
    policy: &'l Policy,
    plan: &impl ShownPlan,
    hashers: &Hashers,
) -> SmallVec<[StartingBan<'l>; 1]> {
    let bans = denial.new_bans.iter().filter_map(|&NewBan { limit: id, key }| {
        let limit = policy.limit(id);
        let Action::Ban(ladder) = &limit.then.action else { return None };
        let named = plan.display_key(hashers, id, key).unwrap_or_default();
        let subject = BanSubject::Key { key, limit: limit.name.clone(), named, client: plan.client() };
        Some(StartingBan { limit: id, key, ladder, subject })
    });
    bans.collect()
}

// Why a limit bans.

/// Which rate of the limit was exceeded: `more than 5 failures in 10m`. `standings`: where the banned key stands. Where they do not
/// tell, and the limit has several rates, all are named.
pub fn reason(limit: &Limit, standings: &[Standing]) -> String {
    let what = match (&limit.distinct, limit.count) {
        (Some(_), _) => "different value",
        (None, Count::Requests) => "request",
        (None, Count::Attempts) => "attempt",
        (None, Count::Failures) => "failure",
        (None, Count::Successes) => "successful answer",
    };
    let of_part = limit.distinct.as_ref().map(|part| format!(" of {}", part.selector)).unwrap_or_default();
    match &limit.rule {
        Rule::Concurrent(most) => format!("more than {} at once", counted(most.get(), what)),
        Rule::Rates { rates, .. } | Rule::Distinct(rates) => {
            let is_full = |position| standings.get(position).is_some_and(|standing: &Standing| standing.remaining == 0);
            let full = rates.as_slice().iter().enumerate().find(|(position, _)| is_full(*position));
            let words = |rate: &Rate| format!("{}{of_part} in {}", counted(rate.count.get(), what), Span(rate.per));
            let exceeded = match full {
                Some((_, rate)) => words(rate),
                None => rates.as_slice().iter().map(words).collect::<Vec<_>>().join(" or "),
            };
            format!("more than {exceeded}")
        }
    }
}

// Suspected bans: a limit that counts by outcome denied requests while others were in progress. When the others are
// settled, it is known whether the limit was really reached.

/// How long to wait for requests in progress: a client must not prevent its ban with one slow request.
pub const PATIENCE: Duration = Duration::from_secs(5);

pub const SHORTEST: Duration = Duration::from_millis(5);

pub const LONGEST: Duration = Duration::from_millis(500);

/// A ban that begins if the limit was really reached.
#[derive(Clone, Debug)]
pub struct SuspectedBan {
    pub limit: LimitId,
    pub key: KeyHash,
    pub subject: BanSubject,
    /// The client of the denied request, if it has one.
    pub client: Option<IpAddr>,
}

/// Starts a task that begins the ban once the requests in progress are settled and the limit is still reached. Only one
/// task investigates a key at a time.
pub(super) fn investigate(suspected: SuspectedBan, live: &Arc<Snapshot>, store: &Arc<AnyStore>) {
    let ban = suspected.subject.id();
    if !store.bans().claim_check(ban) {
        return;
    }
    let (live, store) = (Arc::clone(live), Arc::clone(store));
    tokio::spawn(async move {
        let SuspectedBan { limit: id, key, subject, client } = suspected;
        let limit = live.policy.limit(id);
        let is_full = is_full_when_settled(limit, key, &store).await;
        if let (true, Action::Ban(ladder)) = (is_full, &limit.then.action) {
            let shown = match &subject {
                BanSubject::Key { named, .. } => named.masked.clone(),
                BanSubject::Address(_) => Vec::new(),
            };
            let begun = store.ban_by_limit(subject, ladder, &reason(limit, &[])).await;
            let left = begun.left(store.bans().now());
            live.recorder.notify_of_ban(id, key, shown, client, left);
        }
        store.bans().release_check(ban);
    });
}

/// Whether the limit is full once every request in progress is settled. A slot that is not settled in time stays
/// charged.
async fn is_full_when_settled(limit: &Limit, key: KeyHash, store: &AnyStore) -> bool {
    let (mut pause, mut waited) = (SHORTEST, Duration::ZERO);
    while store.is_unsettled(key).await && waited < PATIENCE {
        sleep(pause).await;
        waited += pause;
        pause = (pause * 2).min(LONGEST);
    }
    is_full(limit, key, store).await
}

/// Whether the limit has no room left for a key.
pub async fn is_full(limit: &Limit, key: KeyHash, store: &AnyStore) -> bool {
    let charge = Charge {
        count: limit.count,
        on_failure: limit.on_failure,
        // A new value would be denied when nothing remains.
        items: Items::new(),
        ..Charge::new(0, key, &limit.rule)
    };
    let verdicts = store.look(&Batch { charges: smallvec![charge], ..Batch::default() }).await;
    verdicts.is_ok_and(|verdicts| {
        verdicts
            .iter()
            .any(|verdict| !verdict.passes() || verdict.standings.iter().any(|standing| standing.remaining == 0))
    })
}
