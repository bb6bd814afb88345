//! The key ring that all gateways on one Redis share.

use std::time::Duration;

use portcullis::store::redis::{Time, scripts};
use portcullis::words::clock::{Clock, ManualClock, Timestamp};
use portcullis::words::signing::{MAX_KEYS, ROTATION_PERIOD};
use redis::Value;

use crate::reach::Reach;
use crate::support::{RedisServer, until};

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
const MESSAGE: &[&[u8]] = &[b"alice"];

/// Whether what one signs the other believes.
fn agree(one: &Reach, other: &Reach) -> bool {
    let mac = one.shared.key_ring().load_for_signing(NOW).sign("test", MESSAGE);
    other.shared.key_ring().load().verify("test", MESSAGE, &mac)
}

#[tokio::test]
async fn gateways_of_one_redis_believe_each_other_from_the_start() {
    let server = RedisServer::start();
    let (one, other) = (Reach::single(server.url()).await, Reach::single(server.url()).await);
    assert!(agree(&one, &other) && agree(&other, &one));
    let expires: i64 = server.cli(&["PTTL", "gate:keyring"]).parse().expect("a number");
    assert!(expires > 0);
    assert_eq!(server.cli(&["STRLEN", "gate:keyring"]), "48");
}

#[tokio::test]
async fn who_reads_the_keys_but_not_the_password_signs_nothing() {
    let server = RedisServer::start();
    let url = |user: &str| {
        let rules = ["ACL", "SETUSER", user, "on", &format!(">of-{user}"), "~*", "&*", "+@all"].map(str::to_owned);
        assert_eq!(server.cli(&rules.each_ref().map(String::as_str)), "OK");
        server.url().replace("redis://", &format!("redis://{user}:of-{user}@"))
    };
    let (one, other, thief) = (url("gate"), url("gate"), url("thief"));
    let (one, other, thief) = (Reach::single(one).await, Reach::single(other).await, Reach::single(thief).await);
    assert!(agree(&one, &other));
    assert!(!agree(&one, &thief) && !agree(&thief, &one));
}

#[tokio::test]
async fn a_gateway_that_begins_without_redis_signs_by_itself_until_it_is_there() {
    let mut server = RedisServer::start();
    server.kill();
    let (one, other) = (Reach::single(server.url()).await, Reach::single(server.url()).await);
    let alone = one.shared.key_ring().load_for_signing(NOW).sign("test", MESSAGE);
    assert!(!agree(&one, &other));
    server.restart();
    until("both have learnt the keys", || agree(&one, &other) && agree(&other, &one)).await;
    assert!(one.shared.key_ring().load().verify("test", MESSAGE, &alone));
}

#[tokio::test]
async fn a_redis_that_comes_back_empty_costs_nobody_what_was_signed() {
    let mut server = RedisServer::start();
    let (one, other) = (Reach::single(server.url()).await, Reach::single(server.url()).await);
    let before = one.shared.key_ring().load_for_signing(NOW).sign("test", MESSAGE);
    server.kill();
    until("both know that it is away", || !one.shared.status().up && !other.shared.status().up).await;
    server.restart();
    until("there are new keys", || {
        one.shared.key_ring().load_for_signing(NOW).sign("test", MESSAGE) != before
            && agree(&one, &other)
            && agree(&other, &one)
    })
    .await;
    assert!(one.shared.key_ring().load().verify("test", MESSAGE, &before));
    assert!(other.shared.key_ring().load().verify("test", MESSAGE, &before));
}

#[tokio::test]
async fn whoever_comes_first_makes_the_next_key_and_the_oldest_goes() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    let clock = ManualClock::at(NOW);
    let ask = async |secret: u8| {
        let invocation =
            scripts::keyring("gate:of-the-test", &[secret; 32], &Time::Given(Clock::Manual(clock.clone())));
        let answer = reach.links.call(reach.links.slot(b"gate:of-the-test"), &invocation).await;
        let Ok(Value::BulkString(kept)) = answer else { panic!("{answer:?}") };
        kept.chunks(48).map(|record| record[47]).collect::<Vec<_>>()
    };
    assert_eq!(ask(1).await, [1]);
    assert_eq!(ask(2).await, [1]);
    clock.advance(ROTATION_PERIOD.checked_sub(Duration::from_secs(1)).unwrap());
    assert_eq!(ask(3).await, [1]);
    clock.advance(Duration::from_secs(1));
    assert_eq!(ask(4).await, [4, 1]);
    assert_eq!(ask(5).await, [4, 1]);
    for secret in 10..20 {
        clock.advance(ROTATION_PERIOD);
        ask(secret).await;
    }
    let kept = ask(99).await;
    assert_eq!((kept.len(), kept[0], kept[MAX_KEYS - 1]), (MAX_KEYS, 19, 12));
    // What someone else has written there is no key.
    assert_eq!(server.cli(&["SET", "gate:of-the-test", "nonsense"]), "OK");
    assert_eq!(ask(7).await, [7]);
}
