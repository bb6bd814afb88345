//! A gateway reduced to its store, with a real Redis.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use portcullis::rules::decision::{Batch, Charge, Settlement, Verdict};
use portcullis::rules::key::KeyHash;
use portcullis::rules::limit::OnFailure;
use portcullis::store;
use portcullis::store::any_store::Nodes;
use portcullis::store::redis::{HashSlot, Mode};
use portcullis::store::{Failover, Observer, Store, StoreError, memory, redis};
use portcullis::words::clock::Clock;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::{Limit, passing};
use crate::surroundings::RedisServer;

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
        let settings = store::StoreSettings {
            memory: memory::MemorySettings { max_keys: 10_000, max_sessions: 1000, snapshot: None },
            redis: None,
            on_failure: OnFailure::Local,
            nodes: Nodes::Fixed(NonZeroU32::new(nodes).expect("above zero")),
        };
        let redis = redis::RedisSettings {
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
        count: rule.count,
        force: rule.force,
        on_failure: *on_failure,
        leases: true,
        ..Charge::new(limit, KeyHash(*key), &rule.rule)
    };
    Batch { charges: (0..).zip(asked).map(charge).collect(), ..Batch::default() }
}

/// Keys that no other test of this process uses.
pub(crate) fn key() -> u128 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64
}

pub(crate) const SOON: Duration = Duration::from_secs(10);
