//! What may be forgotten when there is no room: what expired, then what binds least, never what is refusing.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use super::shard::Full;
use super::shard::Seconds;
use super::shard::Shard;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::limit::Rule;
use crate::limit::Standings;
use crate::limit::State;

/// How much a key binds someone, as of its last charge.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Hold {
    /// Until when it refuses; over long ago where it does not, never while requests are in flight.
    pub(super) ends: Seconds,
    /// The share of the budget that is left, or will be when it next has room, in 65536ths.
    pub(super) left: u32,
}

impl Hold {
    pub(super) fn of(state: &State, rule: &Rule, standings: &Standings, now: Timestamp) -> Self {
        let (rates, cost) = match rule {
            Rule::Rates { rates, cost, .. } => (rates, u64::from(cost.get())),
            Rule::Distinct(rates) => (rates, 1),
            Rule::Concurrent(_) => {
                let in_flight = Self { ends: Seconds::NEVER, left: 0 };
                return if state.in_flight() > 0 { in_flight } else { Self::default() };
            }
        };
        let exhausted = standings.iter().any(|standing| standing.remaining < cost);
        let opens = match rule {
            _ if !exhausted => None,
            // What refuses, refuses values that it has not seen.
            Rule::Distinct(_) => standings.iter().filter(|all| all.remaining == 0).map(|all| now + all.reset).max(),
            _ => state.opens_at(rule, &[], now),
        };
        let shares = standings.iter().zip(rates).map(|(standing, rate)| {
            // A burst may leave more than the count.
            let left = standing.remaining.max(cost).min(u64::from(u32::MAX));
            left * u64::from(WHOLE) / u64::from(rate.count.get())
        });
        let left = shares.min().and_then(|share| u32::try_from(share).ok()).unwrap_or(WHOLE);
        Self { ends: opens.map(end).unwrap_or_default(), left }
    }

    pub(super) fn refuse_until(&mut self, opens: Timestamp) {
        if self.ends != Seconds::NEVER {
            self.ends = end(opens);
        }
    }

    /// Whether forgetting the key would free someone who is being refused, or lose a request in flight.
    pub(super) fn binds(self, now: Seconds) -> bool {
        self.ends > now
    }
}

impl Default for Hold {
    /// Nothing was charged: it binds nobody.
    fn default() -> Self {
        Self { ends: Seconds::default(), left: WHOLE }
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
            let place = if look % 2 == 0 { self.advance() } else { fastrand::usize(..len.max(1)) };
            let Some(entry) = self.entries.get(place) else { continue };
            if entry.hold.binds(second) || entry.is_in(batch) {
                continue;
            }
            if entry.expires <= second {
                return Ok(place);
            }
            if loosest.is_none_or(|(most, _)| entry.hold.left > most) {
                loosest = Some((entry.hold.left, place));
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
        // Where nearly all are refusing, a flood's last key is often the only one that is not. It is not looked at
        // before: else two keys in turn would make each other forgotten, and be bound by no limit.
        if self.entries.get(self.newest).is_some_and(|entry| !entry.hold.binds(second) && !entry.is_in(batch)) {
            return Ok(self.newest);
        }
        let mut first_end = Seconds::NEVER;
        let mut spared = false;
        for _ in 0..self.entries.len() {
            let place = self.advance();
            let entry = &self.entries[place];
            if entry.hold.binds(second) {
                first_end = first_end.min(entry.hold.ends);
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

/// The end of a refusal. The last second of all is kept for requests in flight.
fn end(opens: Timestamp) -> Seconds {
    Seconds::after(opens).min(Seconds(u32::MAX - 1))
}

/// The whole budget.
const WHOLE: u32 = 1 << 16;

/// How many keys are looked at for each one to forget, half of them in turn and half at random. With as few as this
/// the one chosen is among the loosest tenth four times in five.
const LOOKS: usize = 16;

/// More than one key is swept for each one that is admitted, or what expired would never be caught up with.
const SWEPT_FOR_EACH: usize = 2;
