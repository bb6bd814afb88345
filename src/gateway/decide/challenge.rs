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
use crate::decision::Decision;
use crate::decision::Denial;
use crate::decision::Plan;
use crate::decision::Policy;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::decision::batch::Force;
use crate::decision::batch::Items;
use crate::decision::conclude::Penalty;
use crate::gateway::admit::cookies;
use crate::gateway::core::Core;
use crate::gateway::story::Story;
use crate::key::Key;
use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Limit;
use crate::limit::Rate;
use crate::limit::Rates;
use crate::limit::Rule;
use crate::outcome::Outcome;
use crate::store::Store;
use crate::store::StoreError;

/// Where a browser puts its proof.
const COOKIE: &str = "portcullis_pow";

/// The proofs of work that a request brings.
#[derive(Debug, Default)]
pub struct Proofs(SmallVec<[Box<str>; 1]>);

impl Proofs {
    /// Takes them away: they are for nobody else.
    pub fn take(headers: &mut HeaderMap) -> Self {
        Self(cookies::take(headers, COOKIE))
    }
}

/// Decides; and where a challenge would deny a request that brings the proof for it, gives that key a new budget and
/// decides anew.
pub async fn decide<'a>(story: &Story, plan: &Plan<'a>, proofs: &Proofs) -> Result<Decision<'a>, StoreError> {
    let decision = plan.conclude(&story.core.store.decide(plan.batch()).await?);
    if proofs.0.is_empty() {
        return Ok(decision);
    }
    match &decision {
        Decision::Deny(denial) if Box::pin(redeem(story, denial, proofs)).await => {
            Ok(plan.conclude(&Box::pin(story.core.store.decide(plan.batch())).await?))
        }
        _ => Ok(decision),
    }
}

/// Whether one of the proofs is for what denies, and was not used before. It is from now on, and the key's counts are
/// forgotten. What else the denied decision holds is given back.
async fn redeem(story: &Story, denial: &Denial<'_>, proofs: &Proofs) -> bool {
    let (core, policy) = (&story.core, &story.live.policy);
    let (Penalty::Challenge(key), Some(limit)) = (denial.penalty, denial.limit) else { return false };
    let limit = policy.limit(limit);
    let now = core.clock.now();
    let mut solved =
        proofs.0.iter().filter_map(|proof| challenge::verify(core.store.ring(), proof, &limit.name, key, now));
    let Some(solved) = solved.next() else { return false };
    if !is_first_use(core, limit, &solved.id).await {
        return false;
    }
    let mut settlements: SmallVec<[_; 4]> = denial.slots.iter().copied().map(Settlement::Release).collect();
    if let Some(pending) = &denial.pending {
        settlements.extend(pending.settlements(policy, Some(Outcome::Neither)));
    }
    settlements.push(Settlement::Forget { key, charged: None });
    // A store that is away by now denies, or has nothing to forget.
    let _ = core.store.settle(&settlements).await;
    true
}

/// Whether nobody has used this proof, at any gateway of the store: then it is used now.
async fn is_first_use(core: &Core, limit: &Limit, id: &[u8; NONCE]) -> bool {
    let mut key = Key::default();
    key.push(id);
    let charge = Charge {
        limit: 0,
        key: core.store.hasher().hash(USED, &key),
        rule: &ONCE,
        count: Count::Requests,
        force: Force::Binding,
        on_failure: limit.on_failure,
        items: Items::new(),
        unless_known: false,
    };
    let verdicts = core.store.decide(&Batch { charges: smallvec![charge], ..Batch::default() }).await;
    verdicts.is_ok_and(|verdicts| verdicts.iter().all(Verdict::passes))
}

/// No limit has a name like this: names have no space.
const USED: &str = "used proofs";

static ONCE: LazyLock<Rule> = LazyLock::new(|| {
    let once = Rate { count: NonZeroU32::MIN, per: challenge::MEMORY };
    let rates = Rates::new([once]).expect("whole seconds");
    Rule::Rates { algorithm: Algorithm::FixedWindow, rates, cost: NonZeroU32::MIN }
});

/// Whether a limit of this policy challenges: without one no cookie is ours.
pub fn is_used_by(policy: &Policy) -> bool {
    policy.limits.iter().any(|limit| matches!(limit.then.action, crate::limit::Action::Challenge))
}
