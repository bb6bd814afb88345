//! A server, shared by all cores of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use crc::{CRC_16_XMODEM, Crc};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::store::redis::transport::connect::Address;
use crate::store::redis::transport::connection::RedisConnection;
use crate::store::redis::transport::fault::{Breaker, BreakerState, DownCause};
use crate::words::clock::Timestamp;

#[derive(Debug)]
pub(in crate::store::redis) struct RedisNode {
    pub(in crate::store::redis) address: Address,
    breaker: Breaker,
    /// Wakes the monitor: the breaker has opened, or the server is retired.
    pub(in crate::store::redis) changed: Notify,
    /// A probe has been tried at least once.
    pub(in crate::store::redis) probed: AtomicBool,
    retired: AtomicBool,
    /// How many keys it had when the monitor asked last.
    pub(in crate::store::redis) keys: AtomicU64,
    /// Its policy, where that drops keys when memory is short.
    pub(in crate::store::redis) eviction: Mutex<Option<Eviction>>,
}

/// A server drops keys when its memory is short, which has a bound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Eviction {
    pub server: String,
    /// Such as `allkeys-lru`.
    pub policy: String,
    pub since: Timestamp,
}

impl RedisNode {
    pub(in crate::store::redis) fn new(address: Address) -> Self {
        Self {
            address,
            breaker: Breaker::default(),
            changed: Notify::new(),
            probed: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            keys: AtomicU64::new(0),
            eviction: Mutex::default(),
        }
    }

    pub(in crate::store::redis) fn state(&self) -> BreakerState {
        self.breaker.state()
    }

    pub(in crate::store::redis) fn is_up(&self) -> bool {
        self.state().cause.is_none()
    }

    /// A call of `generation` failed. Returns whether the server was up until now.
    pub(in crate::store::redis) fn fail(&self, generation: u64, cause: DownCause) -> bool {
        let went_down = self.breaker.open(generation, cause);
        if went_down {
            self.changed.notify_one();
        }
        went_down
    }

    /// A probe failed: the server is down for this cause. Returns whether it was up until now.
    pub(in crate::store::redis) fn stay_down(&self, cause: DownCause) -> bool {
        let went_down = self.breaker.open(self.state().generation, cause);
        if !went_down {
            self.breaker.explain(cause);
        }
        went_down
    }

    pub(in crate::store::redis) fn recover(&self) {
        self.breaker.close();
    }

    /// The server has no slots any more.
    pub(in crate::store::redis) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    pub(in crate::store::redis) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}

// The connection of one core to one server, and a call over it.

/// The connection of this core to one server.
#[derive(Debug)]
pub(super) struct NodeConnection {
    pub(super) node: Arc<RedisNode>,
    pub(super) established: Mutex<Option<Established>>,
    /// Locked by the caller that connects, so that the others wait for its connection.
    pub(super) connecting: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
pub(super) struct Established {
    /// The generation of the server's breaker when the connection was made.
    pub(super) generation: u64,
    pub(super) connection: RedisConnection,
}

/// How far a call has come.
pub(super) struct Progress {
    pub(super) node: Arc<RedisNode>,
    pub(super) generation: u64,
    /// The one that brought the answer.
    pub(super) connection: Option<RedisConnection>,
    /// A refusal of this call does not open the breaker.
    pub(super) is_best_effort: bool,
}

impl NodeConnection {
    pub(super) fn new(node: &Arc<RedisNode>) -> Self {
        Self { node: Arc::clone(node), established: Mutex::new(None), connecting: tokio::sync::Mutex::new(()) }
    }

    /// The connection, if it is open. While the breaker is open this fails, and drops the connection.
    pub(super) fn current(&self, progress: &mut Progress) -> Result<Option<RedisConnection>, Failure> {
        let state = self.node.state();
        progress.generation = state.generation;
        let mut established = self.established.lock();
        // A connection that the server closed while it was idle is not a failure.
        established
            .take_if(|established| established.generation != state.generation || !established.connection.is_open());
        match state.cause {
            Some(_) => Err(Failure::Open),
            None => Ok(established.as_ref().map(|established| established.connection.clone())),
        }
    }
}

// Why a call has no answer.

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The breaker is open, or the server cannot be reached: nothing was sent.
    Open,
    /// The command was sent, or may have been, and the server may have run it.
    Unknown,
    /// The server answered that it did not run the command.
    Refused,
}

// The servers, and which server has which hash slot.

/// How many slots the keys of a cluster are spread over.
pub(in crate::store::redis) const SLOTS: u16 = 16_384;

const NO_OWNER: u16 = u16::MAX;

#[derive(Debug)]
pub(in crate::store::redis) struct Topology {
    map: ArcSwap<Map>,
    /// Locked while the map is changed.
    writing: Mutex<()>,
    /// Wakes the watch: the set of servers has changed.
    pub(in crate::store::redis) changed: Notify,
    /// Requests a refresh of the map: a server failed or redirected a call.
    pub(in crate::store::redis) refresh: Notify,
}

/// The servers that decide, and the slots of each.
#[derive(Clone, Debug)]
pub(in crate::store::redis) struct Map {
    pub(in crate::store::redis) masters: Vec<Arc<RedisNode>>,
    slots: SlotOwners,
    /// Servers to ask for the map when no master answers.
    pub(in crate::store::redis) replicas: Vec<Address>,
}

#[derive(Clone, Debug)]
enum SlotOwners {
    /// The only master has all slots.
    All,
    /// For each slot the place of its master in `masters`, or [`NO_OWNER`].
    Each(Box<[u16]>),
}

/// A range of slots, both ends included, and the server that has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::store::redis) struct SlotRange {
    pub(in crate::store::redis) first: u16,
    pub(in crate::store::redis) last: u16,
    pub(in crate::store::redis) master: Address,
}

impl Topology {
    /// One server for all slots, or no known server yet.
    pub(in crate::store::redis) fn new(first: Option<Address>) -> Self {
        let masters = first.into_iter().map(|address| Arc::new(RedisNode::new(address))).collect();
        Self {
            map: ArcSwap::from_pointee(Map { masters, slots: SlotOwners::All, replicas: Vec::new() }),
            writing: Mutex::new(()),
            changed: Notify::new(),
            refresh: Notify::new(),
        }
    }

    pub(in crate::store::redis) fn map(&self) -> Arc<Map> {
        self.map.load_full()
    }

    /// The server that decides about keys of this slot.
    pub(in crate::store::redis) fn node(&self, slot: u16) -> Option<Arc<RedisNode>> {
        self.map.load().node(slot).cloned()
    }

    /// Gives all slots to this server.
    pub(in crate::store::redis) fn install_one(&self, address: &Address) {
        let _writing = self.writing.lock();
        let masters = vec![self.map().known_or_new(address)];
        self.install(Map { masters, slots: SlotOwners::All, replicas: Vec::new() });
    }

    /// Gives these slots to these servers.
    pub(in crate::store::redis) fn install_ranges(&self, ranges: &[SlotRange], replicas: Vec<Address>) {
        let _writing = self.writing.lock();
        let before = self.map();
        let mut masters: Vec<Arc<RedisNode>> = Vec::new();
        let mut slots = vec![NO_OWNER; usize::from(SLOTS)].into_boxed_slice();
        for SlotRange { first, last, master } in ranges {
            let place = masters.iter().position(|node| node.address == *master).unwrap_or_else(|| {
                masters.push(before.known_or_new(master));
                masters.len() - 1
            });
            slots[usize::from(*first)..=usize::from(*last)].fill(place_of(place));
        }
        self.install(Map { masters, slots: SlotOwners::Each(slots), replicas });
    }

    /// Gives one slot to the server at `address`, after a redirection.
    pub(in crate::store::redis) fn move_slot(&self, slot: u16, address: &Address) -> Arc<RedisNode> {
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
        if let SlotOwners::All = map.slots {
            map.slots = SlotOwners::Each(vec![0; usize::from(SLOTS)].into_boxed_slice());
        }
        if let SlotOwners::Each(slots) = &mut map.slots {
            slots[usize::from(slot)] = place_of(place);
        }
        self.install(map);
        self.refresh.notify_one();
        node
    }

    /// Adds the server of an `ASK` redirection, which may have no slot of its own yet.
    pub(in crate::store::redis) fn add_server(&self, address: &Address) -> Arc<RedisNode> {
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
    fn node(&self, slot: u16) -> Option<&Arc<RedisNode>> {
        match &self.slots {
            SlotOwners::All => self.masters.first(),
            SlotOwners::Each(slots) => self.masters.get(usize::from(slots[usize::from(slot)])),
        }
    }

    pub(in crate::store::redis) fn has(&self, node: &Arc<RedisNode>, slot: u16) -> bool {
        self.node(slot).is_some_and(|owner| Arc::ptr_eq(owner, node))
    }

    /// The known server at this address, so that a server keeps its state when the map changes.
    fn known_or_new(&self, address: &Address) -> Arc<RedisNode> {
        let known = self.masters.iter().find(|node| node.address == *address);
        known.map_or_else(|| Arc::new(RedisNode::new(address.clone())), Arc::clone)
    }
}

fn place_of(place: usize) -> u16 {
    u16::try_from(place).expect("no more masters than slots")
}

// The hash slot of a name.

static CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The hash slot of a name. If the name has a part in braces, only that part counts.
pub(in crate::store::redis) fn of(name: &[u8]) -> u16 {
    CRC16.checksum(tag(name)) % SLOTS
}

fn tag(name: &[u8]) -> &[u8] {
    let tagged = memchr::memchr(b'{', name).and_then(|open| {
        let rest = &name[open + 1..];
        memchr::memchr(b'}', rest).map(|close| &rest[..close])
    });
    tagged.filter(|tag| !tag.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::transport::fault::DownCause;

    #[test]
    fn slots_are_those_of_redis() {
        // As `CLUSTER KEYSLOT` answers.
        assert_eq!(of(b"123456789"), 12_739);
        assert_eq!(of(b"foo"), 12_182);
        assert_eq!(of(b""), 0);
    }

    #[test]
    fn what_stands_in_the_first_braces_decides() {
        assert_eq!(of(b"{user1000}.following"), of(b"user1000"));
        assert_eq!(of(b"foo{{bar}}zap"), of(b"{bar"));
        assert_eq!(of(b"foo{bar}{zap}"), of(b"bar"));
        assert_ne!(of(b"foo{}{bar}"), of(b"bar"));
        assert_ne!(of(b"{foo"), of(b"foo"));
    }

    fn address(port: u16) -> Address {
        Address::Tcp { host: "127.0.0.1".to_owned(), port, tls: false }
    }

    fn halves(first: u16, second: u16) -> [SlotRange; 2] {
        [
            SlotRange { first: 0, last: 8191, master: address(first) },
            SlotRange { first: 8192, last: SLOTS - 1, master: address(second) },
        ]
    }

    fn owner(topology: &Topology, slot: u16) -> Address {
        topology.node(slot).expect("a server has it").address.clone()
    }

    #[test]
    fn servers_keep_their_breaker_when_the_map_changes() {
        let topology = Topology::new(Some(address(1)));
        topology.install_ranges(&halves(1, 2), Vec::new());
        let second = topology.node(9000).expect("a server has it");
        second.fail(0, DownCause::Timeout);
        topology.install_ranges(&halves(3, 2), Vec::new());
        assert_eq!(owner(&topology, 0), address(3));
        assert!(!topology.node(9000).expect("a server has it").is_up());
    }

    #[test]
    fn servers_without_slots_retire() {
        let topology = Topology::new(Some(address(1)));
        let first = topology.node(0).expect("a server has it");
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
        assert!(topology.node(9000).is_none(), "no server has it");
        topology.move_slot(9000, &address(3));
        assert_eq!((owner(&topology, 7), owner(&topology, 9000)), (address(1), address(3)));
    }
}
