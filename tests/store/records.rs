//! Records that the gateways on one Redis write for each other, and the questions that they ask.

use std::sync::Arc;
use std::time::Duration;

use portcullis::store::redis::Mode;
use portcullis::store::shared_records::{Field, MAX_FIELD, QuestionsToAnswer, Standing};
use portcullis::store::{AnyStore, SharedRecords};
use tokio::task::JoinHandle;

use crate::node::{Node, SOON};
use crate::surroundings::{RedisCluster, RedisServer, Stopwatch, within};

fn records(node: &Node, gateway: &str) -> Arc<SharedRecords> {
    let store = AnyStore::Shared(node.store.on_another_core());
    Arc::new(SharedRecords::of(&store, gateway.into()).expect("a shared store"))
}

fn field(name: &str, content: &[u8]) -> Field {
    Field { name: name.to_owned(), content: content.to_vec() }
}

async fn write(records: &SharedRecords, fields: &[(&str, &[u8])]) -> bool {
    let fields = fields.iter().map(|(name, content)| field(name, content)).collect();
    records.begins_anew().await.is_ok() && records.write(fields, &QuestionsToAnswer::default()).await.is_ok()
}

/// Answers every question with this content of the field `x`.
fn answering(records: &Arc<SharedRecords>, content: &'static [u8]) -> JoinHandle<()> {
    let records = Arc::clone(records);
    tokio::spawn(async move {
        loop {
            records.write_requested().await;
            let questions = records.questions_to_answer();
            let _ = records.write(vec![field("x", content)], &questions).await;
        }
    })
}

/// Who of the others wrote what under `x`, and how they stand.
async fn ask(records: &SharedRecords) -> Vec<(String, Standing, Option<Vec<u8>>)> {
    let mut found = records.ask(&["x".to_owned()], None).await.expect("Redis answers");
    found.sort_by(|one, other| one.gateway.cmp(&other.gateway));
    assert!(found.iter().all(|gateway| gateway.age < Duration::from_secs(60)));
    found.into_iter().map(|mut one| (one.gateway, one.standing, one.contents.pop().expect("one field"))).collect()
}

fn told(gateway: &str, standing: Standing, content: &[u8]) -> (String, Standing, Option<Vec<u8>>) {
    (gateway.to_owned(), standing, Some(content.to_vec()))
}

#[tokio::test]
async fn a_question_is_answered_at_once_and_who_does_not_answer_is_missing() {
    let server = RedisServer::start();
    let nodes = [Node::on(&server, 1).await, Node::on(&server, 1).await, Node::on(&server, 1).await];
    let [one, two, three] = [("one", 0), ("two", 1), ("three", 2)].map(|(name, node)| records(&nodes[node], name));
    assert!(write(&one, &[("x", b"1")]).await && write(&two, &[("x", b"2")]).await);
    assert!(write(&three, &[("x", b"3"), ("y", b"198.51.100.7")]).await);
    let answers = [answering(&two, b"20"), answering(&three, b"30")];
    let begun = Stopwatch::start();
    assert_eq!(ask(&one).await, [told("three", Standing::Up, b"30"), told("two", Standing::Up, b"20")]);
    assert!(begun.elapsed() < Duration::from_millis(250), "{:?}", begun.elapsed());
    assert_eq!(one.find("y").await, Ok(Some(b"198.51.100.7".to_vec())));
    assert_eq!(one.find("z").await, Ok(None));
    // It stands there encrypted, and expires.
    let hash = "away:{records}:three";
    assert!(!server.cli(&["HGET", hash, "y"]).contains("198."));
    for name in [hash, "away:{records}:gateways"] {
        assert!(server.cli(&["PTTL", name]).parse::<i64>().expect("a number") > 3_600_000, "{name}");
    }

    answers[1].abort();
    let missing = [told("three", Standing::Missing, b"30"), told("two", Standing::Up, b"20")];
    let begun = Stopwatch::start();
    assert_eq!(ask(&one).await, missing);
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    let answer = answering(&three, b"31");
    assert_eq!(ask(&one).await[0], told("three", Standing::Up, b"31"));
    answer.abort();
    three.end();
    assert!(write(&three, &[("x", b"32")]).await);
    assert_eq!(ask(&one).await[0], told("three", Standing::Ended, b"32"));
}

#[tokio::test]
async fn those_who_ask_at_the_same_time_share_a_question() {
    let server = RedisServer::start();
    let (node, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    let (one, two) = (records(&node, "one"), records(&other, "two"));
    assert!(write(&two, &[("x", b"2")]).await);
    let _answering = answering(&two, b"2");
    ask(&one).await;
    let published = || {
        let stats = server.cli(&["INFO", "commandstats"]);
        let line = stats.lines().find(|line| line.starts_with("cmdstat_publish:calls=")).expect("somebody publishes");
        let count = line.split(['=', ',']).nth(1).and_then(|count| count.parse::<u32>().ok());
        count.expect("a count")
    };
    let before = published();
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let one = Arc::clone(&one);
            tokio::spawn(async move { ask(&one).await })
        })
        .collect();
    for asked in asking {
        assert_eq!(asked.await.expect("an answer"), [told("two", Standing::Up, b"2")]);
    }
    assert_eq!(published() - before, 1);
}

#[tokio::test]
async fn nothing_is_sent_where_nothing_has_changed() {
    let server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let one = records(&node, "one");
    assert!(write(&one, &[("x", b"1"), ("y", &vec![0; MAX_FIELD + 1])]).await);
    let written = || server.cli(&["HKEYS", "away:{records}:one"]).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(written(), ["x", "presence"]);
    assert_eq!(server.cli(&["DEL", "away:{records}:one"]), "1");
    assert!(write(&one, &[("x", b"1")]).await);
    assert_eq!(written(), [""; 0]);
    // With the next change it finds that Redis has lost what was there.
    assert!(write(&one, &[("x", b"2")]).await);
    one.write_requested().await;
    assert_eq!(one.begins_anew().await, Ok(true));
    assert!(write(&one, &[("x", b"2")]).await);
    assert_eq!(written(), ["x", "presence"]);
    assert!(server.cli(&["PTTL", "away:{records}:one"]).parse::<i64>().expect("a number") > 0);
    one.remove(&["x".to_owned()]).await.expect("Redis answers");
    assert_eq!(written(), ["presence"]);
}

#[tokio::test]
async fn a_record_that_was_moved_or_written_by_a_stranger_is_not_read() {
    let server = RedisServer::start();
    let (node, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    let (one, two) = (records(&node, "one"), records(&other, "two"));
    assert!(write(&two, &[("x", b"2"), ("y", b"3")]).await);
    let _answering = answering(&two, b"2");
    for command in [
        &["COPY", "away:{records}:two", "away:{records}:three"][..],
        &["ZADD", "away:{records}:gateways", "9999999999999", "three"],
        &["HSET", "away:{records}:four", "presence", "garbage", "x", "garbage"],
        &["ZADD", "away:{records}:gateways", "9999999999999", "four"],
        // What earlier versions wrote.
        &["SET", "away:{records}:status:five/0", "1700000000000000garbage"],
        &["ZADD", "away:{records}:status", "9999999999999999", "five/0"],
        &["PUBLISH", "away:resets", "ask nonsense"],
    ] {
        server.cli(command);
    }
    assert_eq!(ask(&one).await, [told("two", Standing::Up, b"2")]);
    server.cli(&["HSET", "away:{records}:two", "y", "garbage"]);
    assert_eq!(one.find("y").await, Ok(None));
}

#[tokio::test]
async fn without_redis_it_fails_at_once_and_ends_with_the_outage() {
    let mut server = RedisServer::start();
    let (node, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    let (one, two) = (records(&node, "one"), records(&other, "two"));
    assert!(write(&two, &[("x", b"2")]).await);
    server.kill();
    while write(&two, &[("x", b"3")]).await {}
    assert!(one.ask(&["x".to_owned()], None).await.is_err());
    server.restart();
    within("it is written", SOON, async || write(&two, &[("x", b"2")]).await).await;
    let _answering = answering(&two, b"2");
    within("it is answered", SOON, async || {
        let answer = one.ask(&["x".to_owned()], None).await;
        answer.is_ok_and(|found| found.first().is_some_and(|two| two.standing == Standing::Up))
    })
    .await;
}

#[tokio::test]
async fn in_a_cluster_all_gateways_are_asked_too() {
    let cluster = RedisCluster::start();
    let urls: Vec<String> = cluster.nodes.iter().map(|node| format!("redis://{}", node.address())).collect();
    let node = Node::start(&urls, Mode::Cluster, 1).await;
    let other = Node::start(&urls, Mode::Cluster, 1).await;
    let silent: Vec<_> = (0..5).map(|number| records(&node, &format!("gateway-{number}"))).collect();
    let (last, one) = (records(&node, "gateway-5"), records(&other, "one"));
    let _answering = answering(&last, b"5");
    // A node may find the server of the records a moment after the others.
    let mut found = Vec::new();
    within("all are found", SOON, async || {
        for gateway in silent.iter().chain([&last]) {
            write(gateway, &[("x", b"1")]).await;
        }
        found = ask(&one).await;
        found.len() == 6
    })
    .await;
    assert_eq!(found[5], told("gateway-5", Standing::Up, b"5"));
    assert_eq!(found[0], told("gateway-0", Standing::Missing, b"1"));
}
