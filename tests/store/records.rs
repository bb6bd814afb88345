//! Records that the gateways on one Redis write for each other.

use std::sync::Arc;
use std::time::Duration;

use portcullis::store::AnyStore;
use portcullis::store::RecordKind;
use portcullis::store::SharedRecord;
use portcullis::store::SharedRecords;
use portcullis::store::redis::Mode;
use portcullis::store::shared_records::MAX_RECORD;

use crate::node::Node;
use crate::surroundings::RedisCluster;
use crate::surroundings::RedisServer;

const KIND: RecordKind = RecordKind { name: "test", kept: Duration::from_secs(60) };

fn records(node: &Node, gateway: &str) -> SharedRecords {
    SharedRecords::of(&AnyStore::Shared(node.store.on_another_core()), gateway.into()).expect("a shared store")
}

/// Who wrote which part, with what content.
async fn read(records: &SharedRecords, kind: RecordKind) -> Vec<(String, u64, Vec<u8>)> {
    let mut found = records.read(kind).await.expect("Redis answers");
    assert!(found.iter().all(|record| record.age < Duration::from_secs(60)));
    found.sort_by(|one, other| one.gateway.cmp(&other.gateway).then(one.part.cmp(&other.part)));
    found.into_iter().map(|SharedRecord { gateway, part, content, .. }| (gateway, part, content)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gateway_reads_what_all_have_written_last() {
    let server = RedisServer::start();
    let (node, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    let (one, two) = (records(&node, "one"), records(&other, "two"));
    for count in 0..3_u8 {
        one.write(KIND, 0, &[count]).await.expect("Redis answers");
    }
    one.write(KIND, 7, b"198.51.100.7").await.expect("Redis answers");
    two.write(KIND, 0, b"").await.expect("Redis answers");
    let expected = vec![
        ("one".to_owned(), 0, vec![2]),
        ("one".to_owned(), 7, b"198.51.100.7".to_vec()),
        ("two".to_owned(), 0, vec![]),
    ];
    assert_eq!(read(&one, KIND).await, expected);
    assert_eq!(read(&two, KIND).await, expected);
    assert_eq!(read(&two, RecordKind { name: "other", ..KIND }).await, []);
    // It stands there encrypted, and expires.
    let name = "away:{records}:test:one/7";
    assert!(!server.cli(&["GET", name]).contains("198."));
    for name in [name, "away:{records}:test"] {
        assert!(server.cli(&["PTTL", name]).parse::<i64>().expect("a number") > 0, "{name}");
    }
    assert!(one.write(KIND, 0, &vec![0; MAX_RECORD + 1]).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_moved_or_written_by_a_stranger_is_not_read() {
    let server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let one = records(&node, "one");
    one.write(KIND, 0, b"x").await.expect("Redis answers");
    server.cli(&["COPY", "away:{records}:test:one/0", "away:{records}:test:two/0"]);
    server.cli(&["ZADD", "away:{records}:test", "9999999999999999", "two/0"]);
    server.cli(&["SET", "away:{records}:test:three/0", "1700000000000000garbage", "EX", "60"]);
    server.cli(&["ZADD", "away:{records}:test", "9999999999999999", "three/0"]);
    assert_eq!(read(&one, KIND).await, [("one".to_owned(), 0, b"x".to_vec())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_outlives_its_gateway_until_it_expires() {
    let server = RedisServer::start();
    let (node, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    let short = RecordKind { name: "short", kept: Duration::from_millis(300) };
    let (one, two) = (records(&node, "one"), records(&other, "two"));
    one.write(KIND, 0, b"x").await.expect("Redis answers");
    one.write(short, 0, b"x").await.expect("Redis answers");
    drop((one, node));
    assert_eq!(read(&two, KIND).await.len(), 1);
    while !read(&two, short).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Its name goes with the next write.
    two.write(short, 0, b"y").await.expect("Redis answers");
    assert_eq!(server.cli(&["ZRANGE", "away:{records}:short", "0", "-1"]), "two/0");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_it_fails_at_once_and_ends_with_the_outage() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let one = records(&node, "one");
    one.write(KIND, 0, b"x").await.expect("Redis answers");
    server.kill();
    while one.write(KIND, 0, b"y").await.is_ok() {}
    assert!(one.read(KIND).await.is_err());
    server.restart();
    while one.write(KIND, 0, b"z").await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(read(&one, KIND).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_cluster_all_records_are_read_too() {
    let cluster = RedisCluster::start();
    let urls: Vec<String> = cluster.nodes.iter().map(|node| format!("redis://{}", node.address())).collect();
    let node = Node::start(&urls, Mode::Cluster, 1).await;
    let gateways: Vec<Arc<str>> = (0..5).map(|number| format!("gateway-{number}").into()).collect();
    for gateway in &gateways {
        records(&node, gateway).write(KIND, 0, b"x").await.expect("Redis answers");
    }
    assert_eq!(read(&records(&node, "one"), KIND).await.len(), 5);
}
