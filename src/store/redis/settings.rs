//! The `store.redis` section, and whose clock decides.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::rules::key::{CLIENT_DIGITS, KeyHash};
use crate::store::key_ring::Resets;
use crate::store::redis::state::{bans, in_flight, keyring, parts, resets, sessions};
use crate::store::redis::topology::node::RedisNode;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::topology::{cluster, node_monitor, sentinel};
use crate::store::redis::transport::connect::Url;
use crate::words::clock::Clock;
use crate::words::digits;
use crate::words::word::words;

/// The `store.redis` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RedisSettings {
    /// At least one URL; several for `cluster` and `sentinel`.
    pub urls: Vec<Url>,
    /// The file that holds the password, read for each connection; `None`: the URL has it, or there is none.
    pub password_file: Option<PathBuf>,
    pub mode: Mode,
    /// How long a decision waits for Redis.
    pub timeout: Duration,
    /// So many replicas must have a charge before it counts as made.
    pub wait: u32,
    /// The prefix of every key, before a `:`.
    pub key_prefix: String,
    pub hash_slot: HashSlot,
}

impl RedisSettings {
    /// Where the configuration leaves it out.
    pub const TIMEOUT: Duration = Duration::from_millis(100);

    /// Where the configuration leaves it out.
    pub const WAIT: u32 = 0;

    /// Where the configuration leaves it out.
    pub const KEY_PREFIX: &str = "portcullis";

    pub(super) fn key_names(&self) -> KeyNames<'_> {
        KeyNames { prefix: &self.key_prefix, hash_slot: self.hash_slot }
    }
}

words! {
    /// How the Redis servers work together.
    #[derive(Default)]
    pub enum Mode {
        #[default]
        Single = "single",
        Cluster = "cluster",
        Sentinel = "sentinel",
    }
}

/// Whose clock decides.
#[derive(Clone, Debug)]
pub enum Time {
    /// The clock of the Redis server, so that gateways with wrong clocks agree.
    OfServer,
    /// A clock whose time each call carries to Redis, for tests that control the time.
    Given(Clock),
}

// The names of counted keys in Redis, and so their hash slots in a cluster.

/// Each key ends with so many hexadecimal digits.
pub(super) const KEY_DIGITS: usize = 32;

words! {
    /// What decides in which hash slot of a cluster a key is.
    #[derive(Default)]
    pub enum HashSlot {
        /// The whole key, so that all servers have as much to do.
        #[default]
        Key = "key",
        /// The client in the key, if there is one, so that one call decides all limits of a client.
        Client = "client",
    }
}

/// How the names of keys are made.
#[derive(Clone, Copy, Debug)]
pub struct KeyNames<'p> {
    pub prefix: &'p str,
    pub hash_slot: HashSlot,
}

impl KeyNames<'_> {
    /// `PREFIX:` and the digits of the key. Where the client decides, its digits stand before them, in braces: of a name with braces
    /// Redis hashes only what is in them.
    pub fn name(self, key: KeyHash) -> String {
        with_digits(key, |digits| match self.hash_slot {
            HashSlot::Key => [self.prefix, ":", digits].concat(),
            HashSlot::Client => [self.prefix, ":{", &digits[..CLIENT_DIGITS], "}:", digits].concat(),
        })
    }

    /// The name of what is leased of a key. It is not in the hash slot of the key.
    pub(super) fn leases_name(self, key: KeyHash) -> String {
        with_digits(key, |digits| [self.prefix, ":leases:", digits].concat())
    }
}

fn with_digits(key: KeyHash, name: impl FnOnce(&str) -> String) -> String {
    let digits: [u8; KEY_DIGITS] = digits::hex(key.0);
    name(str::from_utf8(&digits).expect("digits are ASCII"))
}

// One task a process that discovers the servers, monitors each of them, follows resets, bans, sessions and signing keys,
// and keeps the part of this gateway.

/// Runs until `stop` is cancelled.
pub async fn watch(shared: Arc<SharedRedis>, resets: Resets, stop: CancellationToken) {
    let _stopped = stop.run_until_cancelled(forever(shared, resets)).await;
}

async fn forever(shared: Arc<SharedRedis>, resets: Resets) {
    let mut tasks = JoinSet::new();
    tasks.spawn(bans::follow(Arc::clone(&shared), Arc::clone(resets.bans())));
    let (sessions, clock) = (resets.sessions(), resets.clock());
    tasks.spawn(sessions::follow(Arc::clone(&shared), Arc::clone(sessions), clock.clone()));
    tasks.spawn(sessions::tell_uses(Arc::clone(&shared), Arc::clone(sessions), clock.clone()));
    tasks.spawn(resets::listen(Arc::clone(&shared), resets.clone()));
    tasks.spawn(keyring::follow(Arc::clone(&shared), Arc::clone(resets.bans())));
    tasks.spawn(in_flight::follow(Arc::clone(&shared)));
    tasks.spawn(parts::follow(Arc::clone(&shared)));
    match shared.settings.mode {
        Mode::Single => {}
        Mode::Cluster => drop(tasks.spawn(cluster::follow(Arc::clone(&shared)))),
        Mode::Sentinel => {
            tasks.spawn(sentinel::follow(Arc::clone(&shared)));
            tasks.spawn(sentinel::listen(Arc::clone(&shared)));
        }
    }
    let mut monitored: Vec<Arc<RedisNode>> = Vec::new();
    loop {
        monitored.retain(|node| !node.is_retired());
        for node in &shared.topology.map().masters {
            if !monitored.iter().any(|known| Arc::ptr_eq(known, node)) {
                tasks.spawn(node_monitor::monitor(Arc::clone(&shared), Arc::clone(node), resets.clone()));
                monitored.push(Arc::clone(node));
            }
        }
        tokio::select! {
            () = shared.topology.changed.notified() => shared.notify(),
            Some(_) = tasks.join_next() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_of_the_client_stand_in_braces() {
        let key = KeyHash(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        let name = |hash_slot| KeyNames { prefix: "gate", hash_slot }.name(key);
        assert_eq!(name(HashSlot::Key), "gate:0123456789abcdeffedcba9876543210");
        assert_eq!(name(HashSlot::Client), "gate:{012345}:0123456789abcdeffedcba9876543210");
    }
}
