//! Suspected bans: a limit that counts by outcome denied requests while others were in progress. Whether the limit was
//! really reached is known when those are settled.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use smallvec::smallvec;
use tokio::time::sleep;

use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::batch::Force;
use crate::decision::batch::Items;
use crate::gateway::snapshot::Snapshot;
use crate::key::KeyHash;
use crate::limit::Action;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::store::AnyStore;
use crate::store::Store;
use crate::store::bans::BanSubject;

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
            let left = store.ban_by_limit(subject, ladder, REASON).await.left(store.bans().now());
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
        limit: 0,
        key,
        rule: &limit.rule,
        count: limit.count,
        force: Force::Binding,
        on_failure: limit.on_failure,
        // A new value would be denied when nothing remains.
        items: Items::new(),
        unless_known: false,
        is_free: false,
        leases: false,
    };
    let verdicts = store.look(&Batch { charges: smallvec![charge], ..Batch::default() }).await;
    verdicts.is_ok_and(|verdicts| {
        verdicts
            .iter()
            .any(|verdict| !verdict.passes() || verdict.standings.iter().any(|standing| standing.remaining == 0))
    })
}

/// The reason that a ban by a limit shows.
pub const REASON: &str = "the limit was reached";

/// How long to wait for requests in progress: a client must not prevent its ban with one slow request.
pub const PATIENCE: Duration = Duration::from_secs(5);

pub const SHORTEST: Duration = Duration::from_millis(5);

pub const LONGEST: Duration = Duration::from_millis(500);
