//! Challenges: a proof of work buys a new budget.

use std::num::NonZeroU32;
use std::sync::LazyLock;

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
use crate::head::Fields;
use crate::key::Key;
use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Limit;
use crate::limit::Rate;
use crate::limit::Rates;
use crate::limit::Rule;
use crate::store::Store;

/// The cookie in which a browser sends its proof.
const COOKIE: &str = "portcullis_pow";

/// The proofs of work that a request brings.
#[derive(Debug, Default)]
pub struct Proofs(SmallVec<[Box<str>; 1]>);

impl Proofs {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the proofs out of the request: the application does not get them.
    pub fn take(fields: &mut Fields) -> Self {
        Self(cookies::take(fields, COOKIE))
    }
}

/// If a challenge denied the request, and the request brings the proof for it, resets the limit for its key and marks
/// the proof as used. Returns whether the request must be decided again.
pub async fn redeem(worker: &WorkerState, live: &Snapshot, denial: &Denial, proofs: &Proofs) -> bool {
    let (Penalty::Challenge(key), Some(limit)) = (denial.penalty, denial.limit) else { return false };
    let limit = live.policy.limit(limit);
    let now = worker.clock.now();
    let ring = worker.store.key_ring().load();
    let mut solved = proofs.0.iter().filter_map(|proof| challenge::verify(&ring, proof, &limit.name, key, now));
    let Some(solved) = solved.next() else { return false };
    if !is_first_use(worker, limit, &solved.id).await {
        return false;
    }
    // During an outage that begins here the limit denies, or there is nothing to reset.
    let _ = worker.store.settle(&[Settlement::Reset { key, charged: None }]).await;
    true
}

/// Marks this proof as used. Returns whether it was not used before, at any gateway of the store.
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

/// No limit has this name, because names have no spaces.
const USED_PROOFS: &str = "used proofs";

static ONE_USE: LazyLock<Rule> = LazyLock::new(|| {
    let once = Rate { count: NonZeroU32::MIN, per: challenge::REPLAY_WINDOW };
    let rates = Rates::new([once]).expect("whole seconds");
    Rule::Rates { algorithm: Algorithm::FixedWindow, rates, cost: NonZeroU32::MIN }
});
