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
    requests: SmallVec<[Option<LeaseRequest>; 4]>,
    keys: SmallVec<[KeyHash; 4]>,
}

impl<'l> AskedLeases<'l> {
    /// What a call about these charges asks that is sent from now on.
    pub fn ask(leases: &'l HeldLeases, charges: &[&Charge<'_>]) -> Self {
        let sent = leases.now();
        let requests = charges.iter().map(|charge| leases.ask(charge, sent)).collect();
        Self { leases, sent, requests, keys: charges.iter().map(|charge| charge.key).collect() }
    }

    pub fn requests(&self) -> &[Option<LeaseRequest>] {
        &self.requests
    }

    /// Notes how many units were leased of each key that may be leased, and adds to the verdicts what may be spent of them.
    pub fn answered(mut self, charges: &[&Charge<'_>], verdicts: &mut [Verdict], leased: &[u32]) {
        let requests = std::mem::take(&mut self.requests);
        let leasable = (0..charges.len()).filter(|place| charges[*place].rule.may_be_leased());
        for (place, units) in leasable.zip(leased) {
            if let Some(request) = requests.get(place).copied().flatten().filter(|_| *units > 0) {
                let standings = &mut verdicts[place].standings;
                self.leases.grant(charges[place].key, request.id, *units, self.sent, standings.clone());
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
