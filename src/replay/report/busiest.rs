//! The clients that something happened to most often, in bounded memory.

use std::collections::HashMap;
use std::net::IpAddr;

use serde::Serialize;

/// Counts clients. While there are few, exactly. Beyond [`MOST_CLIENTS`] those with the fewest are forgotten, so that
/// a count may be too low by at most `forgotten`.
#[derive(Clone, Debug, Default)]
pub struct BusiestClients {
    counts: HashMap<IpAddr, u64>,
    /// The highest count of a client that was forgotten, over all times that clients were.
    forgotten: u64,
}

/// A client and how often.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ClientCount {
    pub client: IpAddr,
    pub count: u64,
}

impl BusiestClients {
    pub fn add(&mut self, client: IpAddr) {
        *self.counts.entry(client).or_default() += 1;
        if self.counts.len() > MOST_CLIENTS {
            self.forget_half();
        }
    }

    /// The busiest first, then by address.
    pub fn top(&self, most: usize) -> Vec<ClientCount> {
        let mut all: Vec<_> = self.counts.iter().map(|(&client, &count)| ClientCount { client, count }).collect();
        all.sort_by_key(|one| (std::cmp::Reverse(one.count), one.client));
        all.truncate(most);
        all
    }

    /// How many clients are counted: all of them, unless some were forgotten.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether every client is counted from its first time on.
    pub fn is_exact(&self) -> bool {
        self.forgotten == 0
    }

    fn forget_half(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let (_, &mut median, _) = counts.select_nth_unstable(MOST_CLIENTS / 2);
        self.counts.retain(|_, count| *count > median);
        self.forgotten += median;
    }
}

/// Of one limit.
const MOST_CLIENTS: usize = 20_000;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_busiest_are_found_in_bounded_memory_among_many_that_come_once() {
        let mut clients = BusiestClients::default();
        let busy = |number: u32| IpAddr::from(Ipv4Addr::from(0xc000_0200 + number));
        for number in 0..200_000_u32 {
            clients.add(IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number)));
            (0..4).for_each(|one| clients.add(busy(one)));
        }
        assert!(clients.len() <= MOST_CLIENTS);
        assert!(!clients.is_exact());
        let top = clients.top(4);
        assert_eq!(top.iter().map(|one| one.client).collect::<Vec<_>>(), [0, 1, 2, 3].map(busy));
        assert!(top.iter().all(|one| one.count + clients.forgotten >= 200_000 && one.count <= 200_000), "{top:?}");
    }
}
