//! A request that is denied: why, by which limit, and what happens besides.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use smallvec::{SmallVec, smallvec};

use super::enter::ListChallenge;
use super::{LimitReports, PendingOutcome, Policy};
use crate::rules::decision::plan::PlannedCharges;
use crate::rules::decision::{FoundKey, Grounds, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Action, ActionSeverity, DenyResponse, Detail, Limit, LimitId, Standing, Standings};
use crate::rules::route::RouteId;
use crate::words::pool::pool_of;

/// A request that the gateway answers itself.
#[derive(Clone, Debug)]
pub struct Denial {
    pub route: Option<RouteId>,
    pub cause: DenialCause,
    /// The limit that decided. Of the limits that deny, the severest decides, then the one with the longest wait, then
    /// the first. Missing parts of a key have the longest wait, because no wait helps.
    pub limit: Option<LimitId>,
    /// The key that this limit counts the request under.
    pub key: Option<KeyHash>,
    /// How long until this limit lets the request pass. `None`: no wait helps. Zero for a ban that begins.
    pub wait: Option<Duration>,
    /// The penalty of the limit that decided, besides denying.
    pub penalty: Penalty,
    /// The bans that begin with this denial.
    pub new_bans: SmallVec<[NewBan; 1]>,
    /// Whether the limit that decided bans as soon as it is certain that its reservations are not given back. The
    /// gateway sets this.
    pub is_suspect: bool,
    /// Slots that shadow limits took, as if each were the only limit in force. They are to be given back at once.
    pub slots: SmallVec<[KeyHash; 2]>,
    /// The charges of shadow limits that count by outcome. A denied request has no outcome.
    pub pending: Option<Box<PendingOutcome>>,
    pub report: LimitReports,
    /// Every limit that the request met.
    pub met: SmallVec<[MetLimit; 2]>,
}

pool_of!(Denial);

/// The penalty of a limit, besides denying.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Penalty {
    #[default]
    None,
    /// The key is banned, before this request or from now on.
    Ban,
    /// The answer is held for this long.
    Tarpit(Duration),
    /// The answer is a page. Its proof of work resets this key.
    Challenge(KeyHash),
}

/// A ban that begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NewBan {
    /// Its action is [`Action::Ban`].
    pub limit: LimitId,
    pub key: KeyHash,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq)]
pub enum DenialCause {
    /// The client is on a deny list: 403.
    Listed { list: Arc<str> },
    /// A list denies the client until it has met a challenge.
    Challenged(ListChallenge),
    /// The address of the client is banned: 403.
    Banned,
    /// `only` names no list with this client: 403.
    NotOnList,
    /// The client sent a field too often: 400.
    TooManyValues,
    /// The route of a domain denies one of the descriptors, without counting.
    DeniedDescriptor,
    /// Limits deny it, in the order of the configuration. `retry_after` is the longest wait that their `headers` may
    /// show. It is zero where a part of the key is missing or a ban begins. `None`: no limit shows a wait.
    Limited { limits: SmallVec<[LimitId; 2]>, retry_after: Option<Duration> },
}

impl Denial {
    /// Denied by the limit that would have delayed the request for `span`; after that the client may retry.
    /// Reservations and reports of the request stay with the caller.
    pub fn instead_of_delay(policy: &Policy, route: Option<RouteId>, limit: LimitId, span: Duration) -> Self {
        let retry_after = (policy.limit(limit).headers != Detail::None).then_some(span);
        let cause = DenialCause::Limited { limits: smallvec![limit], retry_after };
        Self { limit: Some(limit), wait: Some(span), ..Self::bare(route, cause) }
    }

    /// The response to send: the limit's, else the route's, else the general one. They are not merged: the built-in
    /// response fills what the chosen one leaves open.
    pub fn response<'p>(&self, policy: &'p Policy) -> &'p DenyResponse {
        if !matches!(self.cause, DenialCause::Limited { .. }) {
            return &policy.deny_response;
        }
        if let Some(Action::Deny(Some(own))) = self.limit.map(|limit| &policy.limit(limit).then.action) {
            return own;
        }
        let of_route = self.route.and_then(|route| policy.routes.get(route).deny_response.as_deref());
        of_route.unwrap_or(&policy.deny_response)
    }

    /// A denial with a cause and nothing else.
    pub(super) fn bare(route: Option<RouteId>, cause: DenialCause) -> Self {
        let penalty = match &cause {
            DenialCause::Challenged(challenge) => Penalty::Challenge(challenge.key),
            _ => Penalty::None,
        };
        Self {
            route,
            cause,
            limit: None,
            key: None,
            wait: None,
            penalty,
            new_bans: SmallVec::new(),
            is_suspect: false,
            slots: SmallVec::new(),
            pending: None,
            report: LimitReports::default(),
            met: SmallVec::new(),
        }
    }
}

// How one limit decided on a request that was denied or held.

/// A limit that a denied or held request met. Its key is a hash for the decision, and readable where the request is kept for
/// operators.
#[derive(Clone, Debug, PartialEq)]
pub struct MetLimit<K = KeyHash> {
    pub limit: LimitId,
    /// The key that it denies, or else the one with the least left. `None`: a part of the key is missing, and the limit
    /// denies such requests.
    pub key: Option<K>,
    /// The action of the limit. `None`: it lets the request pass. A shadow limit does not act.
    pub applied: Option<ActionSeverity>,
    /// Where the key stands, one standing for each rate. Empty where that is not known, and for `concurrent`.
    pub standings: Standings,
    /// What it was decided by. Only a count tells where the key stands.
    pub grounds: Grounds,
}

// How one limit decided, over all keys that it counts a request under.

/// How one limit decided, over all keys that it counts a request under.
#[derive(Clone, Copy)]
pub(super) struct LimitRuling<'p, 'v> {
    pub(super) id: LimitId,
    pub(super) limit: &'p Limit,
    /// `None`: it lets the request pass.
    pub(super) denies: Option<RetryWait>,
    /// Denies without counting: a part of the key is missing.
    outright: bool,
    /// Whether the request has the whole key.
    pub(super) found: FoundKey,
    /// Denies without counting: the key was banned before this request.
    banned: bool,
    /// The key that denies it, for a ban or a challenge.
    pub(super) key: Option<KeyHash>,
    /// The key with the least left, where one was counted.
    pub(super) tightest: Option<KeyHash>,
    /// Where the key with the least left stands; empty where no key was counted.
    pub(super) standings: &'v [Standing],
    /// Of the verdict on the key that denies it, else of the one with the least left.
    grounds: Grounds,
}

/// How long until a limit would let a request pass, shortest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum RetryWait {
    For(Duration),
    Forever,
}

impl RetryWait {
    pub(super) fn span(self) -> Option<Duration> {
        match self {
            Self::For(span) => Some(span),
            Self::Forever => None,
        }
    }
}

impl<'p, 'v> LimitRuling<'p, 'v> {
    /// How the limit at this position of the plan decided. `next` is the position of its first charge, and becomes the
    /// position of the next limit's first charge. `None`: the limit has no key.
    pub(super) fn of(
        policy: &'p Policy,
        charges: &PlannedCharges<'_>,
        number: usize,
        verdicts: &'v [Verdict],
        next: &mut usize,
    ) -> Option<Self> {
        let planned = &charges.limits[number];
        let ban = charges.ban_of(number);
        let (outright, banned) = (planned.outright, ban.is_some());
        let mut denies = if outright { Some(RetryWait::Forever) } else { ban.map(|ban| RetryWait::For(ban.left)) };
        let mut key = ban.map(|ban| ban.key);
        let mut tightest: Option<(KeyHash, &Verdict)> = None;
        let mut denied_by = None;
        let charges = &charges.batch.charges;
        while let (Some(charge), Some(verdict)) = (charges.get(*next), verdicts.get(*next))
            && usize::from(charge.limit) == number
        {
            *next += 1;
            if verdict.is_exempt {
                continue;
            }
            // Requests that were counted since do not change the length of a ban.
            if let Some(wait) = verdict.retry_after.map(RetryWait::For).filter(|_| !banned) {
                if key.is_none() || denies.is_none_or(|longest| wait > longest) {
                    (key, denied_by) = (Some(charge.key), Some(verdict.grounds));
                }
                denies = denies.max(Some(wait));
            }
            if tightest.is_none_or(|(_, so_far)| left(verdict) < left(so_far)) {
                tightest = Some((charge.key, verdict));
            }
        }
        if denies.is_none() && tightest.is_none() {
            return None;
        }
        let standings = tightest.map_or(&[][..], |(_, verdict)| &verdict.standings);
        let grounds = denied_by.or(tightest.map(|(_, verdict)| verdict.grounds)).unwrap_or_default();
        let tightest = tightest.map(|(key, _)| key);
        let limit = policy.limit(planned.limit);
        let found = planned.found;
        Some(Self { id: planned.limit, limit, denies, outright, found, banned, key, tightest, standings, grounds })
    }

    /// Whether it denies the request. Shadow limits deny nothing, and a limit that delays denies only what it does not
    /// count.
    pub(super) fn denies_request(&self) -> bool {
        let delays = matches!(self.limit.then.action, Action::Delay(_));
        self.denies.is_some() && !self.limit.shadow && (self.outright || self.banned || !delays)
    }

    /// For how long it delays the request.
    pub(super) fn delay(&self) -> Option<Duration> {
        match self.limit.then.action {
            Action::Delay(span) if self.denies.is_some() && !self.limit.shadow => Some(span),
            _ => None,
        }
    }

    /// The limit with the highest rank decides: the severest denial, then the longest wait.
    pub(super) fn rank(&self) -> (Option<ActionSeverity>, Option<RetryWait>) {
        (self.applied(), self.denies)
    }

    /// The action of the limit. `None`: it lets the request pass. A shadow limit does not act.
    pub(super) fn applied(&self) -> Option<ActionSeverity> {
        self.denies?;
        Some(match &self.limit.then.action {
            _ if self.outright => ActionSeverity::Deny,
            _ if self.banned => ActionSeverity::Ban,
            action => action.severity(),
        })
    }

    /// How long it says to wait. For a ban that begins with this request it is zero: the gateway begins the ban and
    /// knows its length.
    pub(super) fn wait(&self) -> Option<RetryWait> {
        let begins = matches!(self.limit.then.action, Action::Ban(_)) && !self.banned;
        self.denies.map(|wait| match wait {
            RetryWait::For(_) if begins => RetryWait::For(Duration::ZERO),
            wait => wait,
        })
    }

    /// For the story of a request that is denied or held.
    pub(super) fn met(&self) -> MetLimit {
        MetLimit {
            limit: self.id,
            key: self.key.or(self.tightest),
            applied: self.applied(),
            standings: match self.grounds {
                Grounds::Count => Standings::from_slice(self.standings),
                Grounds::StoreFull | Grounds::Part => Standings::new(),
            },
            grounds: self.grounds,
        }
    }

    pub(super) fn penalty(&self) -> Penalty {
        match (&self.limit.then.action, self.key) {
            _ if self.outright => Penalty::None,
            _ if self.banned => Penalty::Ban,
            (Action::Ban(_), _) => Penalty::Ban,
            (Action::Tarpit(span), _) => Penalty::Tarpit(*span),
            (Action::Challenge, Some(key)) => Penalty::Challenge(key),
            _ => Penalty::None,
        }
    }
}

/// Orders the keys of one limit: the one with the least left comes first.
fn left(verdict: &Verdict) -> (u64, Reverse<Option<Duration>>) {
    let remaining = verdict.standings.iter().map(|standing| standing.remaining).min();
    (remaining.unwrap_or(u64::MAX), Reverse(verdict.retry_after))
}
