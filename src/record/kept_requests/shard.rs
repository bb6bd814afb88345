//! A part of the ring.

use std::collections::VecDeque;
use std::net::IpAddr;

use hashbrown::HashMap;

use super::KeptRequest;

#[derive(Debug, Default)]
pub(super) struct Shard {
    /// By the place of their number.
    newest: Vec<Option<Box<KeptRequest>>>,
    /// Those that left `newest`, the newest last.
    older: VecDeque<Box<KeptRequest>>,
    /// How many of `older` each client has. It hashes with a seed of its own.
    older_of: HashMap<IpAddr, u8>,
}

/// How many are kept longer in each shard, and of one client.
pub(super) const OLDER: usize = 256;
const OLDER_OF_CLIENT: u8 = 2;

impl Shard {
    /// Keeps a request in its place. Returns one that is kept no longer.
    pub(super) fn keep(&mut self, place: usize, request: Box<KeptRequest>) -> Option<Box<KeptRequest>> {
        if self.newest.len() <= place {
            self.newest.resize_with(place + 1, || None);
        }
        let current = &mut self.newest[place];
        if current.as_ref().is_some_and(|current| current.number > request.number) {
            // Its thread waited while so many others were kept that the ring has come around.
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
