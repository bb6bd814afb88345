//! The sessions that a request carries, whose they are, and what an answer makes of them.

use std::borrow::Cow;
use std::time::Duration;

use smallvec::SmallVec;

use super::{Policy, SessionChange, SessionHashes};
use crate::rules::key::{Key, KeyHash, KeyHasher, UserMark};
use crate::rules::outcome::set_cookie::{AnsweredCookie, answered, any_named};
use crate::rules::request::head::{bearer_tokens, judge_bearer};
use crate::rules::request::query::{cookie_values, cookie_values_like, is_cookie, is_cookie_like, judge_cookies};
use crate::rules::request::{CanonicalHead, NotUnderstood};
use crate::rules::route::{CookieNames, SessionCarrier, SessionRule};
use crate::wire::head::{Fields, KnownName};
use crate::words::base64;
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

/// A value that may be a session, and an account that it is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct CarriedSession {
    value: KeyHash,
    /// The hash that stands for the value as a session of this account: that of the value, for the first account.
    session: KeyHash,
    /// The position of its carrier in the policy.
    carrier: u16,
    /// Distinguishes the cookies of one glob.
    name: u64,
    account: Option<KeyHash>,
    /// It was a session of the account, and proves nothing any more.
    has_ended: bool,
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

/// A session is of at most so many accounts.
const MAX_ACCOUNTS: usize = 16;

impl CarriedSessions {
    /// Reads a request. `lookup` says whose a session is. In a box, which goes with the request.
    pub fn read(
        policy: &Policy,
        head: &CanonicalHead<'_>,
        hasher: &KeyHasher,
        lookup: impl Fn(KeyHash) -> Option<KeyHash>,
    ) -> Box<Self> {
        let mut carried = Box::<Self>::default();
        for (number, carrier) in (0..).zip(policy.session_carriers.iter()) {
            let mut unread = not_understood(carrier, head.fields);
            let mut left = MAX_READINGS;
            let mut take = |name: &[u8], value: Cow<'_, str>| {
                // No browser sends so long a cookie, but applications read it.
                let is_too_long = value.len() > MAX_VALUE && carrier.cookies.is_some();
                let Some(less) = left.checked_sub(1).filter(|_| !is_too_long) else {
                    unread = Some(NotUnderstood::Cookies);
                    return;
                };
                left = less;
                let name = number_of(carrier, name, hasher);
                for session in readings(carrier, &value, hasher) {
                    let (account, has_ended) = (None, false);
                    let found = CarriedSession { value: session, session, carrier: number, name, account, has_ended };
                    if carried.sessions().any(|known| known == session) {
                        continue;
                    }
                    // A part of a session is none: nothing else is read of a value that is one.
                    if carried.look_up(found, hasher, &lookup) {
                        break;
                    }
                }
            };
            each_value(carrier, head.fields, &mut take);
            if let Some(CookieNames::One(name)) = &carrier.cookies {
                head.query.path_parameters(name).for_each(|value| take(name.as_bytes(), value.into()));
            }
            carried.unread = carried.unread.or(unread);
        }
        carried
    }

    /// Adds a value with every account that it is of, or with the one that it was of. Returns whether there is any.
    fn look_up(
        &mut self,
        value: CarriedSession,
        hasher: &KeyHasher,
        lookup: impl Fn(KeyHash) -> Option<KeyHash>,
    ) -> bool {
        let mut carried = CarriedSession { account: lookup(value.session), ..value };
        if carried.account.is_none() {
            let account = lookup(former(value.session, hasher));
            self.found.push(CarriedSession { account, has_ended: account.is_some(), ..value });
            return account.is_some();
        }
        for _ in 0..MAX_ACCOUNTS {
            let Some(account) = carried.account else { break };
            let mark = UserMark::of(account);
            if !self.users.contains(&mark) {
                self.users.push(mark);
            }
            self.found.push(carried);
            carried.session = beside(carried.session, hasher);
            carried.account = lookup(carried.session);
        }
        true
    }

    /// The accounts of the sessions, each once.
    pub fn users(&self) -> &[UserMark] {
        &self.users
    }

    /// Why the request may carry other sessions, too.
    pub fn unread(&self) -> Option<NotUnderstood> {
        self.unread
    }

    /// Whether what an answer sets may be somebody's: the request carries a session of an account, also one that has ended,
    /// or may carry one.
    pub fn may_be_of_somebody(&self) -> bool {
        self.unread.is_some() || self.found.iter().any(|carried| carried.account.is_some())
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
    /// same accounts, and a deleted cookie ends its session. An answer that does both, in any order, has an heir of the
    /// session that it ends; one that it sets again has not ended. `now` is the moment of the answer by the wall clock.
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
        let mut set = SessionHashes::new();
        for carrier in policy.session_carriers.iter() {
            for cookie in answered(answer, now).filter(|cookie| !cookie.is_deleted) {
                set.extend(sessions_of(carrier, &cookie, hasher));
            }
        }
        for new in set.iter().filter(|new| !self.sessions().any(|known| known == **new)) {
            self.inherit(*new, policy, hasher, &mut changes);
        }
        for (number, carrier) in (0..).zip(policy.session_carriers.iter()) {
            for cookie in answered(answer, now).filter(|cookie| cookie.is_deleted) {
                changes.extend(self.ended(number, carrier, &cookie, &set, hasher));
            }
        }
        changes
    }

    /// Makes a new value a session of every account that the request carries a session of. Where it carries none, but one
    /// that has ended or perhaps one that was not looked up, the new value is as one that has ended: nobody's, and no
    /// request with it makes a success of another account.
    fn inherit(&self, new: KeyHash, policy: &Policy, hasher: &KeyHasher, changes: &mut SmallVec<[SessionChange; 2]>) {
        let (mut renewed, mut accounts) = (new, SmallVec::<[KeyHash; 1]>::new());
        for carried in self.found.iter().filter(|carried| !carried.has_ended) {
            if let Some(account) = carried.account
                && !accounts.contains(&account)
                && accounts.len() < MAX_ACCOUNTS
            {
                changes.push(SessionChange::Renew { old: carried.session, new: renewed });
                renewed = beside(renewed, hasher);
                accounts.push(account);
            }
        }
        if !accounts.is_empty() {
            return;
        }
        let new = former(new, hasher);
        if let Some(ended) = self.found.iter().find(|carried| carried.has_ended) {
            changes.push(SessionChange::Renew { old: former(ended.session, hasher), new });
        } else if self.unread.is_some()
            && let Some(keep) = longest_keep(policy)
        {
            changes.push(SessionChange::Learn { session: new, account: unread_account(hasher), keep });
        }
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
                self.gain(&mut gained, &sessions_of(carrier, &cookie, hasher));
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
                self.gain(gained, &sessions_in(&request, carrier, hasher));
                gained.has_fresh |= !token.is_empty();
            }
        }
    }

    fn gain(&self, gained: &mut GainedSessions, sessions: &[KeyHash]) {
        let is_carried = |session: &KeyHash| self.sessions().any(|known| known == *session);
        gained.has_fresh |= !sessions.is_empty() && !sessions.iter().any(is_carried);
        gained.sessions.extend(sessions.iter().copied());
    }

    /// The sessions that a deleted cookie ends, but for those that the answer sets. A session that has ended no longer
    /// proves an account. A request that still carries it cannot make a success of another account: an application may
    /// accept a session that it has deleted, and only an attacker sends it.
    fn ended(
        &self,
        number: u16,
        carrier: &SessionCarrier,
        cookie: &AnsweredCookie<'_>,
        set: &[KeyHash],
        hasher: &KeyHasher,
    ) -> SmallVec<[SessionChange; 2]> {
        if !is_named(carrier, cookie.name) {
            return SmallVec::new();
        }
        let name = number_of(carrier, cookie.name, hasher);
        let ended = self.found.iter().filter(|carried| carried.carrier == number && carried.name == name);
        let known = ended.filter(|carried| carried.account.is_some() && !carried.has_ended);
        known
            .filter(|carried| !set.contains(&carried.value))
            .map(|carried| carried.session)
            .flat_map(|old| [SessionChange::Renew { old, new: former(old, hasher) }, SessionChange::Forget(old)])
            .collect()
    }
}

/// The sessions that a request has which sends this cookie back.
fn sessions_of(carrier: &SessionCarrier, cookie: &AnsweredCookie<'_>, hasher: &KeyHasher) -> SessionHashes {
    if !is_named(carrier, cookie.name) || cookie.value.len() > MAX_VALUE {
        return SessionHashes::new();
    }
    let line = [cookie.name, b"=", cookie.value].concat();
    sessions_in(&Fields::from_iter([(KnownName::COOKIE, line)]), carrier, hasher)
}

/// The sessions that a request has in this carrier.
fn sessions_in(request: &Fields, carrier: &SessionCarrier, hasher: &KeyHasher) -> SessionHashes {
    let mut sessions = SessionHashes::new();
    each_value(carrier, request, &mut |_, value| sessions.extend(session(carrier, &value, hasher)));
    sessions
}

/// The hash that stands for a session that has ended.
pub(super) fn former(session: KeyHash, hasher: &KeyHasher) -> KeyHash {
    hasher.rehash(session)
}

/// The hash that stands for a session of a second account, beside the account of this hash.
fn beside(session: KeyHash, hasher: &KeyHasher) -> KeyHash {
    hasher.rehash(former(session, hasher))
}

/// How long sessions of any route are remembered at most.
fn longest_keep(policy: &Policy) -> Option<Duration> {
    policy.routes.all().iter().filter_map(|route| route.sessions.as_ref()).map(|rule| rule.keep).max()
}

/// Stands for accounts that are not known: of sessions that were not looked up, and of names in doubt. No name makes it.
pub(super) fn unread_account(hasher: &KeyHasher) -> KeyHash {
    account(&Key::default(), hasher)
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
    let is_one = !value.is_empty() && value.len() <= MAX_VALUE;
    is_one.then(|| hash(carrier, &base64::one_spelling(value), hasher))
}

/// The hashes of the values that an application may take this one for: applications that decode base64 take many spellings for
/// one session.
fn readings(carrier: &SessionCarrier, value: &str, hasher: &KeyHasher) -> impl Iterator<Item = KeyHash> {
    let first = session(carrier, value, hasher);
    let others = first.map(|_| std::iter::once_with(|| base64::other_spellings(value)).flatten());
    first.into_iter().chain(others.into_iter().flatten().map(move |other| hash(carrier, &other, hasher)))
}

fn hash(carrier: &SessionCarrier, value: &str, hasher: &KeyHasher) -> KeyHash {
    let mut key = Key::default();
    match &carrier.cookies {
        Some(CookieNames::One(text) | CookieNames::Like { text, .. }) => key.push(text.as_bytes()),
        None => key.push(b""),
    }
    key.push(value.as_bytes());
    hasher.hash(SESSIONS, &key)
}
