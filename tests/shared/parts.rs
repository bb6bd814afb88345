//! The part of every limit that a gateway grants while Redis is away.

use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::site::{RAW, Site, ask_admin, at_rest, config, url_of_mute};
use crate::support::{Caller, Gateway, Ledger, RedisServer, Stopwatch, eventually, found_within, throughout};

const LIMIT: &str = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 12/hour}";

/// Within this time all gateways have their parts.
const SETTLED_WITHIN: Duration = Duration::from_secs(10);

/// As `status` shows it.
fn part(gateway: &Gateway) -> f64 {
    let status: Value = ask_admin(gateway, "GET", "/api/v1/status").json();
    let part = status["store"]["part"].as_f64().expect("a part");
    let metrics = ask_admin(gateway, "GET", "/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("portcullis_store_part{kind=\"redis\"} "));
    let told: f64 = line.expect("a metric").parse().expect("a number");
    assert!((0.0..=1.0).contains(&told), "{told}");
    part
}

/// Waits until every gateway holds one of so many equal parts, and asserts that all of them are never more than the whole.
#[track_caller]
fn settles(gateways: &[Gateway], parts: f64) {
    found_within(SETTLED_WITHIN, || {
        // Read one after the other, and one may shrink and another one grow in between: what all held at one moment is for the
        // model of the script to show.
        let held: Vec<f64> = gateways.iter().map(part).collect();
        let are_equal = held.iter().all(|part| (part - 1.0 / parts).abs() < 1e-9);
        are_equal.then_some(()).ok_or_else(|| format!("{held:?}, not {parts} equal parts"))
    });
}

/// Sends many requests of one key to every gateway at once. Returns how many passed at each.
fn hammered(site: &Site, key: &str) -> Vec<usize> {
    let clock = site.application.clock();
    let passed = |gateway: &Gateway| {
        let address = gateway.address();
        move || {
            let mut caller = Caller::default();
            let statuses = (0..40).map(|_| caller.call(address, "/", key, clock).expect("an answer"));
            statuses.filter(|status| *status == 200).count()
        }
    };
    thread::scope(|scope| {
        let callers: Vec<_> = site.gateways.iter().map(|gateway| scope.spawn(passed(gateway))).collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    })
}

#[test]
fn all_parts_are_the_whole_while_gateways_come_and_go() {
    let _at_rest = at_rest();
    let mut site = Site::start(1, "", "  nodes: auto", LIMIT);
    // It is not ready before.
    assert!((part(&site.gateways[0]) - 1.0).abs() < 1e-9);
    site.add(&[]);
    site.add(&[]);
    settles(&site.gateways, 3.0);

    // Without Redis they grant what they hold, and one that starts grants nothing.
    site.redis.kill();
    assert_eq!(hammered(&site, &format!("{RAW}-first")), [4, 4, 4]);
    site.add_without_redis();
    let late = &site.gateways[3];
    assert!(part(late).abs() < 1e-9);
    let says_so = |line: &String| line.contains("holds no part of any limit");
    eventually("it says that it holds nothing", || late.log_messages().iter().any(says_so));
    assert_eq!(hammered(&site, &format!("{RAW}-second")), [4, 4, 4, 0]);

    // Redis comes back without its data.
    site.redis.restart();
    settles(&site.gateways, 4.0);

    // One ends in order, and one is killed.
    let mut ended = site.gateways.remove(0);
    ended.signal("TERM");
    ended.ended();
    settles(&site.gateways, 3.0);
    site.gateways[0].kill();
    let _killed = site.gateways.remove(0);
    settles(&site.gateways, 2.0);
    site.redis.kill();
    assert_eq!(hammered(&site, &format!("{RAW}-third")), [6, 6]);
    site.redis.restart();
}

#[test]
fn a_gateway_that_is_stopped_keeps_its_part() {
    let _at_rest = at_rest();
    let mut site = Site::start(2, "", "  nodes: auto", LIMIT);
    settles(&site.gateways, 2.0);
    site.gateways[1].pause();
    site.add(&[]);
    // The other two divide what the stopped one does not hold: it will use its half, should it go on without Redis.
    throughout(Duration::from_secs(7), || {
        let held = part(&site.gateways[0]) + part(&site.gateways[2]);
        assert!(held <= 0.5 + 1e-9, "{held}");
    });
    site.redis.kill();
    site.gateways[1].resume();
    let passed = hammered(&site, &format!("{RAW}-stopped"));
    assert_eq!(passed[1], 6);
    assert!(passed[0] + passed[2] <= 6, "{passed:?}");
    site.redis.restart();
    settles(&site.gateways, 3.0);
}

/// Asserts for so long that the parts are at no moment more than the whole.
#[track_caller]
fn are_never_more_than_the_whole(gateways: &[Gateway], span: Duration) {
    let waited = Stopwatch::start();
    throughout(span, || {
        // Those that came last are read first: they only grow, and what they are granted is given up before.
        let held: Vec<f64> = gateways.iter().rev().map(part).collect();
        assert!(held.iter().sum::<f64>() <= 1.0 + 1e-9, "{held:?} after {:?}", waited.elapsed());
    });
}

#[test]
fn a_table_that_is_lost_unseen_gives_nothing_away() {
    let _at_rest = at_rest();
    let mut site = Site::start(2, "", "  nodes: auto", LIMIT);
    settles(&site.gateways, 2.0);
    // Nobody is told of a single key that is removed or evicted: whoever calls first finds nothing.
    assert_eq!(site.redis.cli(&["DEL", "portcullis:parts"]), "1");
    site.add(&[]);
    are_never_more_than_the_whole(&site.gateways, Duration::from_secs(5));
    settles(&site.gateways, 3.0);
}

#[test]
fn neither_does_it_where_gateways_hear_nothing_of_each_other() {
    let _at_rest = at_rest();
    let redis = RedisServer::start();
    let user = ["ACL", "SETUSER", "deaf", "on", ">any", "~*", "+@all", "-publish", "-subscribe", "-client|tracking"];
    assert_eq!(redis.cli(&user), "OK");
    let application = Ledger::start();
    let place = format!("url: \"{}\"", redis.url().replace("redis://", "redis://deaf:any@"));
    let configuration = config(&application.url(), &place, "  nodes: auto", LIMIT);
    let gateways = [(); 2].map(|()| Gateway::start(&configuration));
    settles(&gateways, 2.0);
    // One is stopped when it would call, so that they call at moments that are far apart.
    gateways[1].pause_for(Duration::from_millis(7500));
    for _ in 0..3 {
        assert_eq!(redis.cli(&["DEL", "portcullis:parts"]), "1");
        are_never_more_than_the_whole(&gateways, Duration::from_secs(9));
        settles(&gateways, 2.0);
    }
}

#[test]
fn parts_settle_where_gateways_may_not_publish() {
    let _at_rest = at_rest();
    let redis = RedisServer::start();
    let application = Ledger::start();
    let configuration =
        config(&application.url(), &format!("url: \"{}\"", url_of_mute(&redis)), "  nodes: auto", LIMIT);
    let mut gateways = vec![Gateway::start(&configuration)];
    settles(&gateways, 1.0);
    gateways.push(Gateway::start(&configuration));
    settles(&gateways, 2.0);
    gateways.push(Gateway::start(&configuration));
    settles(&gateways, 3.0);
    gateways[0].signal("TERM");
    gateways[0].ended();
    gateways.remove(0);
    settles(&gateways, 2.0);
}

#[test]
fn a_number_fixes_the_part() {
    let _at_rest = at_rest();
    let site = Site::start(1, "", "  nodes: 5", LIMIT);
    settles(&site.gateways, 5.0);
}
