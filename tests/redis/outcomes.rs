//! Outcomes, settled on the servers of a cluster and seen by other gateways.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portcullis::rules::decision::batch::KnownClientKey;
use portcullis::rules::decision::{Batch, Charge, Settlement};
use portcullis::rules::key::KeyHash;
use portcullis::rules::limit::{Algorithm, Count, OnFailure, Rule};
use portcullis::store;
use portcullis::store::any_store::Nodes;
use portcullis::store::redis::{HashSlot, Mode};
use portcullis::store::{Failover, Observer, Store, memory, redis};
use portcullis::words::clock::Clock;
use portcullis::words::pending_reservations::ToldLater;
use tokio_util::sync::CancellationToken;

use crate::support::{RedisCluster, RedisServer, until, within};

#[derive(Debug, Default)]
struct RoundTrips(AtomicUsize);

impl Observer for RoundTrips {
    fn round_trip(&self, _span: Duration) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn failed(&self, _cause: &'static str) {}

    fn went_down(&self) {}

    fn overloaded(&self) {}
}

struct Gateway {
    store: Failover,
    trips: Arc<RoundTrips>,
    stop: CancellationToken,
}

impl Gateway {
    async fn start(mode: Mode, urls: &[String]) -> Self {
        let settings = store::StoreSettings {
            memory: memory::MemorySettings { max_keys: 1000, max_sessions: 1000, snapshot: None },
            redis: None,
            on_failure: OnFailure::Deny,
            nodes: Nodes::Fixed(NonZeroU32::MIN),
        };
        let urls = urls.iter().map(|url| url.parse().expect("a url")).collect();
        let redis = redis::RedisSettings {
            urls,
            mode,
            timeout: Duration::from_secs(5),
            password_file: None,
            wait: 0,
            key_prefix: "gate".to_owned(),
            hash_slot: HashSlot::Key,
        };
        let (trips, stop) = (Arc::<RoundTrips>::default(), CancellationToken::new());
        let store = Failover::new(&settings, redis, Clock::system(), Arc::<RoundTrips>::clone(&trips));
        tokio::spawn(store.watch(stop.clone()));
        store.shared().first_contact(Duration::from_secs(5)).await;
        Self { store, trips, stop }
    }

    fn trips(&self) -> usize {
        self.trips.0.load(Ordering::SeqCst)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn failures(limit: u16, rule: &Rule) -> Charge<'_> {
    Charge {
        count: Count::Failures,
        on_failure: OnFailure::Deny,
        ..Charge::new(limit, KeyHash(u128::from(limit) << 100 | 7), rule)
    }
}

fn rule(rates: &str) -> Rule {
    Rule::Rates { algorithm: Algorithm::default(), rates: rates.parse().expect(rates), cost: NonZeroU32::MIN }
}

#[tokio::test]
async fn in_a_cluster_a_client_is_known_and_slots_come_back_wherever_they_are() {
    let cluster = RedisCluster::start();
    let urls: Vec<String> = cluster.nodes.iter().map(|node| format!("redis://{}", node.address())).collect();
    let gateway = Gateway::start(Mode::Cluster, &urls).await;
    let rule = rule("3/hour");
    let known = KnownClientKey { subject: KeyHash(99), client: 5 };
    let mut batch = Batch { charges: (0..6).map(|limit| failures(limit, &rule)).collect(), ..Batch::default() };
    batch.charges[2].unless_known = true;
    batch.known.push(known);
    for _ in 0..10 {
        let verdicts = gateway.store.decide(&batch).await.expect("an answer");
        assert!(verdicts.iter().all(|verdict| verdict.passes() && verdict.charged.is_some()), "{verdicts:?}");
        let back = |(charge, verdict): (&Charge<'_>, &'_ portcullis::rules::decision::Verdict)| {
            (charge.key, verdict.charged.clone().expect("it was charged"))
        };
        let charged: Vec<_> = batch.charges.iter().zip(&verdicts).map(back).collect();
        let settlements = charged.iter().map(|(key, charged)| Settlement::TakeBack { key: *key, rule: &rule, charged });
        gateway.store.settle(&settlements.collect::<Vec<_>>()).await.expect("they answer");
    }
    let remember = Settlement::Remember {
        of: known,
        most: NonZeroU32::MIN,
        keep: Duration::from_secs(60),
        was_known: ToldLater::default(),
    };
    gateway.store.settle(&[remember]).await.expect("they answer");
    let other = Gateway::start(Mode::Cluster, &urls).await;
    for round in 0..4 {
        let verdicts = other.store.decide(&batch).await.expect("an answer");
        assert!(verdicts[2].is_exempt && verdicts[2].passes());
        assert_eq!(verdicts[0].passes(), round < 3);
    }
}

#[tokio::test]
async fn a_flood_of_what_is_exhausted_is_answered_here_until_someone_says_that_there_is_room() {
    let redis = RedisServer::start();
    let urls = [redis.url()];
    let (one, other) = (Gateway::start(Mode::Single, &urls).await, Gateway::start(Mode::Single, &urls).await);
    until("both hear of resets", || redis.cli(&["PUBSUB", "NUMSUB", "gate:resets"]).ends_with('2')).await;
    let rule = rule("3/hour");
    let batch = Batch { charges: [failures(1, &rule)].into_iter().collect(), ..Batch::default() };
    let mut last = None;
    for _ in 0..3 {
        let before = one.trips();
        last = one.store.decide(&batch).await.expect("an answer").remove(0).charged;
        assert!(last.is_some());
        assert_eq!(one.trips(), before + 1, "a failed login is one round trip");
    }
    // Other gateways do not learn of reservations that may be released. They learn of the release.
    let before = other.trips();
    for _ in 0..1000 {
        assert!(!other.store.decide(&batch).await.expect("an answer")[0].passes());
    }
    assert!(other.trips() <= before + 2, "{}", other.trips() - before);
    let charged = last.expect("it was charged");
    let before = one.trips();
    let settlement = Settlement::TakeBack { key: batch.charges[0].key, rule: &rule, charged: &charged };
    one.store.settle(&[settlement]).await.expect("it answers");
    assert_eq!(one.trips(), before + 1, "and a success one more");
    let passes = async || other.store.decide(&batch).await.expect("an answer")[0].passes();
    within("it is told", Duration::from_secs(1), passes).await;
}
