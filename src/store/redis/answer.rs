//! What the scripts answer.

use std::time::Duration;

use redis::Value;

use super::Ruling;
use crate::clock::Timestamp;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::limit::Rule;
use crate::limit::Standing;
use crate::limit::state::Standings;

/// Reads the answer to a group, in its order; `None`: that was no answer of our script.
pub fn read(value: &Value, charges: &[&Charge<'_>]) -> Option<Vec<Ruling>> {
    let Value::Array(numbers) = value else { return None };
    let mut numbers = numbers.iter().map(|number| match number {
        Value::Int(number) => Some(*number),
        _ => None,
    });
    let mut next = || numbers.next().flatten();
    let decided = Timestamp::from_micros(u64::try_from(next()?).ok()?);
    let mut rulings = Vec::with_capacity(charges.len());
    for charge in charges {
        let retry_after = span(next()?);
        let charged = span(next()?).map(|later| decided + later);
        let rates = match charge.rule {
            Rule::Concurrent(_) => 0,
            Rule::Rates { rates, .. } => rates.as_slice().len(),
        };
        let mut standings = Standings::new();
        for _ in 0..rates {
            standings.push(Standing { remaining: u64::try_from(next()?).ok()?, reset: span(next()?)? });
        }
        rulings.push(Ruling { verdict: Verdict { retry_after, standings }, charged });
    }
    numbers.next().is_none().then_some(rulings)
}

/// Microseconds; below zero there are none.
fn span(micros: i64) -> Option<Duration> {
    u64::try_from(micros).ok().map(Duration::from_micros)
}
