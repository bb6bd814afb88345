//! How much would be lost if a key were evicted.

use serde::Deserialize;
use serde::Serialize;

use super::seconds::Seconds;
use crate::clock::Timestamp;
use crate::limit::Rule;
use crate::limit::Standings;
use crate::limit::State;

/// How much would be lost if a key were evicted, as of its last charge.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct EvictionRank {
    /// Until when the key refuses requests: long ago if it refuses none, [`Seconds::NEVER`] while requests are in
    /// flight.
    pub(super) refuses_until: Seconds,
    /// The share of the budget that is left, or will be when it next has room, in 65536ths.
    pub(super) left: u32,
}

impl EvictionRank {
    pub(super) fn of(state: &State, rule: &Rule, standings: &Standings, now: Timestamp) -> Self {
        let (rates, cost) = match rule {
            Rule::Rates { rates, cost, .. } => (rates, u64::from(cost.get())),
            Rule::Distinct(rates) => (rates, 1),
            Rule::Concurrent(_) => {
                let in_flight = Self { refuses_until: Seconds::NEVER, left: 0 };
                return if state.in_flight() > 0 { in_flight } else { Self::default() };
            }
        };
        let exhausted = standings.iter().any(|standing| standing.remaining < cost);
        let opens = match rule {
            _ if !exhausted => None,
            // A limit on distinct values refuses only values that it has not seen.
            Rule::Distinct(_) => standings.iter().filter(|all| all.remaining == 0).map(|all| now + all.reset).max(),
            _ => state.opens_at(rule, &[], now),
        };
        let shares = standings.iter().zip(rates).map(|(standing, rate)| {
            // A burst may leave more than the count.
            let left = standing.remaining.max(cost).min(u64::from(u32::MAX));
            left * u64::from(WHOLE) / u64::from(rate.count.get())
        });
        let left = shares.min().and_then(|share| u32::try_from(share).ok()).unwrap_or(WHOLE);
        Self { refuses_until: opens.map(end_of_refusal).unwrap_or_default(), left }
    }

    pub(super) fn refuse_until(&mut self, opens: Timestamp) {
        if self.refuses_until != Seconds::NEVER {
            self.refuses_until = end_of_refusal(opens);
        }
    }

    /// Whether the key must stay: it refuses requests now, or has requests in flight.
    pub(super) fn must_stay(self, now: Seconds) -> bool {
        self.refuses_until > now
    }
}

impl Default for EvictionRank {
    /// Of a key that has counted nothing.
    fn default() -> Self {
        Self { refuses_until: Seconds::default(), left: WHOLE }
    }
}

/// The end of a refusal. The last second of all is kept for requests in flight.
fn end_of_refusal(opens: Timestamp) -> Seconds {
    Seconds::after(opens).min(Seconds(u32::MAX - 1))
}

/// The whole budget.
const WHOLE: u32 = 1 << 16;
