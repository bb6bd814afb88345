//! A Redis Cluster of six servers.

use portcullis::store::redis::{Failure, Mode};

use crate::reach::{Reach, SOON};
use crate::support::{RedisCluster, RedisServer, Stopwatch, until};

async fn reach(cluster: &RedisCluster) -> Reach {
    let urls: Vec<String> = cluster.nodes[..2].iter().map(|node| format!("redis://{}", node.address())).collect();
    Reach::begin(Mode::Cluster, &urls).await
}

/// Names in slots of each of the three masters.
const NAMES: [&str; 3] = ["c", "a", "b"];

fn master_of<'c>(cluster: &'c RedisCluster, name: &str) -> &'c RedisServer {
    let key = format!("gate:{name}");
    let serves = |node: &&&RedisServer| !node.cli(&["GET", &key]).starts_with("MOVED");
    cluster.masters().iter().find(serves).expect("someone has it")
}

#[tokio::test]
async fn each_key_is_decided_by_its_own_server() {
    let cluster = RedisCluster::start();
    let reach = reach(&cluster).await;
    assert!(reach.shared.status().up);
    for number in 0..60 {
        assert_eq!(reach.call(&number.to_string()).await.0, Ok(1));
    }
    assert_eq!(reach.seen.failures(), [""; 0]);
    for master in cluster.masters() {
        assert!(master.cli(&["DBSIZE"]).parse::<u32>().expect("a number") > 5);
        assert!(!master.cli(&["INFO", "stats"]).contains("errorstat_MOVED"));
    }
}

#[tokio::test]
async fn each_server_that_is_connected_to_anew_is_believed_anew() {
    let cluster = RedisCluster::start();
    let reach = reach(&cluster).await;
    let listens = |node: &RedisServer| node.cli(&["PUBSUB", "NUMSUB", "gate:resets"]).ends_with('1');
    until("it listens to one of them", || cluster.nodes.iter().any(listens)).await;
    for master in &cluster.nodes[..3] {
        // The subscription stays: it may be on another server.
        let before = reach.denied.epoch();
        master.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        until("nothing is believed", || reach.denied.epoch() > before).await;
    }
}

#[tokio::test]
async fn one_server_that_stops_takes_nothing_with_it_but_its_own_keys() {
    let cluster = RedisCluster::start();
    let reach = reach(&cluster).await;
    let names: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    let first = master_of(&cluster, &names[0]).address();
    let others: Vec<&String> = names.iter().filter(|name| master_of(&cluster, name).address() != first).collect();
    for name in &names {
        reach.until_well(name).await;
    }
    master_of(&cluster, &names[0]).pause();
    assert_eq!(reach.call(&names[0]).await.0, Err(Failure::Unknown));
    reach.is_away_at_once(&names[0]).await;
    for name in others {
        assert!(reach.call(name).await.0.is_ok(), "{name} is elsewhere");
    }
    let stopped = cluster.nodes.iter().find(|node| node.address() == first).expect("one of them");
    stopped.resume();
}

#[tokio::test]
async fn a_replica_that_takes_over_is_found() {
    let mut cluster = RedisCluster::start();
    let reach = reach(&cluster).await;
    for name in NAMES {
        reach.until_well(name).await;
    }
    // What is not replicated yet is lost with its master.
    let keys = |nodes: &[RedisServer]| -> Vec<String> { nodes.iter().map(|node| node.cli(&["DBSIZE"])).collect() };
    until("the replicas know every key", || keys(&cluster.nodes[..3]) == keys(&cluster.nodes[3..])).await;
    let address = master_of(&cluster, NAMES[0]).address();
    let master = cluster.nodes.iter_mut().find(|node| node.address() == address).expect("one of them");
    master.kill();
    let killed = Stopwatch::start();
    reach.until_away(NAMES[0]).await;
    let elsewhere = |cluster: &RedisCluster| {
        cluster
            .nodes
            .iter()
            .any(|node| node.address() != address && node.cli(&["GET", &format!("gate:{}", NAMES[0])]) == "1")
    };
    until("the cluster has a new master", || elsewhere(&cluster)).await;
    let failed_over = killed.elapsed();
    let waited = reach.until_well(NAMES[0]).await;
    assert!(waited < SOON, "the cluster took {failed_over:?}, the gateway {waited:?} more");
    until("all are well", || reach.shared.status().up).await;
}

#[tokio::test]
async fn a_slot_that_moves_is_followed_and_nothing_is_done_twice() {
    let cluster = RedisCluster::start();
    let reach = reach(&cluster).await;
    let name = "{moving}";
    assert_eq!(reach.call(name).await.0, Ok(1));
    let slot = cluster.nodes[0].cli(&["CLUSTER", "KEYSLOT", "gate:{moving}"]);
    let from = master_of(&cluster, name);
    let masters = cluster.masters();
    let to = masters.iter().find(|node| node.address() != from.address()).expect("three");
    let (source, target) = (from.cli(&["CLUSTER", "MYID"]), to.cli(&["CLUSTER", "MYID"]));
    assert_eq!(to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]), "OK");
    assert_eq!(from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]), "OK");
    // This key is still on the old server. A new key is on the new one.
    assert_eq!(reach.call(name).await.0, Ok(2));
    assert_eq!(reach.call("{moving}:new").await.0, Ok(1));
    let port = to.address().port().to_string();
    assert_eq!(from.cli(&["MIGRATE", "127.0.0.1", &port, "gate:{moving}", "0", "1000"]), "OK");
    assert_eq!(reach.call(name).await.0, Ok(3), "asked for there");
    for node in [to, &from] {
        assert_eq!(node.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &target]), "OK");
    }
    assert_eq!(reach.call(name).await.0, Ok(4), "moved for good");
    let calls = futures_util::future::join_all((0..50).map(|_| reach.call(name))).await;
    assert!(calls.iter().all(|(answer, _)| answer.is_ok()));
    assert_eq!(to.cli(&["GET", "gate:{moving}"]), "54");
    assert_eq!(reach.seen.failures(), [""; 0]);
}

#[tokio::test]
async fn resets_are_heard_of_whichever_server_is_told() {
    let cluster = RedisCluster::start();
    let reach = reach(&cluster).await;
    let listens = || cluster.nodes.iter().any(|node| node.cli(&["PUBSUB", "NUMSUB", "gate:resets"]).ends_with('1'));
    until("it listens", listens).await;
    for node in &cluster.nodes {
        let before = reach.denied.epoch();
        node.cli(&["PUBLISH", "gate:resets", &format!("{:032x}", 3)]);
        until("it hears", || reach.denied.epoch() > before).await;
    }
}

#[tokio::test]
async fn a_cluster_whose_first_server_is_gone_is_found_by_the_second() {
    let mut cluster = RedisCluster::start();
    cluster.nodes[0].kill();
    let reach = reach(&cluster).await;
    let name = (0..1000).map(|number: u32| number.to_string()).find(|name| {
        let key = format!("gate:{name}");
        cluster.nodes[1].cli(&["GET", &key]).is_empty()
    });
    assert!(reach.call(&name.expect("some")).await.0.is_ok());
}
