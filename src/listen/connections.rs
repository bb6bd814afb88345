//! Counts, bounds, drains and cuts the connections of the process and of each listener.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time;
use tokio::time::Instant;

use super::ConnectionSettings;

/// The descriptors that the process has open without clients: files, logs, the admin listener.
const OWN_DESCRIPTORS: usize = 20;

/// The descriptors that each core has open: its runtime, a socket for each of a few listeners, connections to Redis.
const DESCRIPTORS_OF_A_CORE: usize = 8;

/// The most descriptors that are kept free for connections to applications.
const MAX_FOR_APPLICATIONS: usize = 4096;

/// Most clients send their next request within this time.
const RETIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// The open connections of the process, of one listener, or of what a listener served at one time. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    group: Arc<ConnectionGroup>,
}

impl Connections {
    /// The connections of a process that may open `descriptors` descriptors (`None`: any number) on `cores` cores.
    /// Settings cannot raise this bound. Some descriptors stay free for connections to applications: one for each
    /// client, up to a number that no application serves at once.
    #[must_use]
    pub fn within_descriptors(descriptors: Option<u64>, cores: usize) -> Self {
        let Some(descriptors) = descriptors else { return Self::default() };
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let free = descriptors.saturating_sub(OWN_DESCRIPTORS + cores * DESCRIPTORS_OF_A_CORE);
        let ceiling = (free - (free / 2).min(MAX_FOR_APPLICATIONS)).max(1);
        Self { group: Arc::new(ConnectionGroup { ceiling: Some(ceiling), ..ConnectionGroup::default() }) }
    }

    /// A group of these connections. It counts against the same bound and is drained with them, and may be drained
    /// alone: when its listener is removed, or serves something else.
    #[must_use]
    pub fn part(&self) -> Self {
        let group = Arc::new(ConnectionGroup {
            parent: Some(Arc::clone(&self.group)),
            clients: Arc::clone(&self.group.clients),
            ..ConnectionGroup::default()
        });
        let mut children = self.group.children.lock();
        children.retain(|child| child.strong_count() > 0);
        children.push(Arc::downgrade(&group));
        drop(children);
        Self { group }
    }

    /// How many connections are open. Tunnels count too.
    pub fn count(&self) -> usize {
        self.group.count.load(Ordering::Relaxed)
    }

    /// How many connections were closed at once, because their listener does not take their peer.
    pub fn rejected(&self) -> u64 {
        self.group.root().rejected.load(Ordering::Relaxed)
    }

    pub(super) fn count_rejected(&self) {
        self.group.count_rejected();
    }

    /// Why new connections had to wait, and how long ago that was last.
    pub fn last_shortage(&self) -> Option<(Arc<str>, Duration)> {
        let shortage = self.group.root().shortage.lock();
        shortage.as_ref().map(|(why, at)| (Arc::clone(why), at.elapsed()))
    }

    /// New connections have to wait.
    pub(super) fn note_shortage(&self, why: &str) {
        *self.group.root().shortage.lock() = Some((why.into(), Instant::now()));
    }

    /// Like [`drain`](Self::drain), for when another process or listener accepts new connections: idle clients may send
    /// one more request, and learn from the response that it was the last one on this connection.
    pub async fn retire(&self) {
        self.group.advance_to(DrainStage::Retiring);
        if time::timeout(RETIRE_TIMEOUT, self.wait_until_empty()).await.is_err() {
            self.drain().await;
        }
    }

    /// Lets every connection finish its current request, and one that is already sent, and then closes it. Returns when all
    /// are closed, tunnels included.
    pub async fn drain(&self) {
        self.group.advance_to(DrainStage::Draining);
        self.wait_until_empty().await;
    }

    async fn wait_until_empty(&self) {
        loop {
            let closed = self.group.closed.notified();
            if self.count() == 0 {
                return;
            }
            closed.await;
        }
    }

    /// Closes every open connection.
    pub fn cut(&self) {
        self.group.advance_to(DrainStage::Cut);
    }

    /// Waits for room, and takes a permit for one connection.
    pub(super) async fn admit(&self, settings: &ConnectionSettings) -> ConnectionPermit {
        let root = self.group.root();
        loop {
            let closed = root.closed.notified();
            if root.try_enter(root.bound(settings.max_connections)) {
                break;
            }
            closed.await;
        }
        let mut group = &self.group;
        while let Some(parent) = &group.parent {
            group.count.fetch_add(1, Ordering::Relaxed);
            group = parent;
        }
        ConnectionPermit { group: Arc::clone(&self.group), client_permit: None }
    }

    /// Returns when the process has room for one more connection.
    pub(super) async fn room(&self, max_connections: usize) {
        let root = self.group.root();
        let max_connections = root.bound(max_connections);
        loop {
            let closed = root.closed.notified();
            if max_connections == 0 || root.count.load(Ordering::Relaxed) < max_connections {
                return;
            }
            closed.await;
        }
    }
}

/// How far the shutdown of connections went. A later stage includes the earlier ones.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum DrainStage {
    Running,
    /// Connections close after their next response.
    Retiring,
    /// Connections close as soon as their requests are answered.
    Draining,
    Cut,
}

#[derive(Debug, Default)]
pub(super) struct ConnectionGroup {
    parent: Option<Arc<ConnectionGroup>>,
    children: Mutex<Vec<Weak<ConnectionGroup>>>,
    count: AtomicUsize,
    /// The bound that follows from the descriptors.
    ceiling: Option<usize>,
    /// A connection closed.
    closed: Notify,
    stage: AtomicU8,
    /// The stage changed.
    pub(super) stage_changed: Notify,
    clients: Arc<ConnectionsPerClient>,
    /// Counted for the process as a whole.
    rejected: AtomicU64,
    /// Why new connections of the process had to wait, and when that was last so.
    shortage: Mutex<Option<(Arc<str>, Instant)>>,
}

impl ConnectionGroup {
    pub(super) fn count_rejected(&self) {
        self.root().rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns when the group has reached this stage.
    pub(super) async fn wait_for_stage(&self, stage: DrainStage) {
        loop {
            let changed = self.stage_changed.notified();
            if self.drain_stage() >= stage {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn drain_stage(&self) -> DrainStage {
        match self.stage.load(Ordering::Acquire) {
            0 => DrainStage::Running,
            1 => DrainStage::Retiring,
            2 => DrainStage::Draining,
            _ => DrainStage::Cut,
        }
    }

    fn advance_to(&self, stage: DrainStage) {
        self.stage.fetch_max(stage as u8, Ordering::AcqRel);
        self.stage_changed.notify_waiters();
        for child in self.children.lock().iter().filter_map(Weak::upgrade) {
            child.advance_to(stage);
        }
    }

    pub(super) fn root(&self) -> &Self {
        let mut group = self;
        while let Some(parent) = &group.parent {
            group = parent;
        }
        group
    }

    /// The bound of the count: the setting or the descriptors; zero: none.
    fn bound(&self, setting: usize) -> usize {
        match self.ceiling {
            Some(ceiling) if setting == 0 || setting > ceiling => ceiling,
            _ => setting,
        }
    }

    /// Counts one more connection, unless there are `max` already. Zero is no bound.
    fn try_enter(&self, max: usize) -> bool {
        if max == 0 {
            self.count.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        self.count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| (count < max).then_some(count + 1)).is_ok()
    }

    fn leave(&self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.closed.notify_waiters();
        if let Some(parent) = &self.parent {
            parent.leave();
        }
    }
}

/// The permit of one connection. Its socket holds it.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    group: Arc<ConnectionGroup>,
    client_permit: Option<ClientPermit>,
}

impl ConnectionPermit {
    pub(super) fn group(&self) -> &Arc<ConnectionGroup> {
        &self.group
    }

    /// Counts the connection for this client. `false`: the client has as many as it may.
    pub(super) fn assign_to(&mut self, client: IpAddr, settings: &ConnectionSettings) -> bool {
        let max = settings.max_connections_per_client;
        if max == 0 {
            return true;
        }
        self.client_permit = ConnectionsPerClient::enter(&self.group.clients, client, max);
        self.client_permit.is_some()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.group.leave();
    }
}

// Bounds the connections of one client. Connections use this table only if such a bound is set, when they open and when
// they close.

/// Connections by client.
#[derive(Debug, Default)]
pub(super) struct ConnectionsPerClient {
    counts: Mutex<HashMap<IpAddr, usize>>,
}

impl ConnectionsPerClient {
    /// Counts one more connection of a client, unless it has `max` already.
    pub(super) fn enter(table: &Arc<Self>, address: IpAddr, max: usize) -> Option<ClientPermit> {
        let client = client(address);
        let mut counts = table.counts.lock();
        let count = counts.entry(client).or_insert(0);
        if *count >= max {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(ClientPermit { table: Arc::clone(table), client })
    }
}

/// A counted connection.
#[derive(Debug)]
pub(super) struct ClientPermit {
    table: Arc<ConnectionsPerClient>,
    client: IpAddr,
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.table.counts.lock().entry(self.client) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// An IPv4 address is one client; of IPv6 a /64 is, because a client with one address of it has them all.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first: &str, second: &str, same_client: bool) {
        let table = Arc::default();
        let _first = ConnectionsPerClient::enter(&table, first.parse().unwrap(), 1).unwrap();
        assert_eq!(ConnectionsPerClient::enter(&table, second.parse().unwrap(), 1).is_none(), same_client);
    }

    #[test]
    fn a_client_is_an_ipv4_address_or_an_ipv6_network() {
        check("192.0.2.1", "192.0.2.1", true);
        check("192.0.2.1", "192.0.2.2", false);
        check("192.0.2.1", "::ffff:192.0.2.1", true);
        check("2001:db8::1", "2001:db8::ffff", true);
        check("2001:db8::1", "2001:db8:0:1::1", false);
    }

    #[test]
    fn a_closed_connection_makes_room_and_leaves_nothing_behind() {
        let table = Arc::default();
        let address = "192.0.2.1".parse().unwrap();
        drop(ConnectionsPerClient::enter(&table, address, 1).unwrap());

        assert!(table.counts.lock().is_empty());
        assert!(ConnectionsPerClient::enter(&table, address, 1).is_some());
    }
}
