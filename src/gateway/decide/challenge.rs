//! Denials that ask for work instead: the budget that it buys.

use std::num::NonZeroU32;
use std::sync::LazyLock;

use http::HeaderMap;
use smallvec::SmallVec;
use smallvec::smallvec;

use crate::challenge;
use crate::challenge::token::NONCE;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Denial;
use crate::decision::Penalty;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::decision::batch::Force;
use crate::decision::batch::Items;
use crate::gateway::admit::cookies;
use crate::gateway::snapshot::Snapshot;
use crate::gateway::worker_state::WorkerState;
use crate::key::Key;
use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Limit;
use crate::limit::Rate;
use crate::limit::Rates;
use crate::limit::Rule;
use crate::store::Store;

/// Where a browser puts its proof.
const COOKIE: &str = "portcullis_pow";

/// The proofs of work that a request brings.
#[derive(Debug, Default)]
pub struct Proofs(SmallVec<[Box<str>; 1]>);

impl Proofs {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes them away: they are for nobody else.
    pub fn take(headers: &mut HeaderMap) -> Self {
        Self(cookies::take(headers, COOKIE))
    }
}

/// Where a challenge denies a request that brings the proof for it, gives that key a new budget: its counts are
/// forgotten, and the proof counts no second time. `true`: what was decided is to be decided anew.
pub async fn redeem(worker: &WorkerState, live: &Snapshot, denial: &Denial<'_>, proofs: &Proofs) -> bool {
    let (Penalty::Challenge(key), Some(limit)) = (denial.penalty, denial.limit) else { return false };
    let limit = live.policy.limit(limit);
    let now = worker.clock.now();
    let ring = worker.store.key_ring().load();
    let mut solved = proofs.0.iter().filter_map(|proof| challenge::verify(&ring, proof, &limit.name, key, now));
    let Some(solved) = solved.next() else { return false };
    if !is_first_use(worker, limit, &solved.id).await {
        return false;
    }
    // A store that is away by now denies, or has nothing to forget.
    let _ = worker.store.settle(&[Settlement::Reset { key, charged: None }]).await;
    true
}

/// Whether this proof was used at no gateway of the store before. From now on it was.
async fn is_first_use(worker: &WorkerState, limit: &Limit, id: &[u8; NONCE]) -> bool {
    let mut key = Key::default();
    key.push(id);
    let charge = Charge {
        limit: 0,
        key: worker.store.hasher().hash(USED_PROOFS, &key),
        rule: &ONE_USE,
        count: Count::Requests,
        force: Force::Binding,
        on_failure: limit.on_failure,
        items: Items::new(),
        unless_known: false,
    };
    let verdicts = worker.store.decide(&Batch { charges: smallvec![charge], ..Batch::default() }).await;
    verdicts.is_ok_and(|verdicts| verdicts.iter().all(Verdict::passes))
}

/// No limit has a name like this: names have no space.
const USED_PROOFS: &str = "used proofs";

static ONE_USE: LazyLock<Rule> = LazyLock::new(|| {
    let once = Rate { count: NonZeroU32::MIN, per: challenge::REPLAY_WINDOW };
    let rates = Rates::new([once]).expect("whole seconds");
    Rule::Rates { algorithm: Algorithm::FixedWindow, rates, cost: NonZeroU32::MIN }
});
