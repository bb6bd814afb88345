//! Bans on a request's way: what is banned is denied, and what reaches a limit that bans is banned.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::suspected_bans;
use super::suspected_bans::REASON;
use super::suspected_bans::SuspectedBan;
use crate::decision::Denial;
use crate::decision::DenialCause;
use crate::decision::NewBan;
use crate::decision::Penalty;
use crate::decision::Plan;
use crate::gateway::snapshot::Snapshot;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::limit::Action;
use crate::limit::Detail;
use crate::limit::Ladder;
use crate::limit::LimitId;
use crate::store::AnyStore;
use crate::store::Store;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;

/// Denies the keys that are banned. A store is asked only whether the client is known, where that matters to a ban.
pub(in crate::gateway) async fn apply<'p, 'h>(mut plan: Plan<'p, 'h>, store: &AnyStore) -> Plan<'p, 'h> {
    let bans = store.bans();
    let left = |key| bans.left(key);
    let is_known = match plan.known_client_check(left) {
        // In doubt it is not.
        Some(batch) => store.look(&batch).await.is_ok_and(|verdicts| verdicts.iter().all(|verdict| verdict.is_exempt)),
        None => false,
    };
    plan.apply_bans(is_known, left);
    plan
}

/// The ban that a denial is about, where it is about one. `address` is that of the client's address.
pub(in crate::gateway) fn ban_of(denial: &Denial<'_>, address: Option<BanId>) -> Option<BanId> {
    match (&denial.cause, denial.penalty) {
        (DenialCause::Banned, _) => address,
        (_, Penalty::Ban) => denial.key.map(BanId::of_key),
        _ => None,
    }
}

/// Begins the bans of a denial, which is final then: it says for how long they last.
pub(in crate::gateway) async fn begin<'p>(
    mut denial: Box<Denial<'p>>,
    live: &Arc<Snapshot>,
    plan: &Plan<'_, '_>,
    store: &Arc<AnyStore>,
) -> Box<Denial<'p>> {
    for begun in starting_bans(&denial, live, plan, &store.hashers()) {
        let (limit, key) = (begun.limit, begun.key);
        let is_decisive = denial.limit == Some(limit);
        let left = if store.is_unsettled(key).await {
            // What is refused beside slots in flight is no guess yet: they may all come back.
            if is_decisive {
                denial.penalty = Penalty::None;
                denial.is_suspect = true;
            }
            denial.new_bans.retain(|trip| trip.key != key);
            suspected_bans::investigate(begun.suspected(plan.client()), live, store);
            RETRY_SOON
        } else {
            let ban = store.ban_by_limit(begun.subject, begun.ladder, REASON).await;
            ban.left(store.bans().now())
        };
        if is_decisive {
            denial.wait = denial.wait.max(Some(left));
        }
        let shows = live.policy.limit(limit).headers != Detail::None;
        if let DenialCause::Limited { retry_after, .. } = &mut denial.cause
            && shows
        {
            *retry_after = (*retry_after).max(Some(left));
        }
    }
    denial
}

/// A ban that begins, with what people are told of it.
struct StartingBan<'l> {
    limit: LimitId,
    key: KeyHash,
    ladder: &'l Ladder,
    subject: BanSubject,
}

impl StartingBan<'_> {
    fn suspected(self, client: IpAddr) -> SuspectedBan {
        SuspectedBan { limit: self.limit, key: self.key, subject: self.subject, client }
    }
}

fn starting_bans<'l>(
    denial: &Denial<'_>,
    live: &'l Snapshot,
    plan: &Plan<'_, '_>,
    hashers: &Hashers,
) -> SmallVec<[StartingBan<'l>; 1]> {
    let begun = denial.new_bans.iter().filter_map(|&NewBan { limit: id, key }| {
        let limit = live.policy.limit(id);
        let Action::Ban(ladder) = &limit.then.action else { return None };
        let named = plan.named(hashers, id, key).unwrap_or_default();
        let client = Some(plan.client());
        let subject = BanSubject::Key { key, limit: limit.name.clone(), named, client };
        Some(StartingBan { limit: id, key, ladder, subject })
    });
    begun.collect()
}

/// When whoever was refused beside slots in flight may come again.
const RETRY_SOON: Duration = Duration::from_secs(1);
