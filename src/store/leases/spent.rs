//! What leases have paid of a request.

use smallvec::SmallVec;

use super::held::HeldLeases;
use super::lease::SpentUnits;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Verdict;
use crate::decision::batch::Charged;
use crate::decision::batch::Force;
use crate::decision::batch::Items;
use crate::decision::batch::Ledger;
use crate::key::KeyHash;
use crate::limit::Standings;

/// What leases have paid of a batch, for each of its charges. Unless it is kept, all of it is given back.
#[derive(Debug)]
pub struct SpentLeases<'s, 'b, 'p> {
    leases: &'s HeldLeases,
    batch: &'b Batch<'p>,
    spent: SmallVec<[Option<SpentUnits>; 4]>,
}

impl<'s, 'b, 'p> SpentLeases<'s, 'b, 'p> {
    /// Pays the charges of a batch from the leases of their keys, as far as those go.
    pub fn spend(leases: &'s HeldLeases, batch: &'b Batch<'p>) -> Self {
        Self { leases, batch, spent: batch.charges.iter().map(|charge| leases.spend(charge)).collect() }
    }

    /// Whether anything was paid.
    pub fn is_any(&self) -> bool {
        self.spent.iter().any(Option::is_some)
    }

    pub fn is_paid(&self, place: usize) -> bool {
        self.spent[place].is_some()
    }

    /// The keys of slots in flight that were paid, and the number under which each is held.
    pub fn slots(&self) -> SmallVec<[(KeyHash, u32); 1]> {
        let charges = self.batch.charges.iter().zip(&self.spent).filter(|(charge, _)| charge.is_slot());
        charges.filter_map(|(charge, spent)| Some((charge.key, spent.as_ref()?.holder))).collect()
    }

    /// What is not paid.
    pub fn rest(&self) -> Batch<'p> {
        let unpaid = self.batch.charges.iter().zip(&self.spent).filter(|(_, spent)| spent.is_none());
        Batch { charges: unpaid.map(|(charge, _)| charge.clone()).collect(), known: self.batch.known.clone() }
    }

    /// The verdicts of the whole batch, with those of the rest, and whether what was paid is spent: it is given back if a limit
    /// has denied the request.
    pub fn conclude(mut self, rest: Vec<Verdict>, now: Timestamp) -> (Vec<Verdict>, bool) {
        let mut others = rest.into_iter();
        let mut is_denied = false;
        let mut verdicts = Vec::with_capacity(self.batch.charges.len());
        for (charge, spent) in self.batch.charges.iter().zip(&self.spent) {
            let verdict = match spent {
                Some(spent) => paid(spent.standings.clone(), now),
                None => others.next().expect("there is a verdict for each charge that is not paid"),
            };
            is_denied |= charge.force == Force::Binding && !verdict.passes();
            verdicts.push(verdict);
        }
        if is_denied {
            for (verdict, spent) in verdicts.iter_mut().zip(&self.spent) {
                let Some(spent) = spent else { continue };
                verdict.charged = None;
                verdict.standings.iter_mut().for_each(|standing| standing.remaining += u64::from(spent.units));
            }
        } else {
            self.spent.clear();
        }
        (verdicts, !is_denied)
    }
}

impl Drop for SpentLeases<'_, '_, '_> {
    fn drop(&mut self) {
        for (charge, spent) in self.batch.charges.iter().zip(&self.spent) {
            if let Some(spent) = spent {
                self.leases.give_back(charge, spent);
            }
        }
    }
}

fn paid(standings: Standings, moment: Timestamp) -> Verdict {
    let charged = Charged { moment, ledger: Ledger::Leased, fresh: Items::new(), reservation: None };
    Verdict { retry_after: None, standings, charged: Some(charged), is_exempt: false }
}
