//! The shared store over a real Redis: what costs it nothing, and what holds while it is away.

use std::collections::BTreeMap;
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
use portcullis::store::redis::Mode;
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use crate::support::Limit;
use crate::support::passing;
use crate::support::remaining;
use crate::surroundings::RedisCluster;
use crate::surroundings::RedisServer;
use crate::surroundings::Stopwatch;

/// A gateway as far as its store goes, with its watch over Redis.
struct Node {
    store: Failover,
    _watch: DropGuard,
}

#[derive(Debug)]
struct Nobody;

impl Observer for Nobody {
    fn round_trip(&self, _span: Duration) {}

    fn failed(&self, _cause: &'static str) {}
}

/// What a charge is made for.
type Asked<'l> = (&'l Limit, u128, OnFailure);

impl Node {
    async fn on(server: &RedisServer, nodes: u32) -> Self {
        Self::start(&[server.url()], Mode::Single, nodes).await
    }

    async fn start(urls: &[String], mode: Mode, nodes: u32) -> Self {
        let settings = store::Settings {
            memory: memory::Settings { max_keys: 10_000, snapshot: None },
            redis: None,
            on_failure: OnFailure::Local,
            nodes: NonZeroU32::new(nodes).expect("above zero"),
        };
        let redis = redis::Settings {
            urls: urls.iter().map(|url| url.parse().expect("an address")).collect(),
            mode,
            timeout: Duration::from_millis(200),
            key_prefix: PREFIX.to_owned(),
        };
        let store = Failover::new(&settings, redis, Clock::system(), Arc::new(Nobody));
        let stop = CancellationToken::new();
        tokio::spawn(store.watch(stop.clone()));
        store.shared().first_contact(Duration::from_secs(10)).await;
        Self { store, _watch: stop.drop_guard() }
    }

    async fn decide(&self, asked: &[Asked<'_>]) -> Result<Vec<Verdict>, StoreError> {
        self.store.decide(&batch(asked)).await
    }

    async fn ask(&self, asked: &[Asked<'_>]) -> Vec<bool> {
        passing(&self.decide(asked).await.expect("it answers"))
    }

    async fn passes(&self, limit: &Limit, key: u128) -> bool {
        self.ask(&[(limit, key, OnFailure::Local)]).await[0]
    }

    async fn count(&self, times: usize, limit: &Limit, key: u128) -> usize {
        let mut passed = 0;
        for _ in 0..times {
            passed += usize::from(self.passes(limit, key).await);
        }
        passed
    }

    async fn give_back(&self, key: u128) {
        self.store.settle(&[Settlement::Release(KeyHash(key))]).await.expect("nothing fails");
    }
}

const PREFIX: &str = "away";

fn batch<'l>(asked: &[Asked<'l>]) -> Batch<'l> {
    let charge = |(limit, (rule, key, on_failure)): (u16, &Asked<'l>)| Charge {
        limit,
        key: KeyHash(*key),
        rule: &rule.rule,
        count: rule.count,
        force: rule.force,
        on_failure: *on_failure,
        items: Items::new(),
        unless_known: false,
    };
    Batch { charges: (0..).zip(asked).map(charge).collect(), ..Batch::default() }
}

/// Keys that no other test of this process uses.
fn key() -> u128 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64
}

/// Waits for something that a server or another task is about to do.
async fn eventually(promise: &str, within: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let waited = Stopwatch::start();
    while !holds().await {
        assert!(waited.elapsed() < within, "not within {within:?}: {promise}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until so many gateways hear of resets.
async fn listening(server: &RedisServer, gateways: usize) {
    let count = format!("{PREFIX}:resets\n{gateways}");
    eventually("the gateways hear of resets", SOON, async || {
        server.cli(&["PUBSUB", "NUMSUB", &format!("{PREFIX}:resets")]) == count
    })
    .await;
}

/// How many commands of clients the server has executed.
fn executed(server: &RedisServer) -> u64 {
    let told = server.cli(&["INFO", "commandstats"]);
    let calls = |name: &str| {
        let line =
            told.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")).map(str::to_owned));
        line.map_or(0, |line| line.split(',').next().and_then(|calls| calls.parse().ok()).expect("a number"))
    };
    calls("evalsha")
}

const SOON: Duration = Duration::from_secs(10);

const EVERYTHING: &[OnFailure] = &[OnFailure::Local, OnFailure::Allow, OnFailure::Deny];

#[tokio::test]
async fn a_flood_against_an_exhausted_key_costs_redis_nothing() {
    let server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    listening(&server, 1).await;
    let (limit, key) = (Limit::rates("5/hour; 100/day"), key());
    assert_eq!(node.count(5, &limit, key).await, 5);
    let before = executed(&server);
    assert_eq!(node.count(10_000, &limit, key).await, 0);
    assert!(executed(&server) <= before + 1, "{} {before}", executed(&server));
    let verdicts = node.decide(&[(&limit, key, OnFailure::Local)]).await.expect("it answers");
    let wait = verdicts[0].retry_after.expect("it denies");
    assert!(wait <= Duration::from_secs(3600) && wait > Duration::from_secs(3500));
    assert_eq!(remaining(&verdicts[0]), [0, 95]);
    assert_eq!(verdicts[0].standings[0].reset, wait);
}

#[tokio::test]
async fn a_changed_rule_is_asked_for_at_once() {
    let server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (old, new, key) = (Limit::rates("5/hour"), Limit::rates("8/hour"), key());
    assert_eq!(node.count(10, &old, key).await, 5);
    assert_eq!(node.count(10, &new, key).await, 3);
    assert_eq!(node.count(10, &old, key).await, 0);
}

#[tokio::test]
async fn a_reset_reaches_every_gateway_within_a_second() {
    let server = RedisServer::start();
    let (one, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    listening(&server, 2).await;
    let (limit, key) = (Limit::rates("5/hour"), key());
    for _ in 0..3 {
        assert_eq!(one.count(8, &limit, key).await, 5);
        assert!(!other.passes(&limit, key).await);
        other.store.forget(&[KeyHash(key)]).await.expect("redis answers");
        eventually("the other gateway lets it pass", Duration::from_secs(1), async || one.passes(&limit, key).await)
            .await;
        other.store.forget(&[KeyHash(key)]).await.expect("redis answers");
        eventually("it is heard of again", Duration::from_secs(1), async || {
            let verdicts = one.store.look(&batch(&[(&limit, key, OnFailure::Local)])).await.expect("redis answers");
            remaining(&verdicts[0]) == [5]
        })
        .await;
    }
}

#[tokio::test]
async fn a_reset_that_is_heard_of_late_charges_no_failure_twice() {
    let server = RedisServer::start();
    let (one, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    listening(&server, 2).await;
    let (limit, key) = (Limit::rates("5/hour").failures(), key());
    for round in 0..100 {
        other.store.forget(&[KeyHash(key)]).await.expect("redis answers");
        let verdicts = one.decide(&[(&limit, key, OnFailure::Local)]).await.expect("redis answers");
        let charged = verdicts[0].charged.as_ref().expect("it was charged");
        let look = async || one.store.look(&batch(&[(&limit, key, OnFailure::Local)])).await.expect("redis answers");
        // By the time of this answer the message has come.
        drop(look().await);
        let items = Items::new();
        let kept = Settlement::Keep { key: KeyHash(key), rule: &limit.rule, items: &items, charged };
        one.store.settle(&[kept]).await.expect("redis answers");
        assert_eq!(remaining(&look().await[0]), [4], "round {round}");
    }
}

#[tokio::test]
async fn what_was_refused_before_an_outage_stays_refused_during_it() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (limit, key, other) = (Limit::rates("5/hour"), key(), key());
    assert_eq!(node.count(6, &limit, key).await, 5);
    server.kill();
    for on_failure in EVERYTHING {
        assert_eq!(node.ask(&[(&limit, key, *on_failure)]).await, [false], "{on_failure:?}");
    }
    assert_eq!(node.ask(&[(&limit, other, OnFailure::Allow), (&limit, key, OnFailure::Allow)]).await, [true, false]);
}

#[tokio::test]
async fn local_goes_on_from_what_was_admitted_by_redis() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (limit, key) = (Limit::rates("5/hour"), key());
    assert_eq!(node.count(3, &limit, key).await, 3);
    server.kill();
    assert_eq!(node.count(5, &limit, key).await, 2);
}

#[tokio::test]
async fn local_grants_each_gateway_its_share() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 4).await;
    let (limit, slots, used) = (Limit::rates("8/hour"), Limit::concurrent(9), key());
    let dear = Limit::rates("8/hour").cost(3);
    assert_eq!(node.count(3, &limit, used).await, 3);
    server.kill();
    assert_eq!(node.count(3, &limit, used).await, 0);
    assert_eq!(node.count(3, &limit, key()).await, 2);
    assert_eq!(node.count(3, &dear, key()).await, 1);
    assert_eq!(node.count(3, &slots, key()).await, 2);
}

#[tokio::test]
async fn when_redis_is_back_it_alone_decides() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 4).await;
    let (limit, key) = (Limit::rates("8/hour"), key());
    server.kill();
    assert_eq!(node.count(9, &limit, key).await, 2);
    server.restart();
    let mut passed = 0;
    eventually("redis grants the whole of it", Duration::from_secs(2), async || {
        passed += usize::from(node.passes(&limit, key).await);
        passed == 8
    })
    .await;
    assert_eq!(node.count(5, &limit, key).await, 0);
}

#[tokio::test]
async fn a_limit_that_denies_lets_nothing_pass_and_charges_nothing() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (limit, key, other) = (Limit::rates("2/hour"), key(), key());
    server.kill();
    for _ in 0..3 {
        let asked = [(&limit, key, OnFailure::Local), (&limit, other, OnFailure::Deny)];
        assert_eq!(node.decide(&asked).await, Err(StoreError::Away));
    }
    assert_eq!(node.store.look(&batch(&[(&limit, other, OnFailure::Deny)])).await, Err(StoreError::Away));
    assert_eq!(node.count(3, &limit, key).await, 2);
    // It is named as it would be with Redis: the client is told to come later, not that something broke.
    assert_eq!(node.ask(&[(&limit, key, OnFailure::Local)]).await, [false],);
}

#[tokio::test]
async fn policies_in_one_request_are_each_kept() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (narrow, wide) = (Limit::rates("1/hour"), Limit::rates("9/hour"));
    let (one, other, third) = (key(), key(), key());
    server.kill();
    let asked =
        [(&wide, one, OnFailure::Local), (&narrow, other, OnFailure::Allow), (&narrow, third, OnFailure::Local)];
    let verdicts = node.decide(&asked).await.expect("nothing denies");
    assert_eq!(passing(&verdicts), [true, true, true]);
    assert_eq!(verdicts.iter().map(remaining).collect::<Vec<_>>(), [vec![8], vec![], vec![0]]);
    let verdicts = node.decide(&asked).await.expect("nothing denies");
    assert_eq!(passing(&verdicts), [true, true, false]);
    assert_eq!(remaining(&verdicts[0]), [8], "a denied request is charged to none");
}

#[tokio::test]
async fn a_shadow_denies_nobody_whatever_holds_for_it() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (limit, shadow) = (Limit::rates("1/hour"), Limit::rates("1/hour").shadow());
    let (one, other) = (key(), key());
    server.kill();
    for on_failure in EVERYTHING {
        let asked = [(&limit, one, OnFailure::Allow), (&shadow, other, *on_failure)];
        assert_eq!(node.ask(&asked).await, [true, true], "{on_failure:?}");
    }
    let asked = [(&limit, one, OnFailure::Allow), (&shadow, other, OnFailure::Local)];
    assert_eq!(node.ask(&asked).await, [true, false]);
}

#[tokio::test]
async fn attempts_are_counted_while_redis_is_away_though_another_limit_denies() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (limit, attempts) = (Limit::rates("1/hour"), Limit::rates("3/hour").attempts());
    let (one, other) = (key(), key());
    assert_eq!(node.count(2, &limit, one).await, 1);
    server.kill();
    let asked = [(&limit, one, OnFailure::Local), (&attempts, other, OnFailure::Local)];
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(node.ask(&asked).await);
    }
    assert_eq!(seen, [[false, true], [false, true], [false, true], [false, false]]);
}

#[tokio::test]
async fn a_redis_that_hangs_delays_only_the_first_requests() {
    let server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (limit, key) = (Limit::rates("1000/hour"), key());
    assert!(node.passes(&limit, key).await);
    server.pause();
    let waited = Stopwatch::start();
    assert!(node.passes(&limit, key).await);
    assert!(waited.elapsed() < Duration::from_millis(400), "{:?}", waited.elapsed());
    let waited = Stopwatch::start();
    assert_eq!(node.count(100, &limit, key).await, 100);
    assert!(waited.elapsed() < Duration::from_millis(200), "{:?}", waited.elapsed());
    server.resume();
    eventually("redis decides again", Duration::from_secs(2), async || {
        let before = executed(&server);
        assert!(node.passes(&limit, key).await);
        executed(&server) > before
    })
    .await;
}

#[tokio::test]
async fn gateways_share_the_slots_in_flight() {
    let server = RedisServer::start();
    let (one, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    let (limit, key) = (Limit::concurrent(2), key());
    assert!(one.passes(&limit, key).await && other.passes(&limit, key).await);
    assert!(!one.passes(&limit, key).await && !other.passes(&limit, key).await);
    one.give_back(key).await;
    // Nothing is left of it to give back a second time.
    one.give_back(key).await;
    assert!(other.passes(&limit, key).await && !one.passes(&limit, key).await);
    other.give_back(key).await;
    other.give_back(key).await;
    assert!(one.passes(&limit, key).await && one.passes(&limit, key).await && !one.passes(&limit, key).await);
}

/// Half a minute, in real time: leases are by the server's clock.
#[tokio::test]
async fn a_lease_ends_with_its_gateway_and_is_renewed_by_one_that_lives() {
    let server = Arc::new(RedisServer::start());
    let (limit, key) = (Limit::concurrent(2), key());
    let (living, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    assert!(living.passes(&limit, key).await);
    let dying = {
        let (server, limit) = (Arc::clone(&server), limit.clone());
        // With everything that runs for it.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { Node::on(&server, 1).await.passes(&limit, key).await })
        })
    };
    let waited = Stopwatch::start();
    assert!(tokio::task::spawn_blocking(|| dying.join()).await.expect("it is joined").expect("it does not panic"));
    eventually("the slot of the dead is free", Duration::from_secs(35), async || other.passes(&limit, key).await).await;
    assert!(waited.elapsed() > Duration::from_secs(29), "{:?}", waited.elapsed());
    // That of the living would have ended before.
    assert!(!other.passes(&limit, key).await);
    living.give_back(key).await;
    assert!(other.passes(&limit, key).await && !other.passes(&limit, key).await);
}

#[tokio::test]
async fn a_slot_goes_back_to_where_it_was_taken() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (limit, key) = (Limit::concurrent(3), key());
    assert!(node.passes(&limit, key).await);
    server.kill();
    // One is known of from before, two more fit.
    assert_eq!(node.count(5, &limit, key).await, 2);
    node.give_back(key).await;
    assert_eq!(node.count(5, &limit, key).await, 1);
    for _ in 0..3 {
        node.give_back(key).await;
    }
    assert_eq!(node.count(5, &limit, key).await, 3);
    // Uncounted requests give nothing back.
    assert_eq!(node.ask(&[(&limit, key, OnFailure::Allow)]).await, [true]);
    node.give_back(key).await;
    assert!(!node.passes(&limit, key).await);
}

#[tokio::test]
async fn hanging_up_while_a_slot_is_taken_keeps_none() {
    let server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (limit, key) = (Limit::concurrent(1), key());
    for _ in 0..50 {
        let batch = batch(&[(&limit, key, OnFailure::Local)]);
        let mut asked = Box::pin(node.store.decide(&batch));
        tokio::select! {
            biased;
            _ = &mut asked => node.give_back(key).await,
            () = tokio::task::yield_now() => drop(asked),
        }
        eventually("the slot is free", SOON, async || node.passes(&limit, key).await).await;
        node.give_back(key).await;
    }
}

/// A key in each of `count` different slots, by ascending slot.
fn keys_in_slots(cluster: &RedisCluster, count: usize) -> Vec<u128> {
    let mut keys: BTreeMap<u16, u128> = BTreeMap::new();
    while keys.len() < count {
        let key = key();
        let slot = cluster.nodes[0].cli(&["CLUSTER", "KEYSLOT", &format!("{PREFIX}:{key:032x}")]);
        keys.insert(slot.parse().expect("a number"), key);
    }
    keys.into_values().collect()
}

async fn in_cluster(cluster: &RedisCluster, nodes: u32) -> Node {
    let urls: Vec<String> = cluster.nodes[..3].iter().map(|node| format!("redis://{}", node.address())).collect();
    let node = Node::start(&urls, Mode::Cluster, nodes).await;
    let (limit, keys) = (Limit::rates("1/hour"), keys_in_slots(cluster, 20));
    let everywhere: Vec<Asked<'_>> = keys.iter().map(|key| (&limit, *key, OnFailure::Deny)).collect();
    eventually("every server answers", SOON, async || node.store.look(&batch(&everywhere)).await.is_ok()).await;
    node
}

#[tokio::test]
async fn across_slots_a_request_is_charged_to_all_or_to_none() {
    let cluster = RedisCluster::start();
    // What one has learnt the other has to ask.
    let nodes = [in_cluster(&cluster, 1).await, in_cluster(&cluster, 1).await];
    let (narrow, wide) = (Limit::rates("2/hour"), Limit::rates("10/hour"));
    for denying in 0..4 {
        let keys = keys_in_slots(&cluster, 4);
        let limits = |place: usize| if place == denying { &narrow } else { &wide };
        let asked: Vec<Asked<'_>> =
            keys.iter().enumerate().map(|(place, key)| (limits(place), *key, OnFailure::Local)).collect();
        for round in 0..6 {
            let verdicts = nodes[round % 2].decide(&asked).await.expect("the cluster answers");
            for (place, verdict) in verdicts.iter().enumerate() {
                assert_eq!(verdict.passes(), place != denying || round < 2);
                // Then they are told by what passed here, of each gateway.
                if round < 3 {
                    let left = if place == denying { [1, 0, 0][round] } else { [9, 8, 8][round] };
                    assert_eq!(remaining(verdict), [left], "{place} of {denying} in round {round}");
                }
            }
        }
        let verdicts = nodes[0].store.look(&batch(&asked)).await.expect("the cluster answers");
        let left: Vec<u64> = verdicts.iter().flat_map(remaining).collect();
        assert_eq!(left.iter().sum::<u64>(), 24, "{left:?}");
    }
}

#[tokio::test]
async fn across_slots_every_denying_limit_is_named_and_attempts_are_charged() {
    let cluster = RedisCluster::start();
    let node = in_cluster(&cluster, 1).await;
    let keys = keys_in_slots(&cluster, 3);
    let (narrow, attempts, shadow) =
        (Limit::rates("1/hour"), Limit::rates("3/hour").attempts(), Limit::rates("3/hour").shadow());
    for place in [0, 2] {
        assert!(node.passes(&narrow, keys[place]).await);
    }
    let middle = [
        (&narrow, keys[0], OnFailure::Local),
        (&attempts, keys[1], OnFailure::Local),
        (&narrow, keys[2], OnFailure::Local),
    ];
    for round in 0..4 {
        assert_eq!(node.ask(&middle).await, [false, round < 3, false]);
    }
    let keys = keys_in_slots(&cluster, 3);
    assert!(node.passes(&narrow, keys[1]).await);
    let sides = [
        (&shadow, keys[0], OnFailure::Local),
        (&narrow, keys[1], OnFailure::Local),
        (&attempts, keys[2], OnFailure::Local),
    ];
    for round in 0..4 {
        assert_eq!(node.ask(&sides).await, [round < 3, false, round < 3]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn across_slots_hammering_never_lets_too_many_pass_and_leaves_nothing_charged_in_vain() {
    let cluster = RedisCluster::start();
    let nodes = [in_cluster(&cluster, 1).await, in_cluster(&cluster, 1).await];
    let (first, second) = (Limit::rates("60/hour"), Limit::rates("90/hour"));
    let slots = Limit::concurrent(4);
    let keys = keys_in_slots(&cluster, 4);
    let passed = Arc::new(AtomicU32::new(0));
    let nodes = nodes.map(Arc::new);
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let (node, passed, keys) = (Arc::clone(&nodes[task % 2]), Arc::clone(&passed), keys.clone());
            let (first, second, slots) = (first.clone(), second.clone(), slots.clone());
            tokio::spawn(async move {
                // Two kinds of requests that share the middle key, in either order of what denies them.
                let limited = if task % 4 < 2 { (&first, keys[0]) } else { (&first, keys[3]) };
                for _ in 0..30 {
                    let asked = [
                        (limited.0, limited.1, OnFailure::Local),
                        (&second, keys[1], OnFailure::Local),
                        (&slots, keys[2], OnFailure::Local),
                    ];
                    if node.ask(&asked).await.into_iter().all(|passes| passes) {
                        passed.fetch_add(1, Ordering::SeqCst);
                        node.give_back(keys[2]).await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no task panics");
    }
    let passed = u64::from(passed.load(Ordering::SeqCst));
    assert!(passed <= 90, "{passed}");
    let asked = [(&first, keys[0]), (&first, keys[3]), (&second, keys[1]), (&slots, keys[2])];
    let asked = asked.map(|(limit, key)| (limit, key, OnFailure::Local));
    eventually("what was reserved in vain is back", SOON, async || {
        let verdicts = nodes[0].store.look(&batch(&asked)).await.expect("the cluster answers");
        let left: Vec<u64> = verdicts.iter().flat_map(remaining).collect();
        left[0] + left[1] == 120 - passed && left[2] == 90 - passed
    })
    .await;
    eventually("all slots are back", SOON, async || nodes[1].passes(&slots, keys[2]).await).await;
    assert_eq!(nodes[1].count(5, &slots, keys[2]).await, 3);
}

#[tokio::test]
async fn a_part_of_the_cluster_away_is_decided_by_policy_and_the_rest_by_redis() {
    let cluster = RedisCluster::start();
    let node = in_cluster(&cluster, 1).await;
    let (narrow, wide) = (Limit::rates("2/hour"), Limit::rates("10/hour"));
    let keys = keys_in_slots(&cluster, 40);
    // A key on the server that is to be lost, and one elsewhere.
    let holder = |key: u128, cluster: &RedisCluster| {
        let name = format!("{PREFIX}:{key:032x}");
        let refusal = cluster.nodes[0].cli(&["GET", &name]);
        refusal.rsplit(':').next().and_then(|port| port.trim().parse::<u16>().ok())
    };
    let lost = cluster.nodes[1].address().port();
    let gone = *keys.iter().find(|key| holder(**key, &cluster) == Some(lost)).expect("a third of the keys is there");
    let here = *keys.iter().find(|key| holder(**key, &cluster) != Some(lost)).expect("two thirds are elsewhere");
    // Nobody takes over, and the others go on.
    for server in &cluster.nodes {
        assert_eq!(server.cli(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]), "OK");
    }
    cluster.nodes[4].pause();
    cluster.nodes[1].pause();
    let asked = |on_failure| [(&wide, here, OnFailure::Local), (&narrow, gone, on_failure)];

    assert_eq!(node.decide(&asked(OnFailure::Deny)).await, Err(StoreError::Away));
    let left = async || {
        let verdicts = node.store.look(&batch(&[(&wide, here, OnFailure::Local)])).await.expect("it answers");
        remaining(&verdicts[0])[0]
    };
    eventually("what was charged for it is back", SOON, async || left().await == 10).await;
    for round in 0..4 {
        assert_eq!(node.ask(&asked(OnFailure::Local)).await, [true, round < 2]);
    }
    eventually("what was charged for denied ones is back", SOON, async || left().await == 8).await;
    assert_eq!(node.ask(&asked(OnFailure::Allow)).await, [true, true]);
    assert_eq!(left().await, 7);
    cluster.nodes[1].resume();
    cluster.nodes[4].resume();
}
