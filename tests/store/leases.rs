//! Requests that are paid with units that the gateway has leased.

use std::time::Duration;

use portcullis::rules::limit::OnFailure;

use crate::node::{Node, key};
use crate::support::Limit;
use crate::surroundings::{RedisServer, Stopwatch, within};

/// Sends requests for two seconds, so that the gateway knows how busy the key is. Returns how many passed.
async fn keep_busy(node: &Node, limit: &Limit, key: u128) -> usize {
    let (begun, mut passed) = (Stopwatch::start(), 0);
    while begun.elapsed() < Duration::from_secs(2) {
        passed += node.count(1, limit, key).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    passed
}

fn calls(server: &RedisServer) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse().expect("a number"))
}

#[tokio::test]
async fn a_unit_is_taken_back_when_another_limit_denies() {
    let server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (wide, narrow, busy, other) = (Limit::rates("60000/hour"), Limit::rates("2/hour"), key(), key());
    let passed = keep_busy(&node, &wide, busy).await;
    let both = [(&wide, busy, OnFailure::Deny), (&narrow, other, OnFailure::Deny)];
    let mut more = 0;
    for _ in 0..20 {
        more += usize::from(node.ask(&both).await == [true, true]);
    }
    assert_eq!(more, 2);
    let verdicts = node.decide(&both).await.expect("it answers");
    assert!(verdicts.iter().all(|verdict| verdict.charged.is_none()) && verdicts[0].passes());
    // What was never spent comes back with the lease.
    let fresh = Node::on(&server, 1).await;
    let remaining =
        async || fresh.decide(&[(&wide, busy, OnFailure::Deny)]).await.expect("it answers")[0].standings[0].remaining;
    let mut asked = 0;
    within("the lease is given back", Duration::from_secs(10), async || {
        asked += 1;
        remaining().await == 60_000 - u64::try_from(passed + more + asked).expect("few")
    })
    .await;
}

#[tokio::test]
async fn what_is_leased_is_spent_without_redis() {
    let mut server = RedisServer::start();
    let node = Node::on(&server, 1).await;
    let (limit, busy) = (Limit::rates("60000/hour"), key());
    let before = calls(&server);
    let passed = keep_busy(&node, &limit, busy).await;
    let asked = calls(&server) - before;
    assert!(asked < passed as u64, "{asked} calls for {passed} requests");
    server.kill();
    let mut paid = 0;
    while node.decide(&[(&limit, busy, OnFailure::Deny)]).await.is_ok() {
        paid += 1;
    }
    assert!(paid < 1000, "{paid} were paid with one lease");
}
