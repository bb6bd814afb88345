//! The commands that a healthy server gets.

use portcullis::store::redis::Failure;

use crate::reach::{AT_ONCE, Reach, SOON, TIMEOUT};
use crate::support::{RedisServer, Stopwatch, until};

fn statistic(server: &RedisServer, name: &str) -> u64 {
    let stats = server.cli(&["INFO", "stats"]);
    let line = stats.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
    line.expect("a statistic").parse().expect("a number")
}

#[tokio::test]
async fn nothing_much_is_sent_when_nobody_asks() {
    /// What a healthy server is asked in so many seconds: how many keys it has, who it is, and whether it still tells.
    const ROUND: u64 = 15;
    const IN_A_ROUND: u64 = 3;
    let server = RedisServer::start();
    let _reach = Reach::single(server.url()).await;
    tokio::time::sleep(SOON * 2).await;
    let begun = Stopwatch::start();
    let before = statistic(&server, "total_commands_processed");
    tokio::time::sleep(SOON * 14).await;
    let sent = statistic(&server, "total_commands_processed") - before;
    // A machine that is busy with other tests may take longer, so that a second round falls into it.
    let rounds = begun.elapsed().as_secs() / ROUND + 1;
    let most = 1 + IN_A_ROUND * rounds;
    assert!(sent <= most, "{sent} commands in {:?}, one of them this question", begun.elapsed());
}

#[tokio::test]
async fn a_gateway_that_has_its_part_says_so_once_a_minute() {
    let server = RedisServer::start();
    let reach = Reach::with_part(server.url()).await;
    until("it has the whole", || reach.shared.part().is_whole()).await;
    tokio::time::sleep(SOON).await;
    let scripts = || {
        let stats = server.cli(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| line.trim().strip_prefix("cmdstat_evalsha:calls="));
        line.and_then(|line| line.split(',').next()?.parse::<u64>().ok()).expect("a statistic")
    };
    let before = scripts();
    tokio::time::sleep(SOON * 10).await;
    assert!(scripts() - before <= 1);
}

#[tokio::test]
async fn concurrent_calls_share_writes() {
    let server = RedisServer::start();
    let shared = Reach::single(server.url()).await;
    shared.until_well("warm").await;
    let (reads, connections) =
        (statistic(&server, "total_reads_processed"), statistic(&server, "total_connections_received"));
    let begun = Stopwatch::start();
    let calls = futures_util::future::join_all((0..1000).map(|_| shared.call("a"))).await;
    let took = begun.elapsed();
    assert!(calls.iter().all(|(answer, _)| answer.is_ok()));
    let reads = statistic(&server, "total_reads_processed") - reads;
    assert!(reads < 60, "{reads} reads for 1000 calls");
    let connections = statistic(&server, "total_connections_received") - connections;
    assert!(connections <= 3, "{connections} connections, three of them these questions");
    assert!(took < TIMEOUT, "{took:?}");
}

#[tokio::test]
async fn many_first_calls_share_one_connection() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    let before = statistic(&server, "total_connections_received");
    let calls = futures_util::future::join_all((0..200).map(|_| reach.call("a"))).await;
    assert!(calls.iter().all(|(answer, _)| answer.is_ok()));
    let made = statistic(&server, "total_connections_received") - before;
    assert!(made <= 3, "{made} connections, one of them this question, one perhaps to hear of resets");
}

#[tokio::test]
async fn resets_are_heard_of_from_any_gateway() {
    let server = RedisServer::start();
    let (one, other) = (Reach::single(server.url()).await, Reach::single(server.url()).await);
    until("both listen", || server.cli(&["PUBSUB", "NUMSUB", "gate:resets"]).ends_with('2')).await;
    let (before, there) = (one.denied.epoch(), other.denied.epoch());
    let begun = Stopwatch::start();
    one.links.publish("gate:resets", &format!("{:032x}", 7)).await.expect("told");
    until("both heard", || one.denied.epoch() > before && other.denied.epoch() > there).await;
    assert!(begun.elapsed() < AT_ONCE * 2, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn who_may_not_tell_the_others_decides_on() {
    let server = RedisServer::start();
    server.cli(&["ACL", "SETUSER", "mute", "on", ">any", "~*", "&*", "+@all", "-publish"]);
    let reach = Reach::single(format!("redis://mute:any@{}", server.address())).await;
    assert_eq!(reach.links.publish("gate:resets", "").await, Err(Failure::Refused));
    assert_eq!(reach.call("a").await.0, Ok(1));
    assert_eq!(reach.seen.failures(), ["noperm"]);
}

#[tokio::test]
async fn a_lost_subscription_is_made_again() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    let listens = || server.cli(&["PUBSUB", "NUMSUB", "gate:resets"]).ends_with('1');
    until("it listens", listens).await;
    let before = reach.denied.epoch();
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    let begun = Stopwatch::start();
    until("it listens again", listens).await;
    until("all is forgotten", || reach.denied.epoch() > before).await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(reach.shared.status().up);
}

#[tokio::test]
async fn a_server_that_is_emptied_is_believed_at_once() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    until("it listens", || server.cli(&["CLIENT", "LIST"]).contains("flags=Pt")).await;
    for command in ["FLUSHALL", "FLUSHDB"] {
        let before = reach.denied.epoch();
        server.cli(&[command]);
        until("all is forgotten", || reach.denied.epoch() > before).await;
    }
    assert!(reach.shared.status().up);
}

#[tokio::test]
async fn keys_are_counted_now_and_then() {
    let server = RedisServer::start();
    for name in ["a", "b", "c"] {
        server.cli(&["SET", name, "1"]);
    }
    let reach = Reach::single(server.url()).await;
    // One more is the key of the probe.
    until("they are counted", || reach.shared.keys() == 4).await;
}

#[tokio::test]
async fn a_socket_of_a_file_serves_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redis.sock");
    let server = RedisServer::with_options(&["--unixsocket", path.to_str().expect("plain")]);
    let reach = Reach::single(format!("unix://{}?db=3", path.display())).await;
    assert_eq!(reach.call("a").await.0, Ok(1));
    assert_eq!(server.cli(&["-n", "3", "GET", "gate:a"]), "1");
}
