//! All connections of the process: counted, bounded, drained and cut together.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time;

use super::Settings;
use super::per_client::PerClient;
use super::per_client::Place;

/// Connections that stand, of the process or of one listener. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    group: Arc<Group>,
}

impl Connections {
    /// Those of a process that may have so many descriptors (`None`: any number) on so many cores, whatever its settings
    /// say. Of these some stay free for connections to applications, where what clients take must not be missing: one for
    /// each client, up to as many as no application serves at once.
    #[must_use]
    pub fn within_descriptors(descriptors: Option<u64>, cores: usize) -> Self {
        let Some(descriptors) = descriptors else { return Self::default() };
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let free = descriptors.saturating_sub(OWN_DESCRIPTORS + cores * DESCRIPTORS_OF_A_CORE);
        let ceiling = (free - (free / 2).min(OF_APPLICATIONS)).max(1);
        Self { group: Arc::new(Group { ceiling: Some(ceiling), ..Group::default() }) }
    }

    /// Those of one listener: bounded and drained with these, and drained by themselves when the listener goes.
    #[must_use]
    pub fn of_listener(&self) -> Self {
        let group = Arc::new(Group {
            parent: Some(Arc::clone(&self.group)),
            clients: Arc::clone(&self.group.clients),
            ..Group::default()
        });
        let mut children = self.group.children.lock();
        children.retain(|child| child.strong_count() > 0);
        children.push(Arc::downgrade(&group));
        drop(children);
        Self { group }
    }

    /// How many stand; tunnels are connections too.
    pub fn count(&self) -> usize {
        self.group.count.load(Ordering::Relaxed)
    }

    /// The same as [`drain`](Self::drain) where clients that come again find somebody: those who rest between two
    /// requests may take a while to ask once more, and learn from the answer that it was the last one here.
    pub async fn retire(&self) {
        self.group.order(Order::Retire);
        if time::timeout(RETIRING, self.all_left()).await.is_err() {
            self.drain().await;
        }
    }

    /// Lets every connection finish the request it is at, and one that is on its way, then close; returns when all
    /// have, tunnels included.
    pub async fn drain(&self) {
        self.group.order(Order::Drain);
        self.all_left().await;
    }

    async fn all_left(&self) {
        loop {
            let left = self.group.left.notified();
            if self.count() == 0 {
                return;
            }
            left.await;
        }
    }

    /// Closes every connection that still stands.
    pub fn cut(&self) {
        self.group.order(Order::Cut);
    }

    /// A place for a connection, as soon as there is one.
    pub(super) async fn admit(&self, settings: &Settings) -> ConnectionPermit {
        let root = self.group.root();
        loop {
            let left = root.left.notified();
            if root.try_enter(root.bound(settings.max_connections)) {
                break;
            }
            left.await;
        }
        let mut group = &self.group;
        while let Some(parent) = &group.parent {
            group.count.fetch_add(1, Ordering::Relaxed);
            group = parent;
        }
        ConnectionPermit { group: Arc::clone(&self.group), place: None }
    }

    /// Returns when the process has room for one more connection.
    pub(super) async fn room(&self, max_connections: usize) {
        let root = self.group.root();
        let max_connections = root.bound(max_connections);
        loop {
            let left = root.left.notified();
            if max_connections == 0 || root.count.load(Ordering::Relaxed) < max_connections {
                return;
            }
            left.await;
        }
    }
}

/// What connections are told; later ones include earlier ones.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Order {
    Run,
    Retire,
    Drain,
    Cut,
}

#[derive(Debug, Default)]
pub(super) struct Group {
    parent: Option<Arc<Group>>,
    children: Mutex<Vec<Weak<Group>>>,
    count: AtomicUsize,
    /// The most there can be.
    ceiling: Option<usize>,
    /// Someone closed.
    left: Notify,
    order: AtomicU8,
    /// The order changed.
    pub(super) ordered: Notify,
    clients: Arc<PerClient>,
}

impl Group {
    pub(super) fn current_order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Run,
            1 => Order::Retire,
            2 => Order::Drain,
            _ => Order::Cut,
        }
    }

    fn order(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        self.ordered.notify_waiters();
        for child in self.children.lock().iter().filter_map(Weak::upgrade) {
            child.order(order);
        }
    }

    pub(super) fn root(&self) -> &Self {
        let mut group = self;
        while let Some(parent) = &group.parent {
            group = parent;
        }
        group
    }

    /// What bounds the count: the setting, the descriptors, or nothing, which is zero.
    fn bound(&self, setting: usize) -> usize {
        match self.ceiling {
            Some(ceiling) if setting == 0 || setting > ceiling => ceiling,
            _ => setting,
        }
    }

    /// Counts one more, unless there are `most` already. Zero is no bound.
    fn try_enter(&self, most: usize) -> bool {
        if most == 0 {
            self.count.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        self.count
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| (count < most).then_some(count + 1))
            .is_ok()
    }

    fn leave(&self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.left.notify_waiters();
        if let Some(parent) = &self.parent {
            parent.leave();
        }
    }
}

/// What the process has open before anybody connects: files, logs, the admin listener.
const OWN_DESCRIPTORS: usize = 20;

/// What each core has open besides: its runtime, a socket for each of a few listeners, connections to Redis.
const DESCRIPTORS_OF_A_CORE: usize = 8;

/// What is kept for connections to applications, at most. Beyond it a request waits for a descriptor.
const OF_APPLICATIONS: usize = 4096;

/// The place of one connection; it goes with its socket.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    group: Arc<Group>,
    place: Option<Place>,
}

impl ConnectionPermit {
    pub(super) fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Makes it one of this client's. `false`: the client has all it may have.
    pub(super) fn belong_to(&mut self, client: IpAddr, settings: &Settings) -> bool {
        let most = settings.max_connections_per_client;
        if most == 0 {
            return true;
        }
        self.place = PerClient::enter(&self.group.clients, client, most);
        self.place.is_some()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.group.leave();
    }
}

/// A client that asks now and then has asked by then.
const RETIRING: Duration = Duration::from_secs(5);
