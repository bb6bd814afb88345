//! The store in Redis: the contract on a real server, and the keys it leaves there.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use portcullis::rules::decision::{Batch, Settlement, Verdict};
use portcullis::rules::key::{Key, KeyHash, KeyHasher};
use portcullis::store::redis::{HashSlot, Mode, RedisSettings, RedisStore, Time};
use portcullis::store::{Observer, Store, StoreError};
use portcullis::words::clock::{Clock, ManualClock, Timestamp};

use crate::support::{Fixture, Limit, count, midnight};
use crate::surroundings::RedisServer;

hold_to_contract!(Redis);
hold_to_outcomes!(Redis);

/// A Redis under a clock with a hand, and keys of one test.
pub(crate) struct Redis {
    server: Arc<RedisServer>,
    prefix: String,
    clock: ManualClock,
    store: Shared,
}

/// The shared store alone: all its servers answer.
pub(crate) struct Shared(RedisStore);

impl Redis {
    fn by(time: Time, clock: ManualClock) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = server();
        let prefix = format!("test-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let settings = RedisSettings {
            urls: vec![server.url().parse().expect("an address")],
            mode: Mode::Single,
            timeout: Duration::from_secs(10),
            password_file: None,
            wait: 0,
            key_prefix: prefix.clone(),
            hash_slot: HashSlot::Key,
        };
        let store = Shared(RedisStore::new(settings, time, Arc::new(Unobserved)));
        Self { server, prefix, clock, store }
    }
}

impl Fixture for Redis {
    type Store = Shared;

    fn new() -> Self {
        let clock = ManualClock::at(midnight());
        Self::by(Time::Given(Clock::Manual(clock.clone())), clock)
    }

    fn store(&self) -> &Shared {
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

impl Drop for Redis {
    /// Whatever a test does: each key has an end, a name of bounded length, and no more bytes than a log of two thousand.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let script = format!(
            "local wrong = {{}} \
             for _, key in ipairs(redis.call('KEYS', '{prefix}:*')) do \
                 local ttl, size = redis.call('PTTL', key), redis.call('STRLEN', key) \
                 if ttl < 0 or size > 12200 or #key ~= {length} then \
                     wrong[#wrong + 1] = key .. ' lives ' .. ttl .. ' ms with ' .. size .. ' bytes' \
                 end \
                 redis.call('UNLINK', key) \
             end \
             return wrong",
            prefix = self.prefix,
            length = self.prefix.len() + 33,
        );
        assert_eq!(self.server.cli(&["EVAL", &script, "0"]), "");
    }
}

impl Store for Shared {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        self.0
            .decide(batch, false, |_| fastrand::bool())
            .await
            .verdicts
            .into_iter()
            .map(|verdict| verdict.ok_or(StoreError::Outage))
            .collect()
    }

    async fn look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        self.0.look(batch, false).await.into_iter().map(|verdict| verdict.ok_or(StoreError::Outage)).collect()
    }

    async fn settle(&self, settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        if self.0.settle(settlements).await.complete { Ok(()) } else { Err(StoreError::Outage) }
    }

    async fn reset(&self, keys: &[KeyHash]) -> Result<(), StoreError> {
        if self.0.reset(keys).await.complete { Ok(()) } else { Err(StoreError::Outage) }
    }
}

#[derive(Debug)]
struct Unobserved;

impl Observer for Unobserved {
    fn round_trip(&self, _span: Duration) {}

    fn failed(&self, _cause: &'static str) {}

    fn went_down(&self) {}

    fn overloaded(&self) {}
}

/// The server of this process. It ends with the last test that uses it.
fn server() -> Arc<RedisServer> {
    static SERVER: Mutex<Weak<RedisServer>> = Mutex::new(Weak::new());
    let mut shared = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(RedisServer::start());
        *shared = Arc::downgrade(&server);
        server
    })
}

#[tokio::test]
async fn a_thousand_at_once_are_a_thousand_by_the_clock_of_the_server() {
    let fixture = Arc::new(Redis::by(Time::OfServer, ManualClock::default()));
    let limit = Limit::rates("1000/minute; 9999/hour");
    let ask = |_| {
        let (fixture, limit) = (Arc::clone(&fixture), limit.clone());
        tokio::spawn(async move { count(&*fixture, 1, &limit, "alice").await })
    };
    let asked: Vec<_> = (0..1500).map(ask).collect();
    let mut passed = 0;
    for task in asked {
        passed += task.await.expect("no task panics");
    }
    assert_eq!(passed, 1000);
}

#[tokio::test]
async fn what_one_core_counts_the_next_one_sees() {
    let fixture = Redis::new();
    let other = Redis {
        server: Arc::clone(&fixture.server),
        prefix: fixture.prefix.clone(),
        clock: fixture.clock.clone(),
        store: Shared(fixture.store.0.on_another_core()),
    };
    let limit = Limit::rates("5/minute");
    assert_eq!(count(&fixture, 3, &limit, "alice").await, 3);
    assert_eq!(count(&other, 3, &limit, "alice").await, 2);
    assert_eq!(count(&fixture, 3, &limit, "alice").await, 0);
}
