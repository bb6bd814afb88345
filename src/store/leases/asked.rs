//! What one call asks about leases, and what it is answered.

use smallvec::SmallVec;

use super::held::HeldLeases;
use super::request::LeaseRequest;
use crate::clock::Timestamp;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::key::KeyHash;

/// What one call asks, for each of its charges. If the call has no answer, the process leases nothing by it.
#[derive(Debug)]
pub struct AskedLeases<'l> {
    leases: &'l HeldLeases,
    sent: Timestamp,
    holder: u32,
    requests: SmallVec<[Option<LeaseRequest>; 4]>,
    keys: SmallVec<[KeyHash; 4]>,
}

impl<'l> AskedLeases<'l> {
    /// What a call about these charges asks that is sent from now on and takes slots under this number.
    pub fn ask(leases: &'l HeldLeases, charges: &[&Charge<'_>], holder: u32) -> Self {
        let sent = leases.now();
        let requests = charges.iter().map(|charge| leases.ask(charge, holder, sent)).collect();
        Self { leases, sent, holder, requests, keys: charges.iter().map(|charge| charge.key).collect() }
    }

    pub fn requests(&self) -> &[Option<LeaseRequest>] {
        &self.requests
    }

    /// Notes how many units were leased of each key that may be leased, and adds to the verdicts what may be spent of them.
    pub fn answered(mut self, charges: &[&Charge<'_>], verdicts: &mut [Verdict], leased: &[u32]) {
        let requests = std::mem::take(&mut self.requests);
        let is_leasable = |place: &usize| charges[*place].rule.may_be_leased() && !verdicts[*place].is_exempt;
        let leasable: SmallVec<[usize; 4]> = (0..charges.len()).filter(is_leasable).collect();
        for (place, units) in leasable.into_iter().zip(leased) {
            if let Some(request) = requests.get(place).copied().flatten().filter(|_| *units > 0) {
                let standings = &mut verdicts[place].standings;
                let granted = (request.id, *units);
                self.leases.grant(charges[place].key, granted, self.sent, self.holder, standings.clone());
                standings.iter_mut().for_each(|standing| standing.remaining += u64::from(*units));
            }
        }
        self.requests = requests;
    }
}

impl Drop for AskedLeases<'_> {
    fn drop(&mut self) {
        let asked = self.keys.iter().zip(&self.requests).filter(|(_, request)| request.is_some());
        asked.for_each(|(key, _)| self.leases.asked(*key));
    }
}
