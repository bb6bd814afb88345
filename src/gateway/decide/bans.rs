//! Bans: denies banned keys, and bans keys that reach a limit with a ban.

use std::net::IpAddr;
use std::time::Duration;

use smallvec::SmallVec;

use super::suspected_bans::REASON;
use super::suspected_bans::SuspectedBan;
use crate::decision::Denial;
use crate::decision::DenialCause;
use crate::decision::NewBan;
use crate::decision::Penalty;
use crate::decision::Plan;
use crate::decision::Policy;
use crate::decision::ShownPlan;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::limit::Action;
use crate::limit::ActionSeverity;
use crate::limit::Detail;
use crate::limit::Ladder;
use crate::limit::LimitId;
use crate::pool::Pooled;
use crate::store::AnyStore;
use crate::store::Store;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;

/// Denies the keys that are banned. Asks the store only whether the client is known, and only when a ban depends on it.
pub async fn apply<'p, 'h>(mut plan: Plan<'p, 'h>, store: &AnyStore) -> Plan<'p, 'h> {
    let bans = store.bans();
    let left = |key| bans.left(key);
    let is_known = match plan.known_client_check(left) {
        // In doubt the client is not known.
        Some(batch) => store.look(&batch).await.is_ok_and(|verdicts| verdicts.iter().all(|verdict| verdict.is_exempt)),
        None => false,
    };
    plan.apply_bans(is_known, left);
    plan
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
            let begun = store.ban_by_limit(ban.subject, ban.ladder, REASON).await;
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

/// `Retry-After` of a request that was denied because of requests in progress.
const RETRY_SOON: Duration = Duration::from_secs(1);
