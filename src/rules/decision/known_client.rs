//! Whether the client of a request is known, on a route with `known_clients`.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Policy;
use super::batch::KnownClientKey;
use crate::rules::client::DeviceId;
use crate::rules::client::device::{DeviceCookies, DeviceOwner};
use crate::rules::decision::batch::{Charged, Items, Settlement};
use crate::rules::decision::carried_sessions::GainedSessions;
use crate::rules::decision::{CarriedSessions, SessionHashes, SignIn, carried_sessions};
use crate::rules::key::{Key, KeyHash, KeyHasher, ValueSource, extract, undisputed};
use crate::rules::limit::LimitId;
use crate::rules::outcome::Outcome;
use crate::rules::route::{KnownBy, KnownClients, Route, RouteId, SessionRule};
use crate::wire::head::Fields;
use crate::words::clock::Timestamp;
use crate::words::pending_reservations::ToldLater;
use crate::words::signing::KeyRing;

/// No limit has a name like this: names have no space.
const KNOWN: &str = "known clients";

/// Whether the client of a request is known, on a route with `known_clients`.
#[derive(Debug)]
pub(super) struct ClientMatch {
    /// The device that the cookies of the request prove.
    pub(super) device: DeviceMatch,
    /// The keys under which a store may know the client. The batch takes them where a charge depends on it.
    pub(super) keys: SmallVec<[KnownClientKey; 1]>,
    /// The client that is known after a success, and the route whose `known_clients` says so.
    pub(super) remember: Option<(RouteId, KnownClientKey)>,
}

impl ClientMatch {
    /// `device_keys` verify device cookies. `None`: no device is known.
    pub(super) fn of(
        policy: &Policy,
        route: RouteId,
        source: &ValueSource<'_>,
        device_keys: Option<DeviceKeys<'_>>,
        hasher: &KeyHasher,
    ) -> Self {
        let device = device_keys.map_or_else(DeviceMatch::default, |by| matching(policy, route, source, by));
        let source = &ValueSource { device: device.id(), ..*source };
        let keys = known_client_keys(policy, route, source, hasher);
        let remember = client_to_remember(policy, route, source, &keys).map(|one| (route, one));
        Self { device, keys, remember }
    }
}

/// The keys under which a store may know the client: one for each name that an application may read in the request. Empty where the name is
/// missing, or where the gateway may not have seen all names.
fn known_client_keys(
    policy: &Policy,
    route: RouteId,
    source: &ValueSource<'_>,
    hasher: &KeyHasher,
) -> SmallVec<[KnownClientKey; 1]> {
    let route = policy.routes.get(route);
    let Some(KnownClients { of, by: KnownBy::Address, prefix, .. }) = &route.known_clients else {
        return SmallVec::new();
    };
    let Ok(found) = extract::keys(of, source) else { return SmallVec::new() };
    if found.absent || found.keys.iter().any(|candidate| candidate.missing) {
        return SmallVec::new();
    }
    let client = hasher.item(&extract::client(*prefix, source));
    let subject = |name: &Key| {
        let mut key = Key::default();
        key.push(route.name.as_bytes());
        name.parts().for_each(|part| key.push(part));
        hasher.hash(KNOWN, &key)
    };
    found.keys.iter().map(|name| KnownClientKey { subject: subject(&name.key), client }).collect()
}

/// The client that is known after a success. `None` where the request has several names, because it is not certain
/// which one succeeds, or where the application may read another name.
fn client_to_remember(
    policy: &Policy,
    route: RouteId,
    source: &ValueSource<'_>,
    known: &[KnownClientKey],
) -> Option<KnownClientKey> {
    let rule = policy.routes.get(route).known_clients.as_ref()?;
    let [one] = known else { return None };
    undisputed::names_one(&rule.of, source).then_some(*one)
}

// Clients that are known by a device cookie. The cookie proves it, without a store.

/// The keys that genuine device cookies are signed with.
#[derive(Clone, Copy, Debug)]
pub struct DeviceKeys<'a> {
    pub ring: &'a KeyRing,
    pub now: Timestamp,
}

/// A client that gets a device cookie when the outcome is a success.
#[derive(Clone)]
pub struct DeviceEnrollment {
    /// The route whose `known_clients` sets how long the cookie is valid.
    pub route: RouteId,
    /// The user name in the request, in the spelling in which it is compared.
    pub name: Box<str>,
    /// The device, if it was known before.
    pub device: Option<DeviceId>,
}

/// The device that the cookies of a request prove.
#[derive(Debug, Default)]
pub(super) struct DeviceMatch {
    pub(super) is_known: bool,
    pub(super) enrollment: Option<DeviceEnrollment>,
}

/// Compares the device cookies of a request with each user name in it. The client is not known where the name is
/// missing, or where the gateway may not have seen all names.
pub(super) fn matching(policy: &Policy, route: RouteId, source: &ValueSource<'_>, keys: DeviceKeys<'_>) -> DeviceMatch {
    let of = policy.routes.get(route);
    let Some(KnownClients { of: selector, by: KnownBy::Cookie, .. }) = &of.known_clients else {
        return DeviceMatch::default();
    };
    let Ok(found) = extract::keys(selector, source) else { return DeviceMatch::default() };
    if found.absent || found.keys.iter().any(|candidate| candidate.missing) {
        return DeviceMatch::default();
    }
    let names: SmallVec<[String; 1]> = found.keys.iter().map(|candidate| owner_name(&candidate.key)).collect();
    let cookies = DeviceCookies::read(source.head.fields);
    let device = |name: &str| cookies.find(keys.ring, keys.now, DeviceOwner { route: &of.name, name });
    let devices: SmallVec<[_; 1]> = names.iter().map(|name| device(name)).collect();
    let enrollment = match (&names[..], &devices[..]) {
        // If there are several names, or a name that the application may read otherwise, it is uncertain which user a
        // success belongs to.
        ([name], [device]) if undisputed::names_one(selector, source) => {
            Some(DeviceEnrollment { route, name: name.as_str().into(), device: *device })
        }
        _ => None,
    };
    DeviceMatch { is_known: devices.iter().all(Option::is_some), enrollment }
}

/// The name that a cookie is signed for. What a client sends has no NUL, so that no two tuples have one name.
fn owner_name(key: &Key) -> String {
    let parts: SmallVec<[_; 2]> = key.parts().map(String::from_utf8_lossy).collect();
    parts.join("\0")
}

impl DeviceMatch {
    /// The device that has a budget of its own; `None`: it shares the budget of all devices without a valid cookie.
    pub(super) fn id(&self) -> Option<DeviceId> {
        self.enrollment.as_ref()?.device
    }
}

/// Whether the user name that known clients of this route are remembered for may stand in the body.
pub(super) fn reads_body(route: &Route) -> bool {
    route.known_clients.as_ref().is_some_and(|known| known.of.needs_body())
}

/// Without the user name, which does not belong in logs.
impl fmt::Debug for DeviceEnrollment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceEnrollment").field("route", &self.route).finish_non_exhaustive()
    }
}

// Turns the outcome of a request into settlements for the store.

/// The charges and slots that wait for the outcome of a request that passed. Settled exactly once.
#[derive(Clone, Debug)]
pub struct PendingOutcome {
    /// The route whose `outcome` classifies the answer.
    pub route: RouteId,
    pub(super) charges: SmallVec<[PendingCharge; 2]>,
    /// The client that is known after a success, and the route whose `known_clients` says so.
    pub(super) known_client: Option<(RouteId, KnownClientKey)>,
    /// The client that gets a device cookie after a success.
    pub enrollment: Option<DeviceEnrollment>,
    /// How to tell whether a success belongs to the name in the request. `None`: every success does.
    pub sign_in: Option<Box<PendingSignIn>>,
    /// Whether the client is a known one of the name in the request, as far as that was asked before.
    pub is_known_client: bool,
    /// Whether it was, as the store tells when it remembers the client.
    pub was_known: ToldLater,
}

/// A key of a limit that the request passed, for which the outcome matters.
#[derive(Clone, Debug)]
pub(super) struct PendingCharge {
    pub limit: LimitId,
    pub key: KeyHash,
    pub items: Items,
    pub charged: Option<Charged>,
    /// The request has no other key under this limit, and the application certainly reads this one.
    pub may_reset: bool,
}

impl PendingOutcome {
    /// What the store has to do for an outcome. `None`: the request reached the application, and its outcome cannot be
    /// known. Then every charge counts.
    ///
    /// Only a request with one undisputed key under a limit may reset that key: a success as one user must not reset
    /// the failures of another.
    pub fn settlements<'p>(&'p self, policy: &'p Policy, outcome: Option<Outcome>) -> SmallVec<[Settlement<'p>; 4]> {
        let mut settlements = SmallVec::new();
        for PendingCharge { limit, key, items, charged, may_reset } in &self.charges {
            let limit = policy.limit(*limit);
            if outcome.is_some() && limit.reset_on.map(Outcome::from) == outcome && *may_reset {
                // The request's own charge is taken back first: then there is often nothing left to reset, and no reset
                // to announce.
                let own = charged.as_ref();
                settlements.extend(own.map(|charged| Settlement::TakeBack { key: *key, rule: &limit.rule, charged }));
                settlements.push(Settlement::Reset(*key));
                continue;
            }
            let Some(counted) = limit.count.outcome() else { continue };
            match (outcome.is_none_or(|outcome| counted == outcome), charged) {
                (false, Some(charged)) => {
                    settlements.push(Settlement::TakeBack { key: *key, rule: &limit.rule, charged });
                }
                (true, Some(charged)) => {
                    settlements.push(Settlement::Keep { key: *key, rule: &limit.rule, items, charged });
                }
                (true, None) => settlements.push(Settlement::Charge { key: *key, rule: &limit.rule, items }),
                (false, None) => {}
            }
        }
        let known = self.known_client.as_ref().filter(|_| outcome == Some(Outcome::Success));
        if let Some((route, of)) = known
            && let Some(clients) = &policy.routes.get(*route).known_clients
        {
            let (most, was_known) = (clients.remember, self.was_known.clone());
            settlements.push(Settlement::Remember { of: *of, most, keep: clients.keep, was_known });
        }
        settlements
    }
}

// Whether a success is the own one of the name in the request, and what the account's sessions are from then on.

/// A request to a route with `sessions`, until its answer says whether it was a sign-in.
#[derive(Clone, Debug)]
pub struct PendingSignIn {
    /// The route whose `sessions` it is about.
    route: RouteId,
    named: NamedAccount,
    carried: CarriedSessions,
}

/// Whom a request to sign in names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum NamedAccount {
    /// Every application reads this one.
    One(KeyHash),
    /// There is no name.
    Nobody,
    /// Applications may read different names.
    InDoubt,
}

/// The account that an apparent success belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SuccessOwner {
    /// Another account, or none: the client was signed in already, or has not signed in. The success counts as a
    /// failure.
    Other,
    /// The account that the request names, as far as this process knows.
    Own,
    /// The account that the request names, which the store has to confirm and learn: it may know that the session
    /// belongs to another account.
    Learning(SignIn),
}

impl PendingSignIn {
    pub(super) fn of(
        policy: &Policy,
        route: RouteId,
        source: &ValueSource<'_>,
        carried: &CarriedSessions,
        hasher: &KeyHasher,
    ) -> Option<Self> {
        let rule = policy.routes.get(route).sessions.as_ref()?;
        Some(Self { route, named: NamedAccount::of(rule, source, hasher), carried: carried.clone() })
    }

    fn rule<'p>(&self, policy: &'p Policy) -> Option<&'p SessionRule> {
        policy.routes.get(self.route).sessions.as_ref()
    }

    /// Where tokens may stand in the body of a success. `None`: nowhere.
    pub fn tokens<'p>(&self, policy: &'p Policy) -> Option<&'p Arc<[Box<str>]>> {
        self.rule(policy).map(|rule| &rule.tokens).filter(|tokens| !tokens.is_empty())
    }

    /// The sessions that the head of the answer gives its client. `now` is its moment by the wall clock.
    pub fn gained(&self, policy: &Policy, answer: &Fields, now: Timestamp, hasher: &KeyHasher) -> GainedSessions {
        let gained = self.rule(policy).map(|rule| self.carried.gained(policy, rule, answer, now, hasher));
        gained.unwrap_or_default()
    }

    /// Adds the tokens in the body of the answer.
    pub fn add_tokens(&self, gained: &mut GainedSessions, policy: &Policy, tokens: &[Box<str>], hasher: &KeyHasher) {
        if let Some(rule) = self.rule(policy) {
            self.carried.add_tokens(gained, policy, rule, tokens, hasher);
        }
    }

    /// The account of an apparent success whose answer sets these sessions.
    pub fn owner(&self, policy: &Policy, gained: GainedSessions, hasher: &KeyHasher) -> SuccessOwner {
        let Some(rule) = self.rule(policy) else { return SuccessOwner::Own };
        if rule.is_fresh && !gained.has_fresh || self.carried.may_have_session_of_another(self.named.certain()) {
            return SuccessOwner::Other;
        }
        let mut learned = gained.sessions;
        if !rule.is_fresh {
            learned.extend(self.carried.of_rule(policy, rule));
        }
        let account = match self.named {
            NamedAccount::Nobody => return SuccessOwner::Own,
            NamedAccount::One(account) => account,
            // It is somebody's session, and must not make a success of another name: as if it had ended.
            NamedAccount::InDoubt => {
                learned.iter_mut().for_each(|session| *session = carried_sessions::former(*session, hasher));
                carried_sessions::unread_account(hasher)
            }
        };
        // An ended session may still be accepted by the application.
        let carried: SessionHashes =
            self.carried.sessions().flat_map(|session| [session, carried_sessions::former(session, hasher)]).collect();
        if learned.is_empty() && carried.is_empty() {
            return SuccessOwner::Own;
        }
        SuccessOwner::Learning(SignIn { account, keep: rule.keep, learned, carried })
    }
}

impl NamedAccount {
    fn of(rule: &SessionRule, source: &ValueSource<'_>, hasher: &KeyHasher) -> Self {
        let Ok(found) = extract::keys(&rule.of, source) else { return Self::InDoubt };
        match &found.keys[..] {
            [only] if !only.missing && undisputed::names_one(&rule.of, source) => {
                Self::One(carried_sessions::account(&only.key, hasher))
            }
            [only] if only.surely_missing => Self::Nobody,
            _ => Self::InDoubt,
        }
    }

    /// The account that every application reads.
    fn certain(self) -> Option<KeyHash> {
        match self {
            Self::One(account) => Some(account),
            Self::Nobody | Self::InDoubt => None,
        }
    }
}
