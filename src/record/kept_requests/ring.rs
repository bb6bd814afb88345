//! The newest requests that were denied or held, in bounded memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::KeptRequest;
use super::shard::Shard;
use super::spare;

/// The newest requests, 10,000 at least, whoever sent them; and of those that left this ring a few of each client, so that a
/// client that is denied all the time does not push out what happened to others. In all about 7 MiB, and 25 MiB where all
/// texts are as long as they may be.
///
/// Requests are numbered as they come, and take turns among the shards. Only requests that are denied or held take a lock,
/// that of one shard.
#[derive(Debug)]
pub struct KeptRequests {
    shards: [Mutex<Shard>; SHARDS],
    /// How many were kept so far, which is the number of the next one.
    count: AtomicU64,
}

const SHARDS: usize = 16;

/// How many of the newest are in each shard.
const NEWEST: usize = 625;

impl KeptRequests {
    /// Keeps a request that is complete.
    pub fn keep(&self, mut request: Box<KeptRequest>) {
        request.number = self.count.fetch_add(1, Ordering::Relaxed);
        let (shard, place) = self.place(request.number);
        let left = shard.lock().keep(place, request);
        if let Some(left) = left {
            spare::put(left);
        }
    }

    /// The newest request of this id.
    pub fn find(&self, id: &str) -> Option<KeptRequest> {
        let found = self.shards.iter().filter_map(|shard| {
            let shard = shard.lock();
            shard.all().filter(|request| request.id() == id).max_by_key(|request| request.number).cloned()
        });
        found.max_by_key(|request| request.number)
    }

    /// The newest `most` requests of which `wanted` holds, the newest first.
    pub fn newest(&self, most: usize, wanted: impl Fn(&KeptRequest) -> bool) -> Vec<KeptRequest> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let wanted = shard.all().filter(|request| wanted(request));
            found.extend(wanted.map(|request| (request.facts.came, request.number)));
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        // Those that are copied are few.
        found.truncate(most);
        found.into_iter().filter_map(|(_, number)| self.numbered(number)).collect()
    }

    /// The numbers of all requests of which `wanted` holds: the newest of each client before the second newest of any, so that
    /// a client that is denied all the time leaves room for what happened to others.
    pub fn newest_of_each_client_first(&self, mut wanted: impl FnMut(u64) -> bool) -> Vec<u64> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let wanted = shard.all().filter(|request| wanted(request.number));
            found.extend(wanted.map(|request| (request.number, request.client)));
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        let mut of_client: HashMap<IpAddr, usize> = HashMap::new();
        let rank = |(number, client)| {
            let rank = of_client.entry(client).or_default();
            *rank += 1;
            (*rank, number)
        };
        let mut ranked: Vec<(usize, u64)> = found.into_iter().map(rank).collect();
        // A stable sort: among equals the newest stays first.
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, number)| number).collect()
    }

    /// The lowest number of those that are kept whoever sent them.
    pub fn first_of_newest(&self) -> u64 {
        self.count.load(Ordering::Relaxed).saturating_sub((SHARDS * NEWEST) as u64)
    }

    /// The request of this number, if it is kept still.
    pub fn numbered(&self, number: u64) -> Option<KeptRequest> {
        let (shard, place) = self.place(number);
        let shard = shard.lock();
        let newest = shard.newest(place).filter(|request| request.number == number);
        newest.or_else(|| shard.older(number)).cloned()
    }

    /// The shard of a number, and the place there.
    fn place(&self, number: u64) -> (&Mutex<Shard>, usize) {
        // Of the numbers that a place gets, one after the other, the ring keeps the last.
        let place = usize::try_from(number % (SHARDS * NEWEST) as u64).unwrap_or_default();
        (&self.shards[place % SHARDS], place / SHARDS)
    }
}

impl Default for KeptRequests {
    fn default() -> Self {
        Self { shards: Default::default(), count: AtomicU64::new(0) }
    }
}

#[cfg(test)]
mod tests;
