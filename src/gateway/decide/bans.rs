//! Bans on a request's way: what is banned is denied, and what reaches a limit that bans is banned.

mod suspect;

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::decision::Denial;
use crate::decision::Entry;
use crate::decision::Plan;
use crate::decision::conclude::Cause;
use crate::decision::conclude::Penalty;
use crate::decision::conclude::Trip;
use crate::gateway::snapshot::Snapshot;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::limit::Action;
use crate::limit::Detail;
use crate::limit::Ladder;
use crate::limit::LimitId;
use crate::request::Fields;
use crate::store::AnyStore;
use crate::store::Store;
use crate::store::bans::BanId;
use crate::store::bans::Subject;

/// Denies the keys that are banned. A store is asked only whether the client is known, where that matters to a ban.
pub(in crate::gateway) async fn heed<'p>(mut plan: Plan<'p>, store: &AnyStore) -> Plan<'p> {
    let bans = store.bans();
    let left = |key| bans.left(key);
    let is_known = match plan.depends_on_acquaintance(left) {
        // In doubt it is not.
        Some(batch) => store.look(&batch).await.is_ok_and(|verdicts| verdicts.iter().all(|verdict| verdict.is_exempt)),
        None => false,
    };
    plan.heed_bans(is_known, left);
    plan
}

/// The ban that a denial is about, where it is about one. `address` is that of the client's address.
pub(in crate::gateway) fn behind(denial: &Denial<'_>, address: Option<BanId>) -> Option<BanId> {
    match (&denial.cause, denial.penalty) {
        (Cause::Banned, _) => address,
        (_, Penalty::Ban) => denial.key.map(BanId::of_key),
        _ => None,
    }
}

/// The bans that begin with a denial, which says from now on how long they last.
pub(in crate::gateway) async fn begin(
    denial: &mut Denial<'_>,
    live: &Arc<Snapshot>,
    entry: &Entry<'_, '_>,
    fields: &Fields,
    store: &Arc<AnyStore>,
) {
    let client = entry.client();
    for begun in named(denial, live, entry, fields, &store.hashers()) {
        let is_decisive = denial.limit == Some(begun.limit);
        let left = if store.is_unsettled(begun.key).await {
            // What is refused beside slots in flight is no guess yet: they may all come back.
            if is_decisive {
                denial.penalty = Penalty::None;
                denial.is_suspect = true;
            }
            denial.trips.retain(|trip| trip.key != begun.key);
            suspect::look_into(&begun, live, client, store);
            A_MOMENT
        } else {
            let ban = store.trip(begun.subject, begun.ladder, REASON).await;
            ban.left(store.bans().now())
        };
        if is_decisive {
            denial.wait = denial.wait.max(Some(left));
        }
        let shows = live.policy.limit(begun.limit).headers != Detail::None;
        if let Cause::Limited { retry_after, .. } = &mut denial.cause
            && shows
        {
            *retry_after = (*retry_after).max(Some(left));
        }
    }
}

/// A ban that begins, with what people are told of it.
struct Begun<'l> {
    limit: LimitId,
    key: KeyHash,
    ladder: &'l Ladder,
    subject: Subject,
}

fn named<'l>(
    denial: &Denial<'_>,
    live: &'l Snapshot,
    entry: &Entry<'_, '_>,
    fields: &Fields,
    hashers: &Hashers,
) -> SmallVec<[Begun<'l>; 1]> {
    let begun = denial.trips.iter().filter_map(|&Trip { limit: id, key }| {
        let limit = live.policy.limit(id);
        let Action::Ban(ladder) = &limit.then.action else { return None };
        let named = entry.named(fields, hashers, id, key).unwrap_or_default();
        let client = Some(entry.client());
        let subject = Subject::Key { key, limit: limit.name.clone(), named, client };
        Some(Begun { limit: id, key, ladder, subject })
    });
    begun.collect()
}

/// Why a limit bans: because it was reached.
const REASON: &str = "the limit was reached";

/// When whoever was refused beside slots in flight may come again.
const A_MOMENT: Duration = Duration::from_secs(1);
