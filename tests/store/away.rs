//! The shared store over a real Redis: what costs it nothing, and what holds while it is away.

use std::time::Duration;

use portcullis::rules::decision::Settlement;
use portcullis::rules::decision::batch::Items;
use portcullis::rules::key::KeyHash;
use portcullis::rules::limit::OnFailure;
use portcullis::store::{Store, StoreError};

use crate::node::{Node, PREFIX, SOON, batch, key};
use crate::support::{Limit, passing, remaining};
use crate::surroundings::{RedisServer, Stopwatch, within};

/// Waits until so many gateways subscribe to resets.
async fn listening(server: &RedisServer, gateways: usize) {
    let count = format!("{PREFIX}:resets\n{gateways}");
    within("the gateways hear of resets", SOON, async || {
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
        other.store.reset(&[KeyHash(key)]).await.expect("redis answers");
        within("the other gateway lets it pass", Duration::from_secs(1), async || one.passes(&limit, key).await).await;
        other.store.reset(&[KeyHash(key)]).await.expect("redis answers");
        within("it is heard of again", Duration::from_secs(1), async || {
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
        other.store.reset(&[KeyHash(key)]).await.expect("redis answers");
        let verdicts = one.decide(&[(&limit, key, OnFailure::Local)]).await.expect("redis answers");
        let charged = verdicts[0].charged.as_ref().expect("it was charged");
        let look = async || one.store.look(&batch(&[(&limit, key, OnFailure::Local)])).await.expect("redis answers");
        // When this answer is here, the message of the reset is too.
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
    assert_eq!(node.count(3, &dear, key()).await, 0, "two of eight are not enough for a request that costs three");
    assert_eq!(node.count(3, &Limit::rates("12/hour").cost(3), key()).await, 1);
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
    within("redis grants the whole of it", Duration::from_secs(2), async || {
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
        assert_eq!(node.decide(&asked).await, Err(StoreError::Outage));
    }
    assert_eq!(node.store.look(&batch(&[(&limit, other, OnFailure::Deny)])).await, Err(StoreError::Outage));
    assert_eq!(node.count(3, &limit, key).await, 2);
    // The denial is the same as with Redis: the client gets `Retry-After`, not an error.
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
    within("redis decides again", Duration::from_secs(2), async || {
        let before = executed(&server);
        assert!(node.passes(&limit, key).await);
        executed(&server) > before
    })
    .await;
}
