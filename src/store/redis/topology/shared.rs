//! The state of Redis that the cores of a process share.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time;

use super::node::{Eviction, RedisNode};
use crate::rules::key::KeyHasher;
use crate::store::leases::HeldLeases;
use crate::store::parts::{HeldPart, Part, ProcessMark};
use crate::store::redis::scripts::{bans, sessions};
use crate::store::redis::settings::{HashSlot, Mode, RedisSettings, Time};
use crate::store::redis::topology::node;
use crate::store::redis::topology::node::Topology;
use crate::store::redis::transport::connect::Connector;
use crate::store::redis::transport::connection::ReplicaWait;
use crate::store::redis::{ReceivedQuestions, scripts};
use crate::store::{LiveKeyRing, Observer};
use crate::words::clock::Clock;

/// The state of Redis that the cores of a process share.
#[derive(Debug)]
pub struct SharedRedis {
    pub(in crate::store::redis) settings: RedisSettings,
    pub(in crate::store::redis) time: Time,
    /// Hashes with the prefix alone, so that there is no secret that gateways must agree on or that Redis could lose.
    pub(in crate::store::redis) hasher: KeyHasher,
    pub(in crate::store) observer: Arc<dyn Observer>,
    pub(in crate::store::redis) connector: Connector,
    pub(in crate::store::redis) topology: Topology,
    /// Sent when the state of a server or of this struct has changed.
    pub(in crate::store::redis) updates: watch::Sender<()>,
    /// The servers were discovered at least once, in modes that need it.
    pub(in crate::store::redis) is_discovered: AtomicBool,
    /// The keys that the gateway signs with: those of this process until Redis sends those of all gateways.
    pub(in crate::store::redis) key_ring: Arc<LiveKeyRing>,
    /// Redis was asked for these keys at least once.
    pub(in crate::store::redis) keys_requested: AtomicBool,
    /// Redis was asked for the bans at least once.
    pub(in crate::store::redis) bans_requested: AtomicBool,
    /// Redis was asked for the sessions at least once.
    pub(in crate::store::redis) sessions_requested: AtomicBool,
    /// Whether this gateway may publish on the channel, as far as is known.
    pub(in crate::store::redis) may_publish: AtomicBool,
    /// The questions of other gateways to this one.
    pub(in crate::store::redis) questions: ReceivedQuestions,
    /// The units that this process has leased.
    pub(in crate::store) leases: HeldLeases,
    /// The part of every limit that this process may grant while Redis is away.
    pub(in crate::store) part: HeldPart,
    /// The number under which slots are taken from now on.
    holder: AtomicU32,
}

/// Which servers are up, as far as is known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Status {
    /// Every server that decides is up.
    pub up: bool,
    /// The servers that are down.
    pub down: Vec<DownServer>,
}

/// A server that is down.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DownServer {
    /// Such as `127.0.0.1:6379`.
    pub server: String,
    /// The label of the metric: `timeout`, `connection`, `readonly`.
    pub cause: &'static str,
}

impl SharedRedis {
    /// Nothing is connected yet.
    pub fn new(settings: RedisSettings, time: Time, observer: Arc<dyn Observer>) -> Self {
        let first = settings.urls.first().expect("a Redis has an address");
        let topology = Topology::new(match settings.mode {
            Mode::Single | Mode::Cluster => Some(first.address.clone()),
            Mode::Sentinel => None,
        });
        let clock = match &time {
            Time::OfServer => Clock::system(),
            Time::Given(clock) => clock.clone(),
        };
        Self {
            key_ring: Arc::new(LiveKeyRing::new(clock.now())),
            keys_requested: AtomicBool::new(false),
            hasher: hasher(&settings),
            connector: Connector::new(
                first.login.clone(),
                settings.password_file.clone(),
                first.database,
                settings.timeout,
            ),
            topology,
            updates: watch::Sender::new(()),
            is_discovered: AtomicBool::new(settings.mode == Mode::Single),
            bans_requested: AtomicBool::new(false),
            sessions_requested: AtomicBool::new(false),
            may_publish: AtomicBool::new(true),
            questions: ReceivedQuestions::default(),
            // In a cluster a key and its leases may be moved to another server one after the other.
            leases: HeldLeases::new(clock.clone(), settings.mode != Mode::Cluster),
            part: HeldPart::new(clock, ProcessMark::of_this_process()),
            holder: AtomicU32::new(fastrand::u32(..)),
            settings,
            time,
            observer,
        }
    }

    /// There are so many gateways on this Redis, always: each has an equal part.
    pub fn fix_nodes(&self, nodes: NonZeroU32) {
        self.leases.set_nodes(nodes);
        self.part.fix(nodes);
    }

    /// The replicas that a charge must reach before it counts as made, if any. The wait is shorter than a server may be silent.
    pub(in crate::store::redis) fn replica_wait(&self) -> Option<ReplicaWait> {
        let replicas = NonZeroU32::new(self.settings.wait)?;
        Some(ReplicaWait { replicas, patience: self.settings.timeout / 2 })
    }

    /// The keys that the gateway signs with.
    pub fn key_ring(&self) -> &Arc<LiveKeyRing> {
        &self.key_ring
    }

    pub fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    /// Waits until every server was probed once and asked for signing keys, bans and sessions if it has them, but no longer than
    /// `patience`. A task must run [`watch`](crate::store::redis::settings::watch) meanwhile.
    pub async fn first_contact(&self, patience: Duration) {
        let mut updates = self.updates.subscribe();
        let contact = async {
            while !self.is_contacted() {
                // The sender is in `self`: it outlives this.
                drop(updates.changed().await);
            }
        };
        drop(time::timeout(patience, contact).await);
    }

    /// Waits until this gateway holds a part of every limit, but no longer than `patience`, and only while Redis is up.
    pub async fn first_part(&self, patience: Duration) {
        let mut updates = self.updates.subscribe();
        let part = async {
            while self.part().is_none() && self.status().up {
                // The sender is in `self`: it outlives this.
                drop(updates.changed().await);
            }
        };
        drop(time::timeout(patience, part).await);
    }

    pub fn status(&self) -> Status {
        let map = self.topology.map();
        let down = map.masters.iter().filter_map(|node| {
            let cause = node.state().cause?;
            Some(DownServer { server: node.address.to_string(), cause: cause.word() })
        });
        let mut down: Vec<DownServer> = down.collect();
        if map.masters.is_empty() {
            let server = self.settings.urls[0].sentinel().to_string();
            down.push(DownServer { server, cause: "nomaster" });
        }
        Status { up: down.is_empty(), down }
    }

    /// The servers that drop keys when their memory is short.
    pub fn evictions(&self) -> Vec<Eviction> {
        self.topology.map().masters.iter().filter_map(|node| node.eviction.lock().clone()).collect()
    }

    /// The part of every limit that this gateway may grant while Redis is away.
    pub fn part(&self) -> Part {
        self.part.now()
    }

    /// How many keys the servers have, as of some seconds ago.
    pub fn keys(&self) -> u64 {
        self.topology.map().masters.iter().map(|node| node.keys.load(Ordering::Relaxed)).sum()
    }

    /// Takes slots under a new number from now on. Slots whose answers were lost in an outage are under the old number,
    /// so they are not renewed and end with their leases.
    pub(in crate::store::redis) fn rotate_holder(&self) {
        self.holder.store(fastrand::u32(..), Ordering::Release);
    }

    pub(in crate::store::redis) fn holder(&self) -> u32 {
        self.holder.load(Ordering::Acquire)
    }

    /// The channel of resets, bans, sessions and questions.
    pub(in crate::store::redis) fn channel(&self) -> String {
        format!("{}:resets", self.settings.key_prefix)
    }

    /// Wakes all tasks that wait for a change.
    pub(in crate::store::redis) fn notify(&self) {
        self.updates.send_replace(());
    }

    fn is_contacted(&self) -> bool {
        let is_discovered = self.is_discovered.load(Ordering::Acquire);
        let is_probed =
            is_discovered && self.topology.map().masters.iter().all(|node| node.probed.load(Ordering::Acquire));
        let prefix = &self.settings.key_prefix;
        let has = |asked: &AtomicBool, name: &str| asked.load(Ordering::Acquire) || self.owner_of(name).is_none();
        is_probed
            && has(&self.keys_requested, &scripts::keyring_name(prefix))
            && has(&self.bans_requested, &bans::name(prefix))
            && has(&self.sessions_requested, &sessions::name(prefix))
    }

    /// The server of the key with this name, if it is up.
    pub(in crate::store::redis) fn owner_of(&self, name: &str) -> Option<Arc<RedisNode>> {
        self.topology.node(node::of(name.as_bytes())).filter(|node| node.is_up())
    }

    /// Waits until the server of the key with this name is up.
    pub(in crate::store::redis) async fn wait_for_owner(&self, name: &str) -> Arc<RedisNode> {
        let mut updates = self.updates.subscribe();
        loop {
            if let Some(node) = self.owner_of(name) {
                return node;
            }
            // The sender is in `self`: it outlives this.
            drop(updates.changed().await);
        }
    }

    /// Waits until another server has the key, or this server is down: the key may have changed then.
    pub(in crate::store::redis) async fn wait_for_other_owner(&self, name: &str, node: &Arc<RedisNode>) {
        let mut updates = self.updates.subscribe();
        while self.owner_of(name).is_some_and(|holder| Arc::ptr_eq(&holder, node)) {
            drop(updates.changed().await);
        }
    }
}

fn hasher(settings: &RedisSettings) -> KeyHasher {
    let hasher = KeyHasher::shared(&settings.key_prefix);
    match settings.hash_slot {
        HashSlot::Key => hasher,
        HashSlot::Client => hasher.beginning_with_client(),
    }
}
