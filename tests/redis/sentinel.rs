//! A master, its replica, and sentinels.

use std::process::Command;

use portcullis::store::redis::Mode;

use crate::reach::{Reach, SOON};
use crate::support::{RedisSentinels, RedisServer, Stopwatch, until};

fn urls(sentinels: &RedisSentinels) -> Vec<String> {
    sentinels.urls().trim_matches(['[', ']']).split(", ").map(|url| url.trim_matches('"').to_owned()).collect()
}

/// Asks the sentinel of this url.
fn ask(url: &str, command: &[&str]) -> String {
    let port = url.trim_end_matches("/sessions").rsplit(':').next().expect("a port");
    let output = Command::new("redis-cli").args(["-p", port]).args(command).output();
    String::from_utf8_lossy(&output.expect("redis-cli is installed").stdout).into_owned()
}

#[tokio::test]
async fn the_only_master_needs_no_name() {
    let sentinels = RedisSentinels::start();
    let unnamed: Vec<String> = urls(&sentinels).iter().map(|url| url.replace("/sessions", "")).collect();
    let reach = Reach::begin(Mode::Sentinel, &unnamed[..1]).await;
    assert_eq!(reach.call("a").await.0, Ok(1));
}

#[tokio::test]
async fn a_master_that_becomes_a_replica_is_left_for_the_new_one() {
    let sentinels = RedisSentinels::start();
    let reach = Reach::begin(Mode::Sentinel, &urls(&sentinels)).await;
    reach.until_well("a").await;
    until("the replica has it too", || !sentinels.servers[1].cli(&["GET", "gate:a"]).is_empty()).await;
    assert_eq!(ask(&urls(&sentinels)[0], &["SENTINEL", "FAILOVER", "sessions"]).trim(), "OK");
    let is_master = |server: &RedisServer| server.cli(&["ROLE"]).starts_with("master");
    until("the replica is the master", || is_master(&sentinels.servers[1])).await;
    // The old one says of itself that it is one for seconds yet.
    let listens = || sentinels.servers[1].cli(&["PUBSUB", "NUMSUB", "gate:resets"]).ends_with('1');
    until("the gateway has changed over", listens).await;
    let before: i64 = sentinels.servers[1].cli(&["GET", "gate:a"]).parse().expect("a number");
    assert_eq!(reach.call("a").await.0, Ok(before + 1));
    assert_eq!(reach.seen.failures(), [""; 0], "no call failed");
}

#[tokio::test]
async fn without_any_sentinel_the_start_goes_on() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let begun = Stopwatch::start();
    let reach = Reach::begin(Mode::Sentinel, &[format!("redis://{address}")]).await;
    assert!(begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
    reach.is_away_at_once("a").await;
    assert_eq!(reach.causes(), ["nomaster"]);
}
