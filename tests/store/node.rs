//! A gateway reduced to its store, with a real Redis.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use portcullis::clock::Clock;
use portcullis::decision::Batch;
use portcullis::decision::Charge;
use portcullis::decision::Settlement;
use portcullis::decision::Verdict;
use portcullis::decision::batch::Items;
use portcullis::key::KeyHash;
use portcullis::limit::OnFailure;
use portcullis::store;
use portcullis::store::Failover;
use portcullis::store::Observer;
use portcullis::store::Store;
use portcullis::store::StoreError;
use portcullis::store::memory;
use portcullis::store::redis;
use portcullis::store::redis::HashSlot;
use portcullis::store::redis::Mode;
use portcullis::store::settings::Nodes;
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use crate::support::Limit;
use crate::support::passing;
use crate::surroundings::RedisServer;
use crate::surroundings::Stopwatch;

/// A gateway as far as its store goes, with its watch over Redis.
pub(crate) struct Node {
    pub(crate) store: Failover,
    _watch: DropGuard,
}

#[derive(Debug)]
struct NoObserver;

impl Observer for NoObserver {
    fn round_trip(&self, _span: Duration) {}

    fn failed(&self, _cause: &'static str) {}

    fn went_down(&self) {}

    fn overloaded(&self) {}
}

/// What a charge is made for.
pub(crate) type Asked<'l> = (&'l Limit, u128, OnFailure);

impl Node {
    pub(crate) async fn on(server: &RedisServer, nodes: u32) -> Self {
        Self::start(&[server.url()], Mode::Single, nodes).await
    }

    pub(crate) async fn start(urls: &[String], mode: Mode, nodes: u32) -> Self {
        Self::waiting(urls, mode, nodes, Duration::from_millis(200)).await
    }

    /// With a Redis that may be silent for so long.
    pub(crate) async fn waiting(urls: &[String], mode: Mode, nodes: u32, timeout: Duration) -> Self {
        Self::of_layout(urls, mode, nodes, timeout, HashSlot::Key).await
    }

    /// With keys that have their hash slots by this.
    pub(crate) async fn of_layout(
        urls: &[String],
        mode: Mode,
        nodes: u32,
        timeout: Duration,
        hash_slot: HashSlot,
    ) -> Self {
        let settings = store::Settings {
            memory: memory::Settings { max_keys: 10_000, max_sessions: 1000, snapshot: None },
            redis: None,
            on_failure: OnFailure::Local,
            nodes: Nodes::Fixed(NonZeroU32::new(nodes).expect("above zero")),
        };
        let redis = redis::Settings {
            urls: urls.iter().map(|url| url.parse().expect("an address")).collect(),
            mode,
            timeout,
            password_file: None,
            wait: 0,
            key_prefix: PREFIX.to_owned(),
            hash_slot,
        };
        let store = Failover::new(&settings, redis, Clock::system(), Arc::new(NoObserver));
        let stop = CancellationToken::new();
        tokio::spawn(store.watch(stop.clone()));
        store.shared().first_contact(Duration::from_secs(10)).await;
        Self { store, _watch: stop.drop_guard() }
    }

    pub(crate) async fn decide(&self, asked: &[Asked<'_>]) -> Result<Vec<Verdict>, StoreError> {
        self.store.decide(&batch(asked)).await
    }

    pub(crate) async fn ask(&self, asked: &[Asked<'_>]) -> Vec<bool> {
        passing(&self.decide(asked).await.expect("it answers"))
    }

    pub(crate) async fn passes(&self, limit: &Limit, key: u128) -> bool {
        self.ask(&[(limit, key, OnFailure::Local)]).await[0]
    }

    pub(crate) async fn count(&self, times: usize, limit: &Limit, key: u128) -> usize {
        let mut passed = 0;
        for _ in 0..times {
            passed += usize::from(self.passes(limit, key).await);
        }
        passed
    }

    pub(crate) async fn give_back(&self, key: u128) {
        self.store.settle(&[Settlement::Release(KeyHash(key))]).await.expect("nothing fails");
    }
}

pub(crate) const PREFIX: &str = "away";

pub(crate) fn batch<'l>(asked: &[Asked<'l>]) -> Batch<'l> {
    let charge = |(limit, (rule, key, on_failure)): (u16, &Asked<'l>)| Charge {
        limit,
        key: KeyHash(*key),
        rule: &rule.rule,
        count: rule.count,
        force: rule.force,
        on_failure: *on_failure,
        items: Items::new(),
        unless_known: false,
        is_free: false,
        leases: true,
    };
    Batch { charges: (0..).zip(asked).map(charge).collect(), ..Batch::default() }
}

/// Keys that no other test of this process uses.
pub(crate) fn key() -> u128 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64
}

/// Waits for something that a server or another task is about to do.
pub(crate) async fn eventually(promise: &str, within: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let waited = Stopwatch::start();
    while !holds().await {
        assert!(waited.elapsed() < within, "not within {within:?}: {promise}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) const SOON: Duration = Duration::from_secs(10);
