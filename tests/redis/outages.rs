//! Outages: callers wait once, then fail at once, and succeed again within a second of its return.

use std::net::TcpListener;
use std::net::TcpStream;
use std::time::Duration;

use portcullis::store::redis::Failure;

use crate::reach::AT_ONCE;
use crate::reach::Reach;
use crate::reach::SOON;
use crate::reach::TIMEOUT;
use crate::reach::logged;
use crate::support::RedisServer;
use crate::support::Stopwatch;
use crate::support::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_very_first_call_is_answered() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    assert!(reach.shared.status().up);
    assert_eq!(reach.call("a").await.0, Ok(1));
    assert_eq!(reach.seen.failures(), [""; 0]);
    assert_eq!(logged(&[&server.address().to_string()]), [""; 0], "nothing is amiss");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_redis_goes_on_and_recovers_by_itself() {
    let mut server = RedisServer::start();
    server.kill();
    let begun = Stopwatch::start();
    let reach = Reach::single(server.url()).await;
    assert!(begun.elapsed() < SOON / 2, "the start went on after {:?}", begun.elapsed());
    reach.is_away_at_once("a").await;
    assert_eq!(reach.causes(), ["connection"]);
    let address = server.address().to_string();
    assert_eq!(logged(&[&address, "is down", "`on_failure`"]).len(), 1);
    server.restart();
    let waited = reach.until_well("a").await;
    assert!(waited < SOON, "back after {waited:?}");
    eventually("it is said to be back", || logged(&[&address, "is back, "]).len() == 1);
    assert_eq!(logged(&[&address]).len(), 2, "{:?}", logged(&[&address]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_is_waited_for_once_and_is_back_as_soon_as_it_wakes() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    assert_eq!(reach.call("a").await.0, Ok(1));
    let before = connections(&server);
    server.pause();
    let (answer, took) = reach.call("a").await;
    assert_eq!(answer, Err(Failure::Unknown), "it was sent");
    assert!(took >= TIMEOUT && took < TIMEOUT + AT_ONCE, "{took:?}");
    reach.is_away_at_once("a").await;
    assert_eq!(reach.causes(), ["timeout"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    reach.is_away_at_once("a").await;
    server.resume();
    let waited = reach.until_well("a").await;
    assert!(waited < SOON / 2, "back after {waited:?}");
    // The commands that were sent while it was stopped ran when it resumed, and were not sent again.
    assert_eq!(server.cli(&["GET", "gate:a"]), "3");
    let made = connections(&server) - before;
    // The key ring, the bans and the sessions have a connection each.
    assert!(made <= 6, "{made} connections were piled up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_wait_for_a_stopped_server_together() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    reach.until_well("a").await;
    server.pause();
    let begun = Stopwatch::start();
    let calls: Vec<_> = futures_util::future::join_all((0..500).map(|_| reach.call("a"))).await;
    assert!(begun.elapsed() < TIMEOUT + AT_ONCE * 2, "{:?}", begun.elapsed());
    assert!(calls.iter().all(|(answer, _)| answer.is_err()));
    reach.is_away_at_once("a").await;
    server.resume();
    assert!(reach.until_well("a").await < SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_is_noticed_and_may_come_back_empty() {
    let mut server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    reach.until_well("a").await;
    server.kill();
    reach.until_away("a").await;
    reach.is_away_at_once("a").await;
    assert_eq!(reach.causes(), ["connection"]);
    server.restart();
    let waited = reach.until_well("a").await;
    assert!(waited < SOON / 2, "back after {waited:?}");
    assert_eq!(server.cli(&["GET", "gate:a"]), "1", "it came back empty");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_while_nobody_asks_is_noticed_by_the_watch_alone() {
    let mut server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    server.kill();
    eventually("it is known to be away", || !reach.shared.status().up);
    assert_eq!(reach.seen.failures(), [""; 0], "no caller found out");
    server.restart();
    eventually("it is known to be back", || reach.shared.status().up);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_a_server_closes_while_nobody_asks_are_no_failure() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    for count in 1..5 {
        assert_eq!(reach.call("a").await.0, Ok(count));
        server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(reach.seen.failures(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_accepts_nothing_is_given_up_in_time() {
    // A listener with a full queue drops new connections, as a network would.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    socket.listen(0).expect("it listens");
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().expect("an address");
    let bound = Duration::from_millis(100);
    let held: Vec<_> = (0..4).filter_map(|_| TcpStream::connect_timeout(&address, bound).ok()).collect();
    let begun = Stopwatch::start();
    let reach = Reach::single(format!("redis://{address}")).await;
    assert!(begun.elapsed() < SOON + AT_ONCE, "the start went on after {:?}", begun.elapsed());
    reach.until_away("a").await;
    reach.is_away_at_once("a").await;
    assert_eq!(reach.causes(), ["timeout"]);
    drop(held);
}

/// How many connections the server has ever accepted, but for that of this question.
fn connections(server: &RedisServer) -> u64 {
    let stats = server.cli(&["INFO", "stats"]);
    let line = stats.lines().find_map(|line| line.trim().strip_prefix("total_connections_received:"));
    line.expect("a count").parse::<u64>().expect("a number") - 1
}
