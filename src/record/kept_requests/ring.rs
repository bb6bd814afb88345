//! The newest requests that were denied or held, in bounded memory.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::KeptRequest;

/// The newest requests, 10,000 at least, whoever sent them; and of those that left this ring a few of each client, so that a
/// client that is denied all the time does not push out what happened to others.
///
/// Requests are spread over shards by their ids. Only requests that are denied or held take a lock, that of one shard.
#[derive(Debug)]
pub struct KeptRequests {
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    /// How many were kept so far.
    count: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    /// With their numbers, the newest last.
    newest: VecDeque<(u64, Arc<KeptRequest>)>,
    /// Those that left `newest`, the newest last.
    older: VecDeque<Arc<KeptRequest>>,
    /// How many of `older` each client has.
    older_of: HashMap<IpAddr, u8>,
}

const SHARDS: usize = 16;

/// Ids are random, so that of 10,000 requests a shard gets 625, and never so many.
const NEWEST: usize = 1000;

/// How many are kept longer in each shard, and of one client.
const OLDER: usize = 256;
const OLDER_OF_CLIENT: u8 = 2;

impl KeptRequests {
    pub fn keep(&self, request: KeptRequest) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        self.shard(&request.id).lock().keep(number, Arc::new(request));
    }

    /// The newest request of this id.
    pub fn find(&self, id: &str) -> Option<Arc<KeptRequest>> {
        let shard = self.shard(id).lock();
        let newest = shard.newest.iter().rev().map(|(_, request)| request);
        newest.chain(shard.older.iter().rev()).find(|request| &*request.id == id).map(Arc::clone)
    }

    /// The newest `most` requests of which `wanted` holds, the newest first.
    pub fn newest(&self, most: usize, wanted: impl Fn(&KeptRequest) -> bool) -> Vec<Arc<KeptRequest>> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let all = shard.older.iter().chain(shard.newest.iter().map(|(_, request)| request));
            found.extend(all.filter(|request| wanted(request)).map(Arc::clone));
        }
        found.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| other.id.cmp(&one.id)));
        found.truncate(most);
        found
    }

    /// The requests that were kept after the first `seen`, with their numbers, the oldest first; only the newest `most`.
    pub fn since(&self, seen: u64, most: usize) -> Vec<(u64, Arc<KeptRequest>)> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let newest = shard.newest.iter().rev().take_while(|(number, _)| *number >= seen);
            found.extend(newest.map(|(number, request)| (*number, Arc::clone(request))));
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        found.split_off(found.len().saturating_sub(most))
    }

    fn shard(&self, id: &str) -> &Mutex<Shard> {
        let hash = usize::try_from(self.hasher.hash_one(id) & 0xffff).unwrap_or_default();
        &self.shards[hash % SHARDS]
    }
}

impl Shard {
    fn keep(&mut self, number: u64, request: Arc<KeptRequest>) {
        self.newest.push_back((number, request));
        if self.newest.len() <= NEWEST {
            return;
        }
        let Some((_, leaving)) = self.newest.pop_front() else { return };
        let of_client = self.older_of.entry(leaving.client).or_default();
        if *of_client >= OLDER_OF_CLIENT {
            return;
        }
        *of_client += 1;
        self.older.push_back(leaving);
        if self.older.len() > OLDER
            && let Some(gone) = self.older.pop_front()
            && let Some(of_client) = self.older_of.get_mut(&gone.client)
        {
            *of_client -= 1;
            if *of_client == 0 {
                self.older_of.remove(&gone.client);
            }
        }
    }
}

impl Default for KeptRequests {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            count: AtomicU64::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use smallvec::SmallVec;

    use super::*;
    use crate::clock::Timestamp;
    use crate::record::DecisionLabel;
    use crate::record::kept_requests::DecisionFacts;

    fn request(number: u32, client: [u8; 4]) -> KeptRequest {
        let time = Timestamp::from_micros(1_700_000_000_000_000 + u64::from(number));
        KeptRequest {
            id: format!("{number:08x}").into(),
            time,
            decision: DecisionLabel::Denied,
            client: client.into(),
            peer: client.into(),
            method: Method::GET,
            host: "example.com".into(),
            path: "/".into(),
            route: None,
            status: Some(429),
            limit: None,
            ban: None,
            list: None,
            facts: Arc::new(DecisionFacts {
                decided: time,
                frees_at: None,
                too_many_values: false,
                limits: SmallVec::new(),
            }),
        }
    }

    const ATTACKER: [u8; 4] = [203, 0, 113, 1];
    const OWNER: [u8; 4] = [198, 51, 100, 7];

    #[test]
    fn the_newest_ten_thousand_are_found_by_their_ids() {
        let kept = KeptRequests::default();
        for number in 0..30_000 {
            kept.keep(request(number, ATTACKER));
        }
        for number in 20_000..30_000 {
            let id = format!("{number:08x}");
            assert_eq!(kept.find(&id).map(|request| request.id.clone()).as_deref(), Some(&*id));
        }
        assert!(kept.find("unknown").is_none());
        let since = kept.since(29_990, 5);
        assert_eq!(since.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (29_995..30_000).collect::<Vec<_>>());
        assert!(kept.since(30_000, 5).is_empty());
        let newest = kept.newest(3, |_| true);
        assert_eq!(newest.iter().map(|request| &*request.id).collect::<Vec<_>>(), ["0000752f", "0000752e", "0000752d"]);
    }

    #[test]
    fn one_client_does_not_push_out_what_happened_to_others() {
        let kept = KeptRequests::default();
        kept.keep(request(0, OWNER));
        for number in 1..100_000 {
            kept.keep(request(number, ATTACKER));
        }
        assert!(kept.find("00000000").is_some());
        let length = |shard: &Mutex<Shard>| {
            let shard = shard.lock();
            shard.newest.len() + shard.older.len()
        };
        let all: usize = kept.shards.iter().map(length).sum();
        assert!(all <= SHARDS * (NEWEST + OLDER), "{all}");
        assert_eq!(kept.newest(50, |request| request.client == IpAddr::from(OWNER)).len(), 1);
    }

    #[test]
    fn very_many_clients_take_no_more_room() {
        let kept = KeptRequests::default();
        for number in 0..60_000_u32 {
            kept.keep(request(number, number.to_be_bytes()));
        }
        for shard in &kept.shards {
            let shard = shard.lock();
            assert!(shard.newest.len() <= NEWEST && shard.older.len() <= OLDER && shard.older_of.len() <= OLDER);
        }
    }
}
