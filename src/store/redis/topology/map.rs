//! Which server has which slot.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::node::Node;
use crate::store::redis::transport::url::Address;

/// How many slots the keys of a cluster are spread over.
pub(in crate::store::redis) const SLOTS: u16 = 16_384;

#[derive(Debug)]
pub(in crate::store::redis) struct Topology {
    map: ArcSwap<Map>,
    /// Held while the map is rewritten.
    writing: Mutex<()>,
    /// There are other servers than before.
    pub(in crate::store::redis) changed: Notify,
    /// The map may be wrong: a server failed, or said that a slot is elsewhere.
    pub(in crate::store::redis) doubted: Notify,
}

/// The servers that decide, and what each of them has.
#[derive(Clone, Debug)]
pub(in crate::store::redis) struct Map {
    pub(in crate::store::redis) masters: Vec<Arc<Node>>,
    slots: Slots,
    /// Servers that may know more when no master does.
    pub(in crate::store::redis) replicas: Vec<Address>,
}

#[derive(Clone, Debug)]
enum Slots {
    /// The only master has them all.
    All,
    /// For each slot the place of its master in the list, or [`NOBODY`].
    Each(Box<[u16]>),
}

const NOBODY: u16 = u16::MAX;

/// A range of slots, both ends included, and the server that has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::store::redis) struct Range {
    pub(in crate::store::redis) first: u16,
    pub(in crate::store::redis) last: u16,
    pub(in crate::store::redis) master: Address,
}

impl Topology {
    /// One server for everything, or none known yet.
    pub(in crate::store::redis) fn new(first: Option<Address>) -> Self {
        let masters = first.into_iter().map(|address| Arc::new(Node::new(address))).collect();
        Self {
            map: ArcSwap::from_pointee(Map { masters, slots: Slots::All, replicas: Vec::new() }),
            writing: Mutex::new(()),
            changed: Notify::new(),
            doubted: Notify::new(),
        }
    }

    pub(in crate::store::redis) fn map(&self) -> Arc<Map> {
        self.map.load_full()
    }

    /// The server that decides about keys of this slot.
    pub(in crate::store::redis) fn node(&self, slot: u16) -> Option<Arc<Node>> {
        self.map.load().node(slot).cloned()
    }

    /// From now on this server has everything.
    pub(in crate::store::redis) fn install_one(&self, address: &Address) {
        let _writing = self.writing.lock();
        let masters = vec![self.map().known_or_new(address)];
        self.install(Map { masters, slots: Slots::All, replicas: Vec::new() });
    }

    /// From now on these servers have these slots.
    pub(in crate::store::redis) fn install_ranges(&self, ranges: &[Range], replicas: Vec<Address>) {
        let _writing = self.writing.lock();
        let before = self.map();
        let mut masters: Vec<Arc<Node>> = Vec::new();
        let mut slots = vec![NOBODY; usize::from(SLOTS)].into_boxed_slice();
        for Range { first, last, master } in ranges {
            let place = masters.iter().position(|node| node.address == *master).unwrap_or_else(|| {
                masters.push(before.known_or_new(master));
                masters.len() - 1
            });
            slots[usize::from(*first)..=usize::from(*last)].fill(place_of(place));
        }
        self.install(Map { masters, slots: Slots::Each(slots), replicas });
    }

    /// A server said that this slot is at that address.
    pub(in crate::store::redis) fn move_slot(&self, slot: u16, address: &Address) -> Arc<Node> {
        let _writing = self.writing.lock();
        let mut map = Map::clone(&self.map());
        if let Some(node) = map.node(slot)
            && node.address == *address
        {
            return Arc::clone(node);
        }
        let node = map.known_or_new(address);
        let place = map.masters.iter().position(|known| Arc::ptr_eq(known, &node)).unwrap_or_else(|| {
            map.masters.push(Arc::clone(&node));
            map.masters.len() - 1
        });
        if let Slots::All = map.slots {
            map.slots = Slots::Each(vec![0; usize::from(SLOTS)].into_boxed_slice());
        }
        if let Slots::Each(slots) = &mut map.slots {
            slots[usize::from(slot)] = place_of(place);
        }
        self.install(map);
        self.doubted.notify_one();
        node
    }

    /// A server that is named in passing: it may have no slot of its own yet.
    pub(in crate::store::redis) fn passing(&self, address: &Address) -> Arc<Node> {
        let _writing = self.writing.lock();
        let mut map = Map::clone(&self.map());
        let node = map.known_or_new(address);
        if !map.masters.iter().any(|known| Arc::ptr_eq(known, &node)) {
            map.masters.push(Arc::clone(&node));
            self.install(map);
        }
        node
    }

    fn install(&self, map: Map) {
        let before = self.map.swap(Arc::new(map));
        let now = self.map.load();
        for node in &before.masters {
            if !now.masters.iter().any(|kept| Arc::ptr_eq(kept, node)) {
                node.retire();
            }
        }
        self.changed.notify_one();
    }
}

impl Map {
    fn node(&self, slot: u16) -> Option<&Arc<Node>> {
        match &self.slots {
            Slots::All => self.masters.first(),
            Slots::Each(slots) => self.masters.get(usize::from(slots[usize::from(slot)])),
        }
    }

    pub(in crate::store::redis) fn has(&self, node: &Arc<Node>, slot: u16) -> bool {
        self.node(slot).is_some_and(|owner| Arc::ptr_eq(owner, node))
    }

    /// Servers keep what is known of them when the map changes.
    fn known_or_new(&self, address: &Address) -> Arc<Node> {
        let known = self.masters.iter().find(|node| node.address == *address);
        known.map_or_else(|| Arc::new(Node::new(address.clone())), Arc::clone)
    }
}

fn place_of(place: usize) -> u16 {
    u16::try_from(place).expect("no more masters than slots")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::transport::breaker::Cause;

    fn address(port: u16) -> Address {
        Address::Tcp { host: "127.0.0.1".to_owned(), port, tls: false }
    }

    fn halves(first: u16, second: u16) -> [Range; 2] {
        [
            Range { first: 0, last: 8191, master: address(first) },
            Range { first: 8192, last: SLOTS - 1, master: address(second) },
        ]
    }

    fn owner(topology: &Topology, slot: u16) -> Address {
        topology.node(slot).expect("somebody has it").address.clone()
    }

    #[test]
    fn servers_keep_their_breaker_when_the_map_changes() {
        let topology = Topology::new(Some(address(1)));
        topology.install_ranges(&halves(1, 2), Vec::new());
        let second = topology.node(9000).expect("somebody has it");
        second.fail(0, Cause::Timeout);
        topology.install_ranges(&halves(3, 2), Vec::new());
        assert_eq!(owner(&topology, 0), address(3));
        assert!(!topology.node(9000).expect("somebody has it").is_up());
    }

    #[test]
    fn servers_without_slots_retire() {
        let topology = Topology::new(Some(address(1)));
        let first = topology.node(0).expect("somebody has it");
        topology.install_one(&address(1));
        assert!(!first.is_retired());
        topology.install_one(&address(2));
        assert!(first.is_retired());
    }

    #[test]
    fn a_slot_moves_alone() {
        let topology = Topology::new(Some(address(1)));
        topology.move_slot(7, &address(2));
        assert_eq!((owner(&topology, 6), owner(&topology, 7)), (address(1), address(2)));
        topology.install_ranges(&halves(1, 2)[..1], Vec::new());
        assert!(topology.node(9000).is_none(), "nobody has it");
        topology.move_slot(9000, &address(3));
        assert_eq!((owner(&topology, 7), owner(&topology, 9000)), (address(1), address(3)));
    }
}
