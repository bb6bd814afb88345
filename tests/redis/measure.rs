//! Prints what callers got during each fault. It asserts nothing; the other tests do.
//!
//! `cargo nextest run --test redis --run-ignored only --no-capture measure`

use std::io;
use std::io::Write;
use std::time::Duration;

use portcullis::store::redis::Failure;

use crate::reach::Reach;
use crate::support::{RedisServer, Stopwatch};

fn say(line: &str) {
    writeln!(io::stdout(), "{line}").expect("someone reads");
}

async fn fault(name: &str, server: &mut RedisServer, out: impl Fn(&mut RedisServer), back: impl Fn(&mut RedisServer)) {
    let reach = Reach::single(server.url()).await;
    reach.until_well("a").await;
    out(server);
    let (first, waited) = reach.call("a").await;
    let mut spans = Vec::new();
    let begun = Stopwatch::start();
    while begun.elapsed() < Duration::from_secs(1) {
        let (answer, took) = reach.call("a").await;
        if answer == Err(Failure::Open) {
            spans.push(took);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    spans.sort();
    let causes = reach.causes();
    back(server);
    let returned = reach.until_well("a").await;
    let (median, most) = (spans[spans.len() / 2], spans[spans.len() - 1]);
    say(&format!(
        "{name}: first call {first:?} after {waited:.1?}; then turned away in {median:.1?} (most {most:.1?}) as {causes:?}; \
         well {returned:.1?} after its return"
    ));
}

#[ignore = "measures, promises nothing"]
#[tokio::test]
async fn what_callers_saw() {
    let mut server = RedisServer::start();
    fault("stopped", &mut server, |server| server.pause(), |server| server.resume()).await;
    fault("killed", &mut server, RedisServer::kill, RedisServer::restart).await;
    let commands: [(&str, &[&str], &[&str]); 4] = [
        ("readonly", &["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]),
        ("out of memory", &["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]),
        (
            "too few replicas",
            &["CONFIG", "SET", "min-replicas-to-write", "1"],
            &["CONFIG", "SET", "min-replicas-to-write", "0"],
        ),
        ("no permission", &["ACL", "SETUSER", "default", "-evalsha"], &["ACL", "SETUSER", "default", "+evalsha"]),
    ];
    for (name, out, back) in commands {
        fault(name, &mut server, |server| drop(server.cli(out)), |server| drop(server.cli(back))).await;
    }
}

#[ignore = "measures, promises nothing"]
#[tokio::test]
async fn calls_a_second() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    reach.until_well("a").await;
    for at_once in [1, 16, 64, 512] {
        let (begun, mut done) = (Stopwatch::start(), 0_u32);
        let statistic = |name: &str| {
            let stats = server.cli(&["INFO", "stats"]);
            let line = stats.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
            line.expect("a statistic").parse::<f64>().expect("a number")
        };
        let reads = statistic("total_reads_processed");
        while begun.elapsed() < Duration::from_secs(2) {
            futures_util::future::join_all((0..at_once).map(|_| reach.call("a"))).await;
            done += at_once;
        }
        let rate = f64::from(done) / begun.elapsed().as_secs_f64();
        let reads = f64::from(done) / (statistic("total_reads_processed") - reads);
        say(&format!("{at_once} at once: {rate:.0} calls a second, {reads:.1} in each read of the server"));
    }
}
