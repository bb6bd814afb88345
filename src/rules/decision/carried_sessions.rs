//! The sessions that a request carries, whose they are, and what an answer makes of them.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::{Policy, SessionChange};
use crate::rules::key::{Key, KeyHash, KeyHasher, UserMark};
use crate::rules::outcome::set_cookie::{AnsweredCookie, answered, any_named};
use crate::rules::request::head::{bearer_tokens, judge_bearer};
use crate::rules::request::query::{cookie_values, cookie_values_like, is_cookie, is_cookie_like, judge_cookies};
use crate::rules::request::{CanonicalHead, NotUnderstood};
use crate::rules::route::{CookieNames, SessionCarrier, SessionRule};
use crate::wire::head::{Fields, KnownName};
use crate::words::clock::Timestamp;

/// The values of a request that may be sessions, and the accounts of those that are known.
#[derive(Clone, Debug, Default)]
pub struct CarriedSessions {
    found: SmallVec<[CarriedSession; 2]>,
    /// The accounts of the sessions, each once.
    users: SmallVec<[UserMark; 1]>,
    /// Why the request may carry a session that was not looked up.
    unread: Option<NotUnderstood>,
}

/// A value that may be a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct CarriedSession {
    session: KeyHash,
    /// The position of its carrier in the policy.
    carrier: u16,
    /// Distinguishes the cookies of one glob.
    name: u64,
    account: Option<KeyHash>,
}

/// The sessions that an answer gives its client.
#[derive(Clone, Debug, Default)]
pub struct GainedSessions {
    pub(super) sessions: SmallVec<[KeyHash; 2]>,
    /// One of them is none that the request carried.
    pub(super) has_fresh: bool,
}

impl GainedSessions {
    /// Whether the answer sets a session that the request did not carry.
    pub fn has_fresh(&self) -> bool {
        self.has_fresh
    }
}

/// A longer value is no session.
pub const MAX_VALUE: usize = 4096;

/// An honest client has one or two values of a cookie, each in one or two readings. Further values are not looked up.
const MAX_READINGS: usize = 16;

impl CarriedSessions {
    /// Reads a request. `account` says whose a session is. In a box, which goes with the request.
    pub fn read(
        policy: &Policy,
        head: &CanonicalHead<'_>,
        hasher: &KeyHasher,
        account: impl Fn(KeyHash) -> Option<KeyHash>,
    ) -> Box<Self> {
        let mut carried = Box::<Self>::default();
        for (number, carrier) in (0..).zip(policy.session_carriers.iter()) {
            let mut unread = not_understood(carrier, head.fields);
            let mut left = MAX_READINGS;
            each_value(carrier, head.fields, &mut |name, value| {
                let Some(less) = left.checked_sub(1) else {
                    unread = Some(NotUnderstood::Cookies);
                    return;
                };
                left = less;
                if let Some(session) = session(carrier, &value, hasher)
                    && !carried.found.iter().any(|known| known.session == session)
                {
                    let name = number_of(carrier, name, hasher);
                    carried.add(CarriedSession { session, carrier: number, name, account: account(session) });
                }
            });
            carried.unread = carried.unread.or(unread);
        }
        carried
    }

    fn add(&mut self, carried: CarriedSession) {
        if let Some(account) = carried.account
            && !self.found.iter().any(|known| known.account == Some(account))
        {
            self.users.push(UserMark::of(account));
        }
        self.found.push(carried);
    }

    /// The accounts of the sessions, each once.
    pub fn users(&self) -> &[UserMark] {
        &self.users
    }

    /// Why the request may carry other sessions, too.
    pub fn unread(&self) -> Option<NotUnderstood> {
        self.unread
    }

    /// Whether the request carries a session of an account.
    pub fn has_known(&self) -> bool {
        self.found.iter().any(|carried| carried.account.is_some())
    }

    /// Whether the request carries a session of another account than `own`, the account that it certainly names, or may
    /// carry one.
    pub(super) fn may_have_session_of_another(&self, own: Option<KeyHash>) -> bool {
        self.unread.is_some() || self.found.iter().any(|carried| carried.account.is_some() && carried.account != own)
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = KeyHash> {
        self.found.iter().map(|carried| carried.session)
    }

    /// The carried values that are known sessions under a rule.
    pub(super) fn of_rule(&self, policy: &Policy, rule: &SessionRule) -> impl Iterator<Item = KeyHash> {
        let carriers: SmallVec<[&SessionCarrier; 4]> = policy.session_carriers.of_rule(rule).collect();
        let is_of_rule = move |carried: &&CarriedSession| {
            let carrier = policy.session_carriers.iter().nth(usize::from(carried.carrier));
            carrier.is_some_and(|carrier| carriers.contains(&carrier))
        };
        self.found.iter().filter(is_of_rule).map(|carried| carried.session)
    }

    /// The changes that an answer makes to the sessions of its request: a cookie that is set anew is a session of the
    /// same account, and a deleted cookie ends its session. If the request carries sessions of several accounts, the
    /// new session belongs to none of them. `now` is the moment of the answer by the wall clock.
    pub fn changes(
        &self,
        policy: &Policy,
        answer: &Fields,
        now: Timestamp,
        hasher: &KeyHasher,
    ) -> SmallVec<[SessionChange; 2]> {
        let mut changes = SmallVec::new();
        let may_be_session = |name: &[u8]| policy.session_carriers.iter().any(|carrier| is_named(carrier, name));
        if !any_named(answer, may_be_session) {
            return changes;
        }
        let mut accounts = self.accounts();
        let is_sole = accounts.next().is_some() && accounts.next().is_none();
        let heir = self.found.iter().find(|carried| is_sole && carried.account.is_some());
        for (number, carrier) in (0..).zip(policy.session_carriers.iter()) {
            for cookie in answered(answer, now) {
                if cookie.is_deleted {
                    changes.extend(self.ended(number, carrier, &cookie, hasher));
                    continue;
                }
                let Some(CarriedSession { session: old, .. }) = heir else { continue };
                let renewed = self.sessions_of(carrier, &cookie, hasher);
                let renewed = renewed.into_iter().filter(|&new| !self.sessions().any(|known| known == new));
                changes.extend(renewed.map(|new| SessionChange::Renew { old: *old, new }));
            }
        }
        changes
    }

    /// The sessions under a rule that an answer sets.
    pub(super) fn gained(
        &self,
        policy: &Policy,
        rule: &SessionRule,
        answer: &Fields,
        now: Timestamp,
        hasher: &KeyHasher,
    ) -> GainedSessions {
        let mut gained = GainedSessions::default();
        for carrier in policy.session_carriers.of_rule(rule) {
            for cookie in answered(answer, now).filter(|cookie| !cookie.is_deleted) {
                self.gain(&mut gained, &self.sessions_of(carrier, &cookie, hasher));
            }
        }
        gained
    }

    /// Adds the tokens in the body of an answer.
    pub(super) fn add_tokens(
        &self,
        gained: &mut GainedSessions,
        policy: &Policy,
        rule: &SessionRule,
        tokens: &[Box<str>],
        hasher: &KeyHasher,
    ) {
        for carrier in policy.session_carriers.of_rule(rule).filter(|carrier| carrier.cookies.is_none()) {
            for token in tokens {
                let request = Fields::from_iter([(KnownName::AUTHORIZATION, format!("Bearer {token}"))]);
                self.gain(gained, &self.read_again(carrier, &request, hasher));
                gained.has_fresh |= !token.is_empty();
            }
        }
    }

    fn gain(&self, gained: &mut GainedSessions, sessions: &[KeyHash]) {
        let is_carried = |session: &KeyHash| self.sessions().any(|known| known == *session);
        gained.has_fresh |= !sessions.is_empty() && !sessions.iter().any(is_carried);
        gained.sessions.extend(sessions.iter().copied());
    }

    /// The accounts whose sessions the request carries, each once.
    fn accounts(&self) -> impl Iterator<Item = KeyHash> + use<> {
        let mut accounts: SmallVec<[KeyHash; 1]> = SmallVec::new();
        for account in self.found.iter().filter_map(|carried| carried.account) {
            if !accounts.contains(&account) {
                accounts.push(account);
            }
        }
        accounts.into_iter()
    }

    /// The sessions that a deleted cookie ends. A session that has ended no longer proves an account. A request that
    /// still carries it cannot make a success of another account: an application may accept a session that it has
    /// deleted, and only an attacker sends it.
    fn ended(
        &self,
        number: u16,
        carrier: &SessionCarrier,
        cookie: &AnsweredCookie<'_>,
        hasher: &KeyHasher,
    ) -> SmallVec<[SessionChange; 2]> {
        if !is_named(carrier, cookie.name) {
            return SmallVec::new();
        }
        let name = number_of(carrier, cookie.name, hasher);
        let ended = self.found.iter().filter(|carried| carried.carrier == number && carried.name == name);
        let known = ended.filter(|carried| carried.account.is_some()).map(|carried| carried.session);
        known
            .flat_map(|old| [SessionChange::Renew { old, new: former(old, hasher) }, SessionChange::Forget(old)])
            .collect()
    }

    /// The sessions that a request has which sends this cookie back.
    fn sessions_of(
        &self,
        carrier: &SessionCarrier,
        cookie: &AnsweredCookie<'_>,
        hasher: &KeyHasher,
    ) -> SmallVec<[KeyHash; 2]> {
        if !is_named(carrier, cookie.name) || cookie.value.len() > MAX_VALUE {
            return SmallVec::new();
        }
        let line = [cookie.name, b"=", cookie.value].concat();
        self.read_again(carrier, &Fields::from_iter([(KnownName::COOKIE, line)]), hasher)
    }

    fn read_again(&self, carrier: &SessionCarrier, request: &Fields, hasher: &KeyHasher) -> SmallVec<[KeyHash; 2]> {
        let mut sessions = SmallVec::new();
        each_value(carrier, request, &mut |_, value| {
            sessions.extend(session(carrier, &value, hasher));
        });
        sessions
    }
}

/// The hash that stands for a session that has ended.
pub(super) fn former(session: KeyHash, hasher: &KeyHasher) -> KeyHash {
    hasher.rehash(session)
}

/// The account of a key whose parts are the values that name it. The same account on every route that names it by the same
/// values.
pub fn account(key: &Key, hasher: &KeyHasher) -> KeyHash {
    hasher.hash(ACCOUNTS, key)
}

/// No limit has names like these: names have no space.
const ACCOUNTS: &str = "accounts of sessions";

const SESSIONS: &str = "sessions of accounts";

/// Calls `found` with every value that a carrier has in a request, in each of its readings, and with its name as sent.
fn each_value<'r>(carrier: &'r SessionCarrier, fields: &'r Fields, found: &mut dyn FnMut(&[u8], Cow<'r, str>)) {
    match &carrier.cookies {
        Some(CookieNames::One(name)) => cookie_values(fields, name).for_each(|value| found(name.as_bytes(), value)),
        Some(CookieNames::Like { names, .. }) => {
            cookie_values_like(fields, |name| names.matches(name)).for_each(|(name, value)| found(name, value));
        }
        None => bearer_tokens(fields).for_each(|token| found(b"", token)),
    }
}

/// Why an application may read a session from this carrier that the gateway has not found.
fn not_understood(carrier: &SessionCarrier, fields: &Fields) -> Option<NotUnderstood> {
    let judged = match &carrier.cookies {
        Some(CookieNames::One(name)) => judge_cookies(fields, name),
        Some(CookieNames::Like { text, names }) => judge_cookies(fields, text).and_then(|()| {
            let mut sent = cookie_values_like(fields, |name| names.matches(name)).map(|(name, _)| name);
            sent.try_for_each(|name| judge_cookies(fields, &String::from_utf8_lossy(name)))
        }),
        None => judge_bearer(fields),
    };
    judged.err()
}

/// Whether a request that sends back a cookie of this name has a value of this carrier.
fn is_named(carrier: &SessionCarrier, name: &[u8]) -> bool {
    match &carrier.cookies {
        Some(CookieNames::One(asked)) => is_cookie(name, asked),
        Some(CookieNames::Like { names, .. }) => is_cookie_like(name, |name| names.matches(name)),
        None => false,
    }
}

/// Distinguishes the cookies of a glob. Others have one name.
fn number_of(carrier: &SessionCarrier, name: &[u8], hasher: &KeyHasher) -> u64 {
    match carrier.cookies {
        Some(CookieNames::Like { .. }) => {
            let mut key = Key::default();
            key.push(name);
            hasher.item(&key)
        }
        Some(CookieNames::One(_)) | None => 0,
    }
}

/// The hash of a value of this carrier. `None`: it is no session.
fn session(carrier: &SessionCarrier, value: &str, hasher: &KeyHasher) -> Option<KeyHash> {
    if value.is_empty() || value.len() > MAX_VALUE {
        return None;
    }
    let mut key = Key::default();
    match &carrier.cookies {
        Some(CookieNames::One(text) | CookieNames::Like { text, .. }) => key.push(text.as_bytes()),
        None => key.push(b""),
    }
    key.push(value.as_bytes());
    Some(hasher.hash(SESSIONS, &key))
}
