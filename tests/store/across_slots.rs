//! Limits whose keys live on different nodes of a Redis Cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use portcullis::rules::limit::OnFailure;
use portcullis::store::redis::Mode;
use portcullis::store::{Store, StoreError};

use crate::node::{Asked, Node, PREFIX, SOON, batch, key};
use crate::support::{Limit, passing, remaining};
use crate::surroundings::{RedisCluster, RedisServer, within};

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
    within("every server answers", SOON, async || node.store.look(&batch(&everywhere)).await.is_ok()).await;
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
                // From then on each gateway knows only what passed through it.
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

#[tokio::test]
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
    within("what was reserved in vain is back", SOON, async || {
        let verdicts = nodes[0].store.look(&batch(&asked)).await.expect("the cluster answers");
        let left: Vec<u64> = verdicts.iter().flat_map(remaining).collect();
        left[0] + left[1] == 120 - passed && left[2] == 90 - passed
    })
    .await;
    within("all slots are back", SOON, async || nodes[1].passes(&slots, keys[2]).await).await;
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
    // No replica takes over, and the other nodes go on.
    for server in &cluster.nodes {
        assert_eq!(server.cli(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]), "OK");
    }
    cluster.nodes[4].pause();
    cluster.nodes[1].pause();
    let asked = |on_failure| [(&wide, here, OnFailure::Local), (&narrow, gone, on_failure)];

    assert_eq!(node.decide(&asked(OnFailure::Deny)).await, Err(StoreError::Outage));
    let left = async || {
        let verdicts = node.store.look(&batch(&[(&wide, here, OnFailure::Local)])).await.expect("it answers");
        remaining(&verdicts[0])[0]
    };
    within("what was charged for it is back", SOON, async || left().await == 10).await;
    for round in 0..4 {
        assert_eq!(node.ask(&asked(OnFailure::Local)).await, [true, round < 2]);
    }
    within("what was charged for denied ones is back", SOON, async || left().await == 8).await;
    assert_eq!(node.ask(&asked(OnFailure::Allow)).await, [true, true]);
    assert_eq!(left().await, 7);
    cluster.nodes[1].resume();
    cluster.nodes[4].resume();
}

/// One server is stopped, and the others have decided meanwhile: nobody waits for its turn.
#[tokio::test]
async fn keys_with_room_are_asked_in_all_slots_at_once() {
    let cluster = RedisCluster::start();
    let urls: Vec<String> = cluster.nodes[..3].iter().map(|node| format!("redis://{}", node.address())).collect();
    let node = Node::waiting(&urls, Mode::Cluster, 1, SOON).await;
    let limit = Limit::rates("2/hour");
    let keys = keys_in_slots(&cluster, 40);
    // The lowest slot is on one server, and the highest on another.
    let (first, last) = (keys[0], keys[39]);
    let asked: Vec<Asked<'_>> = [first, last].iter().map(|key| (&limit, *key, OnFailure::Local)).collect();
    let holder = |key: u128| {
        let name = format!("{PREFIX}:{key:032x}");
        cluster.nodes[..3].iter().find(|node| node.cli(&["EXISTS", &name]) == "1").expect("a server has it")
    };
    let state = |node: &RedisServer| node.cli(&["GET", &format!("{PREFIX}:{last:032x}")]);
    assert_eq!(node.ask(&asked).await, [true, true]);
    let (slow, quick) = (holder(first), holder(last));
    assert_ne!(slow.address(), quick.address());
    let before = state(quick);
    // Half of the limit is left: that is room.
    slow.pause();
    let (decided, ()) = tokio::join!(node.decide(&asked), async {
        within("the other server has decided", SOON, async || state(quick) != before).await;
        slow.resume();
    });
    assert_eq!(passing(&decided.expect("all have answered")), [true, true]);
    assert_eq!(node.ask(&asked).await, [false, false]);
}
