//! What may be forgotten when there is no room: what expired, then what binds least, never what is refusing.

use std::time::Duration;

use super::shard::Full;
use super::shard::Seconds;
use super::shard::Shard;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::limit::Rule;
use crate::limit::State;
use crate::limit::state::Standings;

/// How much a key binds someone, as of its last charge: how much of its budget is left, or until when it refuses.
///
/// One number: below [`Hold::MOST_LEFT`] that share of the budget, above it the second until which it refuses, and the
/// largest for requests in flight, whose end nobody knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Hold(u32);

impl Hold {
    /// The whole budget.
    const MOST_LEFT: u32 = 0xffff;
    const IN_FLIGHT: Self = Self(u32::MAX);

    pub(super) fn of(state: &State, rule: &Rule, standings: &Standings, now: Timestamp) -> Self {
        let Rule::Rates { rates, cost, .. } = rule else {
            return if state.in_flight() > 0 { Self::IN_FLIGHT } else { Self::default() };
        };
        let exhausted = standings.iter().any(|standing| standing.remaining < u64::from(cost.get()));
        if exhausted && let Some(opens) = state.opens_at(rule, now) {
            return Self::refusing_until(opens);
        }
        let shares = standings.iter().zip(rates).map(|(standing, rate)| {
            // A burst may leave more than the count.
            standing.remaining.min(u64::from(u32::MAX)) * u64::from(Self::MOST_LEFT) / u64::from(rate.count.get())
        });
        Self::left(shares.min().unwrap_or_default())
    }

    fn left(share: u64) -> Self {
        Self(u32::try_from(share).unwrap_or(u32::MAX).min(Self::MOST_LEFT))
    }

    pub(super) fn refusing_until(opens: Timestamp) -> Self {
        // One below the largest, which is for requests in flight.
        Self(Seconds::after(opens).0.saturating_add(Self::MOST_LEFT + 1).min(u32::MAX - 1))
    }

    /// Whether forgetting the key would free someone who is being refused, or lose a request in flight.
    pub(super) fn binds(self, now: Seconds) -> bool {
        self == Self::IN_FLIGHT || self.ends().is_some_and(|end| end > now)
    }

    /// Until when it refuses; `None` where it does not, or nobody knows.
    fn ends(self) -> Option<Seconds> {
        let known = self != Self::IN_FLIGHT;
        known.then(|| self.0.checked_sub(Self::MOST_LEFT + 1)).flatten().map(Seconds)
    }

    /// What was left of the budget; nothing where it refused, though it may do so no longer.
    pub(super) fn share_left(self) -> u32 {
        if self.0 <= Self::MOST_LEFT { self.0 } else { 0 }
    }
}

impl Default for Hold {
    /// Nothing was charged: it binds nobody.
    fn default() -> Self {
        Self(Self::MOST_LEFT)
    }
}

impl Shard {
    /// The place of a key that may go: expired, or else the one with the most of its budget left of those looked at.
    pub(super) fn victim(&mut self, batch: &Batch<'_>, now: Timestamp) -> Result<usize, Full> {
        let second = Seconds::before(now);
        if second < self.full_until {
            return Err(Full::until(self.full_until, now));
        }
        let len = self.entries.len();
        let mut loosest: Option<(u32, usize)> = None;
        for look in 0..LOOKS {
            let place = match look {
                0 => self.newest,
                look if look % 2 == 0 => fastrand::usize(..len.max(1)),
                _ => self.advance(),
            };
            let Some(entry) = self.entries.get(place) else { continue };
            if entry.hold.binds(second) || entry.is_in(batch) {
                continue;
            }
            if entry.expires <= second {
                return Ok(place);
            }
            let left = entry.hold.share_left();
            if loosest.is_none_or(|(most, _)| left > most) {
                loosest = Some((left, place));
            }
        }
        match loosest {
            Some((_, place)) => Ok(place),
            None => self.search(batch, now),
        }
    }

    /// Looks through all keys for one that may go. When there is none, it is not looked for again before the first of
    /// them stops refusing, or is given back.
    fn search(&mut self, batch: &Batch<'_>, now: Timestamp) -> Result<usize, Full> {
        let second = Seconds::before(now);
        let mut first_end = Seconds::NEVER;
        let mut spared = false;
        for _ in 0..self.entries.len() {
            let place = self.advance();
            let entry = &self.entries[place];
            if entry.hold.binds(second) {
                first_end = first_end.min(entry.hold.ends().unwrap_or(Seconds::NEVER));
            } else if entry.is_in(batch) {
                spared = true;
            } else {
                return Ok(place);
            }
        }
        if !spared {
            self.full_until = first_end;
        }
        Err(Full::until(first_end, now))
    }

    /// Forgets what expired among the next few keys for each of the `admitted` ones. So memory follows the number of
    /// keys that matter, without a walk over all of them.
    pub(super) fn sweep(&mut self, now: Timestamp, admitted: usize) {
        let second = Seconds::before(now);
        for _ in 0..SWEPT_FOR_EACH * admitted {
            let place = self.advance();
            if self.entries.get(place).is_some_and(|entry| entry.expires <= second) {
                self.forget(place);
            }
        }
    }

    /// The next place in turn.
    fn advance(&mut self) -> usize {
        let place = if self.cursor < self.entries.len() { self.cursor } else { 0 };
        self.cursor = place + 1;
        place
    }
}

impl Full {
    /// A client is asked to come back when the first key stops refusing, in a second where nobody knows.
    fn until(end: Seconds, now: Timestamp) -> Self {
        let wait = if end == Seconds::NEVER { Duration::ZERO } else { end.begins().since(now) };
        Self { retry_after: wait.max(Duration::from_secs(1)) }
    }
}

/// How many keys are looked at for each one to forget, half of them in turn and half at random. With as few as this
/// the one chosen is among the loosest tenth five times in six.
const LOOKS: usize = 17;

/// More than one key is swept for each one that is admitted, or what expired would never be caught up with.
const SWEPT_FOR_EACH: usize = 2;
