//! All bans by id and by network, and when each can be removed.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

use ipnet::IpNet;

use super::ban::{BanId, BanRecord, BanSubject};
use crate::words::clock::Timestamp;

/// How many bans are remembered at most, also in Redis: about 600 bytes each.
pub(in crate::store) const MOST_BANS: usize = 100_000;

/// More than a snapshot misses, unless all bans are replaced.
const MOST_REMOVED: usize = 10_000;

/// All bans by id and by network, and when each can be removed.
#[derive(Debug, Default)]
pub(super) struct BanIndex {
    pub(super) entries: HashMap<BanId, BanEntry>,
    pub(super) networks: Networks,
    /// When each ban can be removed. Bans by limits make room for new ones when the table is full, bans by operators do
    /// not.
    by_limits: BTreeSet<(Timestamp, BanId)>,
    by_operators: BTreeSet<(Timestamp, BanId)>,
    /// How many bans were written or removed here so far.
    pub(super) writes: u64,
    /// The latest that were removed, each with the number of its removal. Some of them may be back.
    removed: VecDeque<(u64, BanId)>,
    /// The number of the last removal that is not among them.
    removed_before: u64,
}

#[derive(Clone, Debug)]
pub(super) struct BanEntry {
    pub(super) record: BanRecord,
    /// Redis does not have it yet.
    pub(super) is_unsent: bool,
    /// The number of the write that made it what it is.
    pub(super) written: u64,
}

impl BanIndex {
    pub(super) fn lasting(&self, now: Timestamp) -> impl Iterator<Item = &BanEntry> {
        self.entries.values().filter(move |entry| entry.record.ban.until > now)
    }

    /// `false`: the table is full, and operators have set all bans in it.
    pub(super) fn insert(&mut self, record: BanRecord, is_unsent: bool, now: Timestamp) -> bool {
        let id = record.ban.id;
        self.remove(id);
        if self.entries.len() >= MOST_BANS {
            self.remove_expired(now);
        }
        while self.entries.len() >= MOST_BANS {
            let Some((_, first)) = self.by_limits.first().copied() else { return false };
            self.remove(first);
        }
        if let BanSubject::Address(network) = record.ban.subject {
            self.networks.insert(network, record.ban.until);
        }
        let ends = if record.ban.by_operator { &mut self.by_operators } else { &mut self.by_limits };
        ends.insert((record.expires(), id));
        self.writes += 1;
        self.entries.insert(id, BanEntry { record, is_unsent, written: self.writes });
        true
    }

    /// Whether bans of these ids fit in beside those by operators.
    pub(super) fn has_room_for(&self, ids: impl Iterator<Item = BanId>) -> bool {
        let is_new = |id: &BanId| self.entries.get(id).is_none_or(|entry| !entry.record.ban.by_operator);
        self.by_operators.len() + ids.filter(is_new).count() <= MOST_BANS
    }

    pub(super) fn remove(&mut self, id: BanId) -> Option<BanEntry> {
        let entry = self.entries.remove(&id)?;
        self.writes += 1;
        self.note_removed(id);
        if let BanSubject::Address(network) = entry.record.ban.subject {
            self.networks.remove(network);
        }
        let end = (entry.record.expires(), id);
        self.by_limits.remove(&end);
        self.by_operators.remove(&end);
        Some(entry)
    }

    fn note_removed(&mut self, id: BanId) {
        self.removed.push_back((self.writes, id));
        if self.removed.len() > MOST_REMOVED
            && let Some((number, _)) = self.removed.pop_front()
        {
            self.removed_before = number;
        }
    }

    /// The bans that were removed since that many writes, and are not back; `None`: there were too many.
    pub(super) fn removed_since(&self, writes: u64) -> Option<Vec<BanId>> {
        if writes < self.removed_before {
            return None;
        }
        let first = self.removed.partition_point(|(number, _)| *number <= writes);
        let removed = self.removed.range(first..).map(|(_, id)| *id);
        Some(removed.filter(|id| !self.entries.contains_key(id)).collect())
    }

    /// The ban that can be removed first, and when.
    pub(super) fn first(&self) -> Option<(Timestamp, BanId)> {
        let firsts = [&self.by_limits, &self.by_operators].map(|ends| ends.first().copied());
        firsts.into_iter().flatten().min()
    }

    pub(super) fn remove_expired(&mut self, now: Timestamp) {
        while let Some((expires, id)) = self.first()
            && expires <= now
        {
            self.remove(id);
        }
    }
}

// Banned networks, looked up for each request: one look-up for each prefix length that is in use.

/// Networks and until when each is banned. Callers pass IPv4-mapped addresses as IPv4.
#[derive(Debug, Default)]
pub(super) struct Networks {
    v4: AddressFamily,
    v6: AddressFamily,
}

/// Networks of one address family, by prefix length and bits.
#[derive(Debug, Default)]
struct AddressFamily {
    until: HashMap<(u8, u128), Timestamp>,
    /// How many networks there are of each prefix length.
    lengths: Vec<(u8, usize)>,
}

impl Networks {
    pub(super) fn insert(&mut self, network: IpNet, until: Timestamp) {
        let (family, at) = self.locate(network);
        if family.until.insert(at, until).is_none() {
            match family.lengths.iter_mut().find(|(length, _)| *length == at.0) {
                Some((_, count)) => *count += 1,
                None => family.lengths.push((at.0, 1)),
            }
        }
    }

    pub(super) fn remove(&mut self, network: IpNet) {
        let (family, at) = self.locate(network);
        if family.until.remove(&at).is_some() {
            family.lengths.iter_mut().filter(|(length, _)| *length == at.0).for_each(|(_, count)| *count -= 1);
            family.lengths.retain(|(_, count)| *count > 0);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.v4.until.len() + self.v6.until.len()
    }

    /// Until when an address is banned, and the network whose ban ends last.
    pub(super) fn until(&self, address: IpAddr) -> Option<(Timestamp, IpNet)> {
        let (family, bits, width) = match address {
            IpAddr::V4(address) => (&self.v4, u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (&self.v6, address.to_bits(), 128),
        };
        let found = family.lengths.iter().filter_map(|(length, _)| {
            let mask = u128::MAX.checked_shl(u32::from(width - length)).unwrap_or(0);
            Some((*family.until.get(&(*length, bits & mask))?, *length))
        });
        let (until, length) = found.max()?;
        Some((until, IpNet::new(address, length).ok()?.trunc()))
    }

    fn locate(&mut self, network: IpNet) -> (&mut AddressFamily, (u8, u128)) {
        match network.trunc() {
            IpNet::V4(network) => (&mut self.v4, (network.prefix_len(), u128::from(network.network().to_bits()))),
            IpNet::V6(network) => (&mut self.v6, (network.prefix_len(), network.network().to_bits())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn an_address_is_banned_by_any_network_it_is_in_for_as_long_as_one_lasts() {
        let mut networks = Networks::default();
        let until = |networks: &Networks, address: &str| {
            networks.until(address.parse().expect("an address")).map(|(until, _)| until)
        };
        let net = |text: &str| text.parse().expect("a network");
        networks.insert(net("198.51.100.0/24"), at(10));
        networks.insert(net("198.51.100.7/32"), at(5));
        networks.insert(net("2001:db8::/32"), at(7));
        assert_eq!(until(&networks, "198.51.100.7"), Some(at(10)));
        assert_eq!(until(&networks, "198.51.101.7"), None);
        assert_eq!(until(&networks, "2001:db8:1::1"), Some(at(7)));
        assert_eq!(until(&networks, "2001:db9::1"), None);
        let found = networks.until("198.51.100.7".parse().expect("an address"));
        assert_eq!(found, Some((at(10), net("198.51.100.0/24"))));
        networks.remove(net("198.51.100.0/24"));
        assert_eq!(until(&networks, "198.51.100.7"), Some(at(5)));
        assert_eq!(until(&networks, "198.51.100.8"), None);
        networks.insert(net("0.0.0.0/0"), at(9));
        assert_eq!(until(&networks, "203.0.113.1"), Some(at(9)));
        assert_eq!(until(&networks, "::1"), None);
        networks.insert(net("::/0"), at(9));
        assert_eq!(until(&networks, "::1"), Some(at(9)));
    }
}
