//! The newest requests that were denied or held, in bounded memory.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::KeptRequest;
use crate::record::kept_requests::kept_request;

const SHARDS: usize = 16;

/// How many of the newest are in each shard.
const NEWEST: usize = 625;

/// The newest requests of all clients, at least 10,000; and of older ones, a few of each client, so that a client that
/// is denied all the time does not push out the requests of others. About 7 MiB in all, and 25 MiB if all texts have
/// their largest size.
///
/// Requests are numbered as they come, and take turns among the shards. Only requests that are denied or held take a
/// lock, and only of one shard.
#[derive(Debug)]
pub struct KeptRequests {
    shards: [Mutex<Shard>; SHARDS],
    /// How many were kept so far, which is the number of the next one.
    count: AtomicU64,
}

impl KeptRequests {
    /// Keeps a request that is complete.
    pub fn keep(&self, mut request: Box<KeptRequest>) {
        request.number = self.count.fetch_add(1, Ordering::Relaxed);
        let (shard, place) = self.place(request.number);
        let left = shard.lock().keep(place, request);
        if let Some(left) = left {
            kept_request::put(left);
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

    /// The newest `most` requests that are `wanted`, the newest first.
    pub fn newest(&self, most: usize, wanted: impl Fn(&KeptRequest) -> bool) -> Vec<KeptRequest> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let wanted = shard.all().filter(|request| wanted(request));
            found.extend(wanted.map(|request| (request.facts.came, request.number)));
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        // Few requests are copied.
        found.truncate(most);
        found.into_iter().filter_map(|(_, number)| self.numbered(number)).collect()
    }

    /// The numbers of all requests that are `wanted`: the newest of each client, then the second newest of each, and so
    /// on, so that a client that is denied all the time leaves room for the requests of others.
    pub fn newest_of_each_client_first(&self, mut wanted: impl FnMut(u64) -> bool) -> Vec<u64> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let wanted = shard.all().filter(|request| wanted(request.number));
            found.extend(wanted.map(|request| (request.number, request.client)));
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        let mut of_client: std::collections::HashMap<IpAddr, usize> = std::collections::HashMap::new();
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

    /// Shows the requests from this number on that are kept still, `most` at most: evenly chosen, each with how many it stands
    /// for. Returns the number of the next one that will be kept.
    pub fn visit_since(&self, number: u64, most: u64, mut visit: impl FnMut(&KeptRequest, u64)) -> u64 {
        let end = self.count.load(Ordering::Relaxed);
        let first = number.clamp(end.saturating_sub((SHARDS * NEWEST) as u64), end);
        let stride = (end - first).div_ceil(most.max(1)).max(1);
        let visited = (end - first).div_ceil(stride).max(1);
        let weight = (end - number.min(end)).div_ceil(visited);
        for number in (first..end).rev().step_by(usize::try_from(stride).unwrap_or(usize::MAX)) {
            let (shard, place) = self.place(number);
            if let Some(request) = shard.lock().newest(place).filter(|request| request.number == number) {
                visit(request, weight);
            }
        }
        end
    }

    /// The lowest number in the ring of the newest requests of all clients.
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
        // A place of the ring keeps the last of the numbers that fall on it.
        let place = usize::try_from(number % (SHARDS * NEWEST) as u64).unwrap_or_default();
        (&self.shards[place % SHARDS], place / SHARDS)
    }
}

impl Default for KeptRequests {
    fn default() -> Self {
        Self { shards: Default::default(), count: AtomicU64::new(0) }
    }
}

// A part of the ring.

/// How many are kept longer in each shard, and of one client.
pub(super) const OLDER: usize = 256;

const OLDER_OF_CLIENT: u8 = 2;

#[derive(Debug, Default)]
pub(super) struct Shard {
    /// By the place of their number.
    newest: Vec<Option<Box<KeptRequest>>>,
    /// Requests that left `newest`, the newest last.
    older: VecDeque<Box<KeptRequest>>,
    /// How many of `older` each client has. It hashes with a seed of its own.
    older_of: HashMap<IpAddr, u8>,
}

impl Shard {
    /// Keeps a request in its place. Returns one that is kept no longer.
    pub(super) fn keep(&mut self, place: usize, request: Box<KeptRequest>) -> Option<Box<KeptRequest>> {
        if self.newest.len() <= place {
            self.newest.resize_with(place + 1, || None);
        }
        let current = &mut self.newest[place];
        if current.as_ref().is_some_and(|current| current.number > request.number) {
            // Its thread waited so long that newer requests have filled the whole ring.
            return Some(request);
        }
        let leaving = current.replace(request)?;
        self.keep_longer(leaving)
    }

    fn keep_longer(&mut self, leaving: Box<KeptRequest>) -> Option<Box<KeptRequest>> {
        match self.older_of.get_mut(&leaving.client) {
            Some(of_client) if *of_client >= OLDER_OF_CLIENT => return Some(leaving),
            Some(of_client) => *of_client += 1,
            None => {
                self.older_of.insert(leaving.client, 1);
            }
        }
        self.older.push_back(leaving);
        if self.older.len() <= OLDER {
            return None;
        }
        let gone = self.older.pop_front()?;
        if let Some(of_client) = self.older_of.get_mut(&gone.client) {
            *of_client -= 1;
            if *of_client == 0 {
                self.older_of.remove(&gone.client);
            }
        }
        Some(gone)
    }

    /// Every request, in no particular order.
    pub(super) fn all(&self) -> impl Iterator<Item = &KeptRequest> {
        self.newest.iter().flatten().chain(&self.older).map(|request| &**request)
    }

    /// The request of this number, or the one that has come to its place since.
    pub(super) fn newest(&self, place: usize) -> Option<&KeptRequest> {
        self.newest.get(place)?.as_deref()
    }

    /// The request of this number, if it is kept longer.
    pub(super) fn older(&self, number: u64) -> Option<&KeptRequest> {
        self.older.iter().map(|request| &**request).find(|request| request.number == number)
    }

    #[cfg(test)]
    pub(super) fn lengths(&self) -> [usize; 3] {
        [self.newest.len(), self.older.len(), self.older_of.len()]
    }
}

#[cfg(test)]
mod tests;
