//! What the cores of a process share about the Redis they count in.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time;

use super::map::Topology;
use super::node::Node;
use super::slot;
use crate::clock::Clock;
use crate::key::KeyHasher;
use crate::store::LiveKeyRing;
use crate::store::Observer;
use crate::store::redis::scripts;
use crate::store::redis::scripts::bans;
use crate::store::redis::settings::Mode;
use crate::store::redis::settings::Settings;
use crate::store::redis::settings::Time;
use crate::store::redis::transport::connect::Connector;

/// What the cores of a process share.
#[derive(Debug)]
pub struct SharedRedis {
    pub(in crate::store::redis) settings: Settings,
    pub(in crate::store::redis) time: Time,
    /// By the prefix alone: no secret to agree on, to lose with Redis, or to find changed when it comes back.
    pub(in crate::store::redis) hasher: KeyHasher,
    pub(in crate::store::redis) observer: Arc<dyn Observer>,
    pub(in crate::store::redis) connector: Connector,
    pub(in crate::store::redis) topology: Topology,
    /// Something is known of the servers that was not known before.
    pub(in crate::store::redis) news: watch::Sender<()>,
    /// It was asked at least once which servers there are, where that is to be asked.
    pub(in crate::store::redis) surveyed: AtomicBool,
    /// The keys that the gateway signs with: of this process until Redis tells those of all gateways.
    pub(in crate::store::redis) key_ring: Arc<LiveKeyRing>,
    /// It was asked for them at least once.
    pub(in crate::store::redis) asked_for_keys: AtomicBool,
    /// It was asked at least once who is banned.
    pub(in crate::store::redis) asked_for_bans: AtomicBool,
    /// Under which number slots in flight are taken from now on.
    holder: AtomicU32,
}

/// Which servers answer, as far as is known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Status {
    /// Every server that decides answers.
    pub up: bool,
    /// Those that do not.
    pub down: Vec<DownServer>,
}

/// A server that does not answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DownServer {
    /// Such as `127.0.0.1:6379`.
    pub server: String,
    /// A word, the same as in the label of the metric: `timeout`, `connection`, `readonly`.
    pub cause: &'static str,
}

impl SharedRedis {
    /// Nothing is connected yet.
    pub fn new(settings: Settings, time: Time, observer: Arc<dyn Observer>) -> Self {
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
            asked_for_keys: AtomicBool::new(false),
            hasher: KeyHasher::shared(&settings.key_prefix),
            connector: Connector::new(first.login.clone(), first.database),
            topology,
            news: watch::Sender::new(()),
            surveyed: AtomicBool::new(settings.mode == Mode::Single),
            asked_for_bans: AtomicBool::new(false),
            holder: AtomicU32::new(fastrand::u32(..)),
            settings,
            time,
            observer,
        }
    }

    /// What the gateway signs with.
    pub fn key_ring(&self) -> &Arc<LiveKeyRing> {
        &self.key_ring
    }

    /// Waits until every server was asked once whether it answers, and those that keep them for the keys and the bans,
    /// but no longer than `patience`. Someone must [`watch`](crate::store::redis::watch::watch) meanwhile.
    pub async fn first_contact(&self, patience: Duration) {
        let mut news = self.news.subscribe();
        let met = async {
            while !self.is_surveyed_whole() {
                // The sender is in `self`: it outlives this.
                drop(news.changed().await);
            }
        };
        drop(time::timeout(patience, met).await);
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

    /// How many keys the servers hold, as they said some seconds ago.
    pub fn keys(&self) -> u64 {
        self.topology.map().masters.iter().map(|node| node.keys.load(Ordering::Relaxed)).sum()
    }

    /// From now on slots in flight are taken under another number: what was lost on the way during an outage is held
    /// under the old one, which nobody renews, and ends with its lease.
    pub(in crate::store::redis) fn rotate_holder(&self) {
        self.holder.store(fastrand::u32(..), Ordering::Release);
    }

    pub(in crate::store::redis) fn holder(&self) -> u32 {
        self.holder.load(Ordering::Acquire)
    }

    /// Where resets and bans are told.
    pub(in crate::store::redis) fn channel(&self) -> String {
        format!("{}:resets", self.settings.key_prefix)
    }

    /// Wakes whoever waits for a change of what is known.
    pub(in crate::store::redis) fn tell(&self) {
        self.news.send_replace(());
    }

    fn is_surveyed_whole(&self) -> bool {
        let is_surveyed = self.surveyed.load(Ordering::Acquire);
        let is_met = is_surveyed && self.topology.map().masters.iter().all(|node| node.probed.load(Ordering::Acquire));
        let prefix = &self.settings.key_prefix;
        let has = |asked: &AtomicBool, name: &str| asked.load(Ordering::Acquire) || self.holder_of(name).is_none();
        is_met
            && has(&self.asked_for_keys, &scripts::keyring_name(prefix))
            && has(&self.asked_for_bans, &bans::name(prefix))
    }

    /// The server that keeps what has this name, if it is known to answer.
    pub(in crate::store::redis) fn holder_of(&self, name: &str) -> Option<Arc<Node>> {
        self.topology.node(slot::of(name.as_bytes())).filter(|node| node.is_up())
    }

    /// Waits for that server.
    pub(in crate::store::redis) async fn found(&self, name: &str) -> Arc<Node> {
        let mut news = self.news.subscribe();
        loop {
            if let Some(node) = self.holder_of(name) {
                return node;
            }
            // The sender is in `self`: it outlives this.
            drop(news.changed().await);
        }
    }

    /// Waits until another server keeps it, or this one does not answer: what it says then may be new.
    pub(in crate::store::redis) async fn gone(&self, name: &str, node: &Arc<Node>) {
        let mut news = self.news.subscribe();
        while self.holder_of(name).is_some_and(|holder| Arc::ptr_eq(&holder, node)) {
            drop(news.changed().await);
        }
    }
}
