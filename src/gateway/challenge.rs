//! Denials that ask for work instead: the page that does it, and the budget that it buys.

use std::fmt::Write;
use std::num::NonZeroU32;
use std::sync::LazyLock;

use http::HeaderMap;
use http::HeaderValue;
use http::Method;
use smallvec::SmallVec;
use smallvec::smallvec;

use super::Core;
use super::cookies;
use super::page::Template;
use super::refusal::Refusal;
use super::story::Story;
use crate::challenge;
use crate::challenge::Token;
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
use crate::key::Key;
use crate::key::KeyHash;
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
    settlements.push(Settlement::Forget(key));
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

/// The page that works, and what it may do.
#[derive(Debug)]
pub struct Page {
    pub html: Vec<u8>,
    pub content_security_policy: HeaderValue,
}

/// The page with a question for this key of this limit.
pub fn page(story: &Story, limit: &Limit, key: KeyHash, refusal: &Refusal<'_>) -> Page {
    let now = story.core.clock.now();
    let (for_token, for_scripts) = (random(), random());
    let token = Token::issue(story.core.store.ring(), &limit.name, key, now, for_token);
    let mut scripts = String::with_capacity(2 * NONCE);
    for byte in for_scripts {
        let _ = write!(scripts, "{byte:02x}");
    }
    // A form is not sent again by itself: what was in it is nobody's to keep.
    let repeat = if matches!(*story.method(), Method::GET | Method::HEAD) { "reload" } else { "back" };
    let html = TEMPLATE.fill(|mark, html| match mark {
        "nonce" => html.extend_from_slice(scripts.as_bytes()),
        "token" => html.extend_from_slice(token.to_text().as_bytes()),
        "difficulty" => html.extend_from_slice(itoa::Buffer::new().format(token.difficulty()).as_bytes()),
        "lifetime" => html.extend_from_slice(itoa::Buffer::new().format(token.left(now).as_secs()).as_bytes()),
        "repeat" => html.extend_from_slice(repeat.as_bytes()),
        "detail" => refusal.explain(html),
        _ => html.extend_from_slice(story.request_id.as_bytes()),
    });
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{scripts}'; style-src 'nonce-{scripts}'; worker-src blob:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    );
    Page { html, content_security_policy: HeaderValue::try_from(policy).expect("visible characters") }
}

fn random() -> [u8; NONCE] {
    let mut bytes = [0; NONCE];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes
}

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| Template::new(include_str!("pages/challenge.html")));
