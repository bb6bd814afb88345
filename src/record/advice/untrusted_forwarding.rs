//! Counts the requests in which a peer that is no trusted proxy names its client, and finds out which peers those are.

use std::net::IpAddr;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use crate::record::heavy_keys::space_saving::SpaceSaving;

/// Counted on every core.
#[derive(Debug)]
pub struct UntrustedForwarding {
    requests: Counter,
    /// Some of the requests since the last look, by peer.
    /// The value is the header that its first request had.
    peers: Mutex<SpaceSaving<IpAddr, Box<str>, 1>>,
}

/// A peer that names clients, and is no trusted proxy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UntrustedPeer {
    pub address: IpAddr,
    /// In which it names them.
    pub header: String,
    /// How many of its requests were looked at.
    pub samples: u64,
}

impl Default for UntrustedForwarding {
    fn default() -> Self {
        Self { requests: Counter::default(), peers: Mutex::new(SpaceSaving::new(MAX_PEERS)) }
    }
}

impl UntrustedForwarding {
    pub fn count(&self, peer: IpAddr, header: &str) {
        // Another core that looks at the same moment is enough.
        if self.requests.inc().is_multiple_of(SAMPLED)
            && let Some(mut peers) = self.peers.try_lock()
        {
            peers.add(peer, [1], || header.into(), |_| ());
        }
    }

    /// All requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// The peers since the last look.
    pub fn take_peers(&self) -> Vec<UntrustedPeer> {
        let taken = std::mem::replace(&mut *self.peers.lock(), SpaceSaving::new(MAX_PEERS));
        let peers = taken.entries().map(|(&address, entry)| UntrustedPeer {
            address,
            header: entry.value.to_string(),
            samples: entry.counts[0],
        });
        peers.collect()
    }
}

/// One request of so many is looked at. A prime, so that peers that take turns are all seen.
const SAMPLED: u64 = 7;

/// Proxies are few. A client that tries it from many addresses pushes none of them out.
const MAX_PEERS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_that_name_clients_are_known_until_somebody_has_looked() {
        let untrusted = UntrustedForwarding::default();
        let [proxy, other]: [IpAddr; 2] = [[10, 0, 0, 10].into(), [10, 0, 0, 11].into()];
        for number in 0..1400_u16 {
            untrusted.count(if number.is_multiple_of(2) { proxy } else { other }, "x-forwarded-for");
            if number.is_multiple_of(10) {
                untrusted.count(IpAddr::from([0, 0, 0, 0, 0, 0, 0, number]), "forwarded");
            }
        }
        assert_eq!(untrusted.requests(), 1540);
        let mut peers = untrusted.take_peers();
        peers.sort_by_key(|peer| std::cmp::Reverse(peer.samples));
        let mut heaviest = [peers[0].address, peers[1].address];
        heaviest.sort();
        assert_eq!((heaviest, &*peers[0].header), ([proxy, other], "x-forwarded-for"));
        assert!(peers[1].samples > 80 && peers.len() <= MAX_PEERS, "{peers:?}");
        assert_eq!(untrusted.take_peers(), []);
    }
}
