//! The store with failover, held to the contract while Redis answers, its cache of denials included.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use portcullis::rules::key::{Key, KeyHash, KeyHasher};
use portcullis::rules::limit::OnFailure;
use portcullis::store;
use portcullis::store::any_store::Nodes;
use portcullis::store::redis::{HashSlot, Mode};
use portcullis::store::{Failover, Observer, memory, redis};
use portcullis::words::clock::{Clock, ManualClock, Timestamp};

use crate::support::{Fixture, midnight};
use crate::surroundings::RedisServer;

hold_to_contract!(OverRedis);
hold_to_outcomes!(OverRedis);
hold_to_waiting!(OverRedis);

/// A shared store over a Redis that always answers, under a clock with a hand.
pub(crate) struct OverRedis {
    _server: Arc<RedisServer>,
    clock: ManualClock,
    store: Failover,
}

impl Fixture for OverRedis {
    type Store = Failover;

    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (server, clock) = (server(), ManualClock::at(midnight()));
        let settings = store::StoreSettings {
            memory: memory::MemorySettings { max_keys: 10_000, max_sessions: 1000, snapshot: None },
            redis: None,
            on_failure: OnFailure::Deny,
            nodes: Nodes::Fixed(NonZeroU32::MIN),
        };
        let redis = redis::RedisSettings {
            urls: vec![server.url().parse().expect("an address")],
            mode: Mode::Single,
            timeout: Duration::from_secs(10),
            password_file: None,
            wait: 0,
            key_prefix: format!("over-{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
            hash_slot: HashSlot::Key,
        };
        let store = Failover::new(&settings, redis, Clock::Manual(clock.clone()), Arc::new(Answering));
        Self { _server: server, clock, store }
    }

    fn store(&self) -> &Failover {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn set(&self, moment: Timestamp) {
        self.clock.set(moment);
    }

    fn key(&self, name: &str) -> KeyHash {
        let mut key = Key::default();
        key.push(name.as_bytes());
        KeyHasher::new([7; 16]).hash("limit", &key)
    }
}

/// Who knows that nothing is to fail here.
#[derive(Debug)]
struct Answering;

impl Observer for Answering {
    fn round_trip(&self, _span: Duration) {}

    fn failed(&self, cause: &'static str) {
        panic!("redis did not answer: {cause}");
    }

    fn went_down(&self) {}

    fn overloaded(&self) {}
}

/// The server of this process. It ends with the last fixture that uses it.
fn server() -> Arc<RedisServer> {
    static SERVER: Mutex<Weak<RedisServer>> = Mutex::new(Weak::new());
    let mut shared = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(RedisServer::start());
        *shared = Arc::downgrade(&server);
        server
    })
}
