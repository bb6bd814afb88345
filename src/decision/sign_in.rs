//! Whether a success is the own one of the name in the request, and what the account's sessions are from then on.

use std::sync::Arc;

use super::CarriedSessions;
use super::Policy;
use super::SessionHashes;
use super::SignIn;
use super::carried_sessions;
use super::carried_sessions::GainedSessions;
use crate::head::Fields;
use crate::key::KeyHash;
use crate::key::KeyHasher;
use crate::key::Source;
use crate::key::extract;
use crate::key::undisputed;
use crate::route::RouteId;
use crate::route::SessionRule;

/// A request to a route with `sessions`, until its answer says whether somebody has signed in.
#[derive(Clone, Debug)]
pub struct PendingSignIn {
    /// The route whose `sessions` it is about.
    route: RouteId,
    /// `None`: applications may read different names in the request, or none.
    account: Option<KeyHash>,
    carried: CarriedSessions,
}

/// Whose an answer is that looks like a success.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SuccessOwner {
    /// Somebody else's, so that it is a failure: of one who is signed in already, or of nobody who has signed in.
    Other,
    /// Of the name in the request, as far as this process knows.
    Own,
    /// The same, and the store has to learn it. It may know that it is somebody else's.
    Learning(SignIn),
}

impl PendingSignIn {
    pub(super) fn of(
        policy: &Policy,
        route: RouteId,
        source: &Source<'_>,
        carried: &CarriedSessions,
        hasher: &KeyHasher,
    ) -> Option<Self> {
        let rule = policy.routes.get(route).sessions.as_ref()?;
        Some(Self { route, account: account(rule, source, hasher), carried: carried.clone() })
    }

    fn rule<'p>(&self, policy: &'p Policy) -> Option<&'p SessionRule> {
        policy.routes.get(self.route).sessions.as_ref()
    }

    /// Where tokens may stand in the body of a success. `None`: nowhere.
    pub fn tokens<'p>(&self, policy: &'p Policy) -> Option<&'p Arc<[Box<str>]>> {
        self.rule(policy).map(|rule| &rule.tokens).filter(|tokens| !tokens.is_empty())
    }

    /// The sessions that the head of the answer gives its client.
    pub fn gained(&self, policy: &Policy, answer: &Fields, hasher: &KeyHasher) -> GainedSessions {
        let gained = self.rule(policy).map(|rule| self.carried.gained(policy, rule, answer, hasher));
        gained.unwrap_or_default()
    }

    /// Adds the tokens in the body of the answer.
    pub fn add_tokens(&self, gained: &mut GainedSessions, policy: &Policy, tokens: &[Box<str>], hasher: &KeyHasher) {
        if let Some(rule) = self.rule(policy) {
            self.carried.add_tokens(gained, policy, rule, tokens, hasher);
        }
    }

    /// Whose an answer is that looks like a success and gives its client these sessions.
    pub fn owner(&self, policy: &Policy, gained: GainedSessions, hasher: &KeyHasher) -> SuccessOwner {
        let Some(rule) = self.rule(policy) else { return SuccessOwner::Own };
        if rule.is_fresh && !gained.has_fresh || self.carried.has_foreign(self.account) {
            return SuccessOwner::Other;
        }
        let Some(account) = self.account else { return SuccessOwner::Own };
        let mut learned = gained.sessions;
        if !rule.is_fresh {
            learned.extend(self.carried.of_rule(policy, rule));
        }
        // An ended session may still be accepted by the application.
        let carried: SessionHashes =
            self.carried.sessions().flat_map(|session| [session, carried_sessions::former(session, hasher)]).collect();
        if learned.is_empty() && carried.is_empty() {
            return SuccessOwner::Own;
        }
        SuccessOwner::Learning(SignIn { account, keep: rule.keep, learned, carried })
    }
}

/// The account that every application reads in a request.
fn account(rule: &SessionRule, source: &Source<'_>, hasher: &KeyHasher) -> Option<KeyHash> {
    if !undisputed::names_one(&rule.of, source) {
        return None;
    }
    let found = extract::keys(&rule.of, source).ok()?;
    match &found.keys[..] {
        [only] if !only.missing => Some(carried_sessions::account(&only.key, hasher)),
        _ => None,
    }
}
