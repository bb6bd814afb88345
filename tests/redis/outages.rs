//! Outages: callers wait once, then fail at once, and succeed again within a second of its return.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use portcullis::store::redis::Failure;

use crate::reach::{AT_ONCE, Reach, SOON, TIMEOUT, logged};
use crate::support::{RedisServer, Stopwatch, all_the_while, until};

#[tokio::test]
async fn the_very_first_call_is_answered() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    assert!(reach.shared.status().up);
    assert_eq!(reach.call("a").await.0, Ok(1));
    assert_eq!(reach.seen.failures(), [""; 0]);
    assert_eq!(logged(&[&server.address().to_string()]), [""; 0], "nothing is amiss");
}

#[tokio::test]
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
    until("it is said to be back", || logged(&[&address, "is back, "]).len() == 1).await;
    assert_eq!(logged(&[&address]).len(), 2, "{:?}", logged(&[&address]));
}

#[tokio::test]
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
    all_the_while(Duration::from_secs(2), async || reach.is_away_at_once("a").await).await;
    server.resume();
    let waited = reach.until_well("a").await;
    assert!(waited < SOON / 2, "back after {waited:?}");
    // The commands that were sent while it was stopped ran when it resumed, and were not sent again.
    assert_eq!(server.cli(&["GET", "gate:a"]), "3");
    let made = connections(&server) - before;
    // The key ring, the bans and the sessions have a connection each.
    assert!(made <= 6, "{made} connections were piled up");
}

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
async fn a_server_killed_while_nobody_asks_is_noticed_by_the_watch_alone() {
    let mut server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    server.kill();
    until("it is known to be away", || !reach.shared.status().up).await;
    assert_eq!(reach.seen.failures(), [""; 0], "no caller found out");
    server.restart();
    until("it is known to be back", || reach.shared.status().up).await;
}

#[tokio::test]
async fn connections_that_a_server_closes_while_nobody_asks_are_no_failure() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    for count in 1..5 {
        assert_eq!(reach.call("a").await.0, Ok(count));
        server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        // One of the clients is the question itself.
        let clients = || server.cli(&["CLIENT", "LIST", "TYPE", "normal"]).lines().count();
        until("the gateway has connected again", || clients() > 1).await;
    }
    assert_eq!(reach.seen.failures(), [""; 0]);
}

#[tokio::test]
async fn a_server_that_accepts_nothing_is_given_up_in_time() {
    // A listener with a full queue drops new connections, as a network would.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
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

/// A balancer in front of Redis: a connection stays with the server that it began with.
struct Balancer {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
}

impl Balancer {
    fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let target = Arc::new(Mutex::new(target));
        let chosen = Arc::clone(&target);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let target = *chosen.lock().expect("no panic here");
                let Ok(server) = TcpStream::connect(target) else { continue };
                let (Ok(to_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { continue };
                for (mut from, mut to) in [(client, to_server), (server, to_client)] {
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        Self { address, target }
    }

    fn lead_to(&self, target: SocketAddr) {
        *self.target.lock().expect("no panic here") = target;
    }
}

#[tokio::test]
async fn a_demoted_master_whose_connections_stay_open_is_left() {
    // As a replica that answers reads, and as one that answers nothing while it has no master.
    for serves_stale_data in ["yes", "no"] {
        let (old, new) = (RedisServer::start(), RedisServer::start());
        let balancer = Balancer::to(old.address());
        let reach = Reach::single(format!("redis://{}/0", balancer.address)).await;
        assert_eq!(reach.call("a").await.0, Ok(1));
        old.cli(&["CONFIG", "SET", "replica-serve-stale-data", serves_stale_data]);
        balancer.lead_to(new.address());
        // Nobody listens at that port: it has no master for now.
        old.cli(&["REPLICAOF", "127.0.0.1", "1"]);
        assert!(reach.call("a").await.0.is_err());
        let waited = reach.until_well("a").await;
        assert!(waited < SOON, "back after {waited:?}");
        assert_eq!(new.cli(&["GET", "gate:a"]), "1");
        let address = balancer.address.to_string();
        assert_eq!(logged(&[&address, "is down"]).len(), 1);
        until("it is said to be back", || logged(&[&address, "is back, "]).len() == 1).await;
    }
}

#[tokio::test]
async fn a_server_that_takes_no_more_clients_is_down_for_that_and_said_to_be_back() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    assert_eq!(reach.call("a").await.0, Ok(1));
    let mut operator = BufReader::new(TcpStream::connect(server.address()).expect("a connection"));
    let mut ask = |command: &str| {
        operator.get_mut().write_all(format!("{command}\r\n").as_bytes()).expect("it is sent");
        let mut answer = String::new();
        operator.read_line(&mut answer).expect("an answer");
        assert!(!answer.starts_with('-'), "{command}: {answer}");
    };
    ask("CONFIG SET maxclients 1");
    ask("CLIENT KILL TYPE normal SKIPME yes");
    ask("CLIENT KILL TYPE pubsub");
    reach.until_away("a").await;
    let address = server.address().to_string();
    until("the reason is said", || !logged(&[&address, "maxclients"]).is_empty()).await;
    ask("CONFIG SET maxclients 1000");
    let waited = reach.until_well("a").await;
    assert!(waited < SOON, "back after {waited:?}");
    until("it is said to be back", || logged(&[&address, "is back, "]).len() == 1).await;
    assert_eq!(logged(&[&address, "is down"]).len(), 1, "{:?}", logged(&[&address]));
}
