//! How one limit decided, over all keys that it counts a request under.

use std::cmp::Reverse;
use std::time::Duration;

use super::FoundKey;
use super::MetLimit;
use super::Penalty;
use super::Policy;
use super::Verdict;
use super::charges::PlannedCharges;
use crate::key::KeyHash;
use crate::limit::Action;
use crate::limit::ActionSeverity;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Standing;
use crate::limit::Standings;

/// How one limit decided, over all keys that it counts a request under.
#[derive(Clone, Copy)]
pub(super) struct LimitRuling<'p, 'v> {
    pub(super) id: LimitId,
    pub(super) limit: &'p Limit,
    /// `None`: it lets the request pass.
    pub(super) denies: Option<RetryWait>,
    /// Denies without counting: a part of the key is missing.
    outright: bool,
    /// What the request has of the key.
    pub(super) found: FoundKey,
    /// Denies without counting: the key was banned before this request.
    banned: bool,
    /// The key that denies it, for a ban or a challenge.
    pub(super) key: Option<KeyHash>,
    /// The key with the least left, where one was counted.
    pub(super) tightest: Option<KeyHash>,
    /// Where the key with the least left stands; empty where no key was counted.
    pub(super) standings: &'v [Standing],
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
    /// How the limit at this position of the plan decided. `next` is the position of its first charge, and becomes that
    /// of the first charge of the next limit. `None`: it holds for no key.
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
        let charges = &charges.batch.charges;
        while let (Some(charge), Some(verdict)) = (charges.get(*next), verdicts.get(*next))
            && usize::from(charge.limit) == number
        {
            *next += 1;
            if verdict.is_exempt {
                continue;
            }
            // The length of a ban does not depend on what was counted since.
            if let Some(wait) = verdict.retry_after.map(RetryWait::For).filter(|_| !banned) {
                if key.is_none() || denies.is_none_or(|longest| wait > longest) {
                    key = Some(charge.key);
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
        let tightest = tightest.map(|(key, _)| key);
        let limit = policy.limit(planned.limit);
        let found = planned.found;
        Some(Self { id: planned.limit, limit, denies, outright, found, banned, key, tightest, standings })
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

    /// The limit with the highest rank decides: the severest of those that deny, then the one with the longest wait.
    pub(super) fn rank(&self) -> (Option<ActionSeverity>, Option<RetryWait>) {
        (self.applied(), self.denies)
    }

    /// What it does to the request. `None`: it lets it pass. A shadow limit only would.
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
            standings: Standings::from_slice(self.standings),
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
