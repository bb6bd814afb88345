//! Which charges of a batch are to be given back, and the verdicts without them.

use std::time::Duration;

use smallvec::SmallVec;

use super::decided::is_charged;
use crate::decision::Batch;
use crate::decision::Verdict;
use crate::limit::Algorithm;
use crate::limit::Rule;
use crate::limit::Standings;

/// The places whose charge is to be given back, because a charge that they pass together with is denied.
pub(super) fn to_return(batch: &Batch<'_>, verdicts: &[Option<Verdict>]) -> Vec<usize> {
    let is_refused = |place: &usize| verdicts[*place].as_ref().is_some_and(|verdict| !verdict.passes());
    let refused: SmallVec<[usize; 4]> = (0..verdicts.len()).filter(is_refused).collect();
    let is_in_vain = |place: &usize| {
        let charge = &batch.charges[*place];
        !charge.is_attempt() && refused.iter().any(|other| charge.passes_with(&batch.charges[*other]))
    };
    (0..verdicts.len()).filter(|place| is_charged(verdicts, *place)).filter(is_in_vain).collect()
}

/// Changes the verdicts at these places to what they are without the charge.
pub(super) fn take_out(batch: &Batch<'_>, verdicts: &mut [Option<Verdict>], places: &[usize]) {
    for place in places {
        if let Some(verdict) = &mut verdicts[*place] {
            let fresh = verdict.charged.take().map_or(0, |charged| charged.fresh.len());
            give_units_back(batch.charges[*place].rule, fresh, &mut verdict.standings);
        }
    }
}

/// Changes where a key stands to what it is without the last request.
fn give_units_back(rule: &Rule, fresh: usize, standings: &mut Standings) {
    let (rates, algorithm, units) = match rule {
        Rule::Concurrent(_) => return,
        Rule::Distinct(rates) => (rates, Algorithm::SlidingWindowLog, fresh as u64),
        Rule::Rates { algorithm, rates, cost } => (rates, *algorithm, u64::from(cost.get())),
    };
    for (standing, rate) in standings.iter_mut().zip(rates) {
        let capacity = algorithm.capacity(rate).get();
        standing.remaining = (standing.remaining + units).min(u64::from(capacity));
        if standing.remaining == u64::from(capacity) {
            standing.reset = Duration::ZERO;
        }
    }
}
