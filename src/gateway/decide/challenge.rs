//! Challenges: a proof of work buys a new budget.

use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::time::Duration;

use smallvec::smallvec;

use crate::gateway::admit::Proofs;
use crate::gateway::snapshot::{Snapshot, WorkerState};
use crate::rules::challenge;
use crate::rules::challenge::NONCE;
use crate::rules::decision::{Batch, Charge, Denial, ListChallenge, Penalty, RoutedRequest, Settlement, Verdict};
use crate::rules::key::{Key, KeyHash};
use crate::rules::limit::{Algorithm, OnFailure, Rate, Rates, Rule};
use crate::store::Store;

/// If a challenge denied the request, and the request brings the proof for it, resets the limit for its key and marks
/// the proof as used. Returns whether the request must be decided again.
pub async fn redeem(worker: &WorkerState, live: &Snapshot, denial: &Denial, proofs: &Proofs) -> bool {
    let (Penalty::Challenge(key), Some(limit)) = (denial.penalty, denial.limit) else { return false };
    let limit = live.policy.limit(limit);
    if !prove(worker, &limit.name, key, proofs, limit.on_failure).await {
        return false;
    }
    // During an outage that begins here the limit denies, or there is nothing to reset.
    let _ = worker.store.settle(&[Settlement::Reset(key)]).await;
    true
}

/// Lets the request past its list if the client has solved the challenge: with the proof in this request, or earlier,
/// at any gateway that shares the store.
pub async fn meet(worker: &WorkerState, entry: &mut RoutedRequest<'_, '_>, proofs: &Proofs) {
    if let Some(challenge) = entry.list_challenge(&worker.store.hasher())
        && has_solved(worker, &challenge, proofs).await
    {
        entry.pass_challenge();
    }
}

async fn has_solved(worker: &WorkerState, challenge: &ListChallenge, proofs: &Proofs) -> bool {
    let ListChallenge { list, key } = challenge;
    let mark = Batch { charges: smallvec![once(*key, &ONE_PASS, OnFailure::Local)], ..Batch::default() };
    // In doubt the client has not met it.
    if worker.store.look(&mark).await.is_ok_and(|verdicts| !verdicts.iter().all(Verdict::passes)) {
        return true;
    }
    if !prove(worker, list, *key, proofs, OnFailure::Local).await {
        return false;
    }
    // Where this is lost the client is asked again.
    let _ = worker.store.decide(&mark).await;
    true
}

/// Whether the request brings a proof for this key of a limit or list. The proof is used then.
async fn prove(worker: &WorkerState, name: &str, key: KeyHash, proofs: &Proofs, on_failure: OnFailure) -> bool {
    let now = worker.clock.now();
    let ring = worker.store.key_ring().load();
    let mut solved = proofs.0.iter().filter_map(|proof| challenge::verify(&ring, proof, name, key, now));
    match solved.next() {
        Some(solved) => is_first_use(worker, on_failure, &solved.id).await,
        None => false,
    }
}

/// Marks this proof as used. Returns whether it was not used before, at any gateway of the store.
async fn is_first_use(worker: &WorkerState, on_failure: OnFailure, id: &[u8; NONCE]) -> bool {
    let mut key = Key::default();
    key.push(id);
    let charge = once(worker.store.hasher().hash(USED_PROOFS, &key), &ONE_USE, on_failure);
    let verdicts = worker.store.decide(&Batch { charges: smallvec![charge], ..Batch::default() }).await;
    verdicts.is_ok_and(|verdicts| verdicts.iter().all(Verdict::passes))
}

fn once(key: KeyHash, rule: &Rule, on_failure: OnFailure) -> Charge<'_> {
    Charge { on_failure, ..Charge::new(0, key, rule) }
}

/// No limit has this name, because names have no spaces.
const USED_PROOFS: &str = "used proofs";

static ONE_USE: LazyLock<Rule> = LazyLock::new(|| once_per(challenge::REPLAY_WINDOW));

/// Once in so long a client meets the challenge of a list.
static ONE_PASS: LazyLock<Rule> = LazyLock::new(|| once_per(Duration::from_secs(3600)));

fn once_per(per: Duration) -> Rule {
    let rates = Rates::new([Rate { count: NonZeroU32::MIN, per }]).expect("whole seconds");
    Rule::Rates { algorithm: Algorithm::FixedWindow, rates, cost: NonZeroU32::MIN }
}
