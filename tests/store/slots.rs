//! Concurrency slots in a real Redis: shared, leased, and released where they were taken.

use std::sync::Arc;
use std::time::Duration;

use portcullis::rules::limit::OnFailure;
use portcullis::store::Store;

use crate::node::{Node, SOON, batch, key};
use crate::support::Limit;
use crate::surroundings::{RedisServer, Stopwatch, within};

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

#[tokio::test]
async fn what_is_given_back_while_redis_is_known_to_be_away_comes_back_with_it() {
    let server = RedisServer::start();
    let (node, other) = (Node::on(&server, 1).await, Node::on(&server, 1).await);
    let (limit, slot) = (Limit::concurrent(1), key());
    assert!(node.passes(&limit, slot).await);
    server.pause();
    // A question without an answer is how a gateway knows.
    assert!(node.passes(&limit, key()).await);
    node.give_back(slot).await;
    server.resume();
    within("it is free for all", SOON, async || other.passes(&limit, slot).await).await;
    assert!(!other.passes(&limit, slot).await);
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
    within("the slot of the dead is free", Duration::from_secs(35), async || other.passes(&limit, key).await).await;
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
        within("the slot is free", SOON, async || node.passes(&limit, key).await).await;
        node.give_back(key).await;
    }
}
