//! Whether a key surely has room in Redis, as far as this process knows.

use super::store::Failover;
use crate::decision::Charge;
use crate::limit::Algorithm;
use crate::limit::Rule;
use crate::store::resets;

/// A key has room for sure while one part in so many, at least, is not used by this process.
const PARTS: u64 = 2;

impl Failover {
    /// Whether Redis has room for the charge, as far as is known here: half of each rate, at least, is not used by this process. A
    /// mistake is harmless: the charge is given back.
    pub(super) fn surely_has_room(&self, charge: &Charge<'_>) -> bool {
        let key = resets::local_key(charge.key);
        let counted = self.local.look_at(&Charge { key, ..charge.clone() });
        let most = capacities(charge.rule);
        counted.passes()
            && counted.standings.iter().zip(most).all(|(standing, most)| standing.remaining * PARTS >= most)
    }
}

/// How many units each rate has.
fn capacities(rule: &Rule) -> Vec<u64> {
    match rule {
        Rule::Concurrent(most) => vec![u64::from(most.get())],
        Rule::Rates { algorithm: Algorithm::TokenBucket { burst: Some(burst) }, .. } => vec![u64::from(burst.get())],
        Rule::Distinct(rates) | Rule::Rates { rates, .. } => {
            rates.iter().map(|rate| u64::from(rate.count.get())).collect()
        }
    }
}
