//! A ban by one gateway is a ban on every gateway, without a query to Redis for each request.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::flood::commands;
use crate::questions::calls;
use crate::site::{RAW, Site, alone, ask_admin, at_rest, config, store_up, url_of_mute};
use crate::state;
use crate::support::{
    Answer, Caller, Gateway, Ledger, Origin, RedisCluster, RedisServer, Request, Stopwatch, eventually,
    key_without_digits,
};

const LIMITS: &str =
    "limits:\n  - {name: of-the-test, key: header.x-key, rate: 1/hour, then: {ban: [1h, 24h]}, on_failure: local}";

/// A ban and an unban are everywhere within this.
const SOON: Duration = Duration::from_secs(1);

fn site(gateways: usize) -> Site {
    Site::start(gateways, "timeout: 10s", "", LIMITS)
}

/// The bans that a gateway knows, without asking Redis.
fn listed(gateway: &Gateway) -> Vec<Value> {
    let bans = ask_admin(gateway, "GET", "/api/v1/bans").json();
    bans.as_array().expect("a list").clone()
}

/// What happened to bans of late, the newest first.
fn told(gateway: &Gateway) -> Vec<String> {
    let events = ask_admin(gateway, "GET", "/api/v1/events/recent").json();
    let kinds = events.as_array().expect("a list").iter().map(|event| {
        assert_eq!(event["limit"], "of-the-test", "{event}");
        event["event"].as_str().expect("a kind").to_owned()
    });
    kinds.collect()
}

fn id(ban: &Value) -> String {
    ban["id"].as_str().expect("an id").to_owned()
}

fn ban_by_hand(gateway: &Gateway, document: &Value) -> Value {
    let own = gateway.admin().to_string();
    let answer = Request::new(gateway.admin(), "POST", "/api/v1/bans").host(&own).json(&document.to_string()).send();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

#[track_caller]
fn lift(gateway: &Gateway, ban: &Value) {
    assert_eq!(ask_admin(gateway, "DELETE", &format!("/api/v1/bans/{}", id(ban))).status, 204);
}

/// Exhausts the limit of a key at one gateway, whose next request is the ban.
#[track_caller]
fn trip(site: &Site, gateway: usize, key: &str) {
    assert_eq!([site.status(gateway, "/", key), site.status(gateway, "/", key)], [200, 429]);
}

/// Fails unless all of these know so many bans within a second from now.
#[track_caller]
fn know<'g>(gateways: impl IntoIterator<Item = &'g Gateway>, count: usize) {
    let begun = Stopwatch::start();
    for gateway in gateways {
        eventually("the bans are known", || listed(gateway).len() == count);
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[test]
fn a_ban_and_an_unban_are_everywhere_within_a_second_and_nobody_asks_redis_for_them() {
    let _alone = alone();
    let mut site = site(2);
    trip(&site, 0, RAW);
    know(&site.gateways, 1);
    // One that starts later knows it from its first request on.
    site.add(&[]);
    assert_eq!(listed(&site.gateways[2]).len(), 1);
    let before = commands(&site.redis);
    for _ in 0..100 {
        for gateway in 0..3 {
            assert_eq!(site.status(gateway, "/", RAW), 429);
        }
    }
    let asked = commands(&site.redis) - before - 1.0;
    assert!(asked < 20.0, "{asked} commands for 300 requests of one who is banned");
    assert_eq!(site.application.count("/"), 1);

    let ban = listed(&site.gateways[1]).remove(0);
    assert_eq!(ban["limit"], "of-the-test");
    assert_eq!(key_without_digits(&ban["key"]), json!({"header.x-key": "***"}));
    lift(&site.gateways[1], &ban);
    know(&site.gateways, 0);
    // Its counts went with it.
    for gateway in [2, 0] {
        let expected = if gateway == 2 { 200 } else { 429 };
        assert_eq!(site.status(gateway, "/", RAW), expected);
    }
    know(&site.gateways, 1);
    // Each tells later what happened, whoever did it, and once.
    for gateway in &site.gateways[..2] {
        eventually("the ban, the unban and the next ban are told", || told(gateway) == ["ban", "unban", "ban"]);
    }
    assert_eq!(told(&site.gateways[2]), ["ban", "unban"]);
}

#[test]
fn many_addresses_are_banned_in_one_call_at_every_gateway() {
    let _alone = alone();
    let site = site(2);
    let (messages, all) = (calls(&site.redis, "publish"), commands(&site.redis));
    let addresses: Vec<_> = (0..10_000).map(|n| format!("10.{}.{}.1", n / 200, n % 200)).collect();
    let answer = ban_by_hand(&site.gateways[0], &json!({"addresses": addresses, "for": "1h"}));
    assert_eq!(answer["banned"].as_array().expect("a list").len(), 10_000);
    // One message, and so one round trip, for each hundred, beside what gateways say to each other meanwhile.
    let (messages, all) = (calls(&site.redis, "publish") - messages, commands(&site.redis) - all);
    assert!(messages <= 120, "{messages} messages");
    assert!(all <= 60_000.0, "{all} commands");
    for gateway in &site.gateways {
        eventually("the bans are known", || listed(gateway).len() == 10_000);
    }
}

#[test]
fn a_ban_outlives_the_gateway_that_made_it() {
    let _alone = alone();
    let mut site = site(2);
    trip(&site, 0, RAW);
    let by_hand = ban_by_hand(&site.gateways[0], &json!({"address": "127.0.9.9", "for": "1h", "reason": "scans"}));
    site.gateways[0].kill();
    know(&site.gateways[1..], 2);
    assert_eq!(site.status(1, "/", RAW), 429);
    assert_eq!(site.gateways[1].get("/").from("127.0.9.9").status(), 403);
    site.gateways[0].restart();
    eventually("it has found Redis", || store_up(&site.gateways[0]));
    know(&site.gateways, 2);
    assert_eq!(site.status(0, "/", RAW), 429);
    lift(&site.gateways[0], &by_hand);
    know(&site.gateways, 1);
}

#[test]
fn a_redis_that_was_emptied_is_told_of_the_bans_and_of_those_lifted_before_none() {
    let _alone = alone();
    let mut site = site(2);
    for key in ["lifted", "stays"] {
        trip(&site, 0, &format!("{RAW}-{key}"));
        know(&site.gateways, 1);
        if key == "lifted" {
            lift(&site.gateways[1], &listed(&site.gateways[1])[0]);
            know(&site.gateways, 0);
        }
    }
    let ban = listed(&site.gateways[0]).remove(0);
    let kept = |redis: &RedisServer| redis.cli(&["HEXISTS", "portcullis:{bans}", &id(&ban)]) == "1";
    site.redis.restart();
    eventually("it is told", || kept(&site.redis));
    assert_eq!(site.redis.cli(&["FLUSHALL"]), "OK");
    let begun = Stopwatch::start();
    eventually("it is told again", || kept(&site.redis));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    // A gateway that starts now learns what is left of it, and nothing else.
    site.add(&[]);
    for gateway in &site.gateways {
        let bans = listed(gateway);
        assert_eq!(bans.iter().map(id).collect::<Vec<_>>(), [id(&ban)]);
        assert_eq!(bans[0]["limit"], "of-the-test");
    }
    lift(&site.gateways[2], &ban);
    know(&site.gateways, 0);
}

#[test]
fn bans_cost_a_redis_at_rest_a_few_commands_a_minute() {
    let _at_rest = at_rest();
    let site = site(3);
    trip(&site, 0, RAW);
    know(&site.gateways, 1);
    thread::sleep(Duration::from_secs(1));
    let before = commands(&site.redis);
    thread::sleep(Duration::from_secs(12));
    // An idle connection is checked every 15 s. Memory, bans, sessions and keys are polled no more often.
    let asked = commands(&site.redis) - before - 1.0;
    assert!(asked <= 3.0 * 5.0, "{asked} commands in 12 s for three gateways at rest");
}

#[test]
fn who_may_not_tell_of_bans_is_believed_within_a_second_all_the_same() {
    let _at_rest = at_rest();
    let redis = RedisServer::start();
    let url = url_of_mute(&redis);
    let application = Ledger::start();
    let config = config(&application.url(), &format!("url: \"{url}\", timeout: 10s"), "", LIMITS);
    let gateways = [Gateway::start(&config), Gateway::start(&config)];
    eventually("both have found Redis", || gateways.iter().all(store_up));
    let is_said = |gateway: &Gateway| {
        gateway.log_messages().iter().any(|said| said.contains("does not let this gateway publish"))
    };
    eventually("both say what is amiss", || gateways.iter().all(is_said));
    let ban = ban_by_hand(&gateways[0], &json!({"address": "203.0.113.9", "for": "1h"}));
    know(&gateways, 1);
    lift(&gateways[1], &ban);
    know(&gateways, 0);
    let before = commands(&redis);
    thread::sleep(Duration::from_secs(4));
    let asked = commands(&redis) - before - 1.0;
    // Once for bans, and once for sessions.
    assert!(asked <= 2.0 * 20.0, "{asked} commands in 4 s for two gateways that ask twice a second");
}

#[test]
fn every_gateway_of_a_cluster_sees_a_ban_and_an_unban() {
    let _alone = alone();
    let redis = RedisCluster::start();
    let application = Ledger::start();
    let place = format!("url: {}, mode: cluster, timeout: 10s", redis.urls());
    let config = config(&application.url(), &place, "", LIMITS);
    let gateways: Vec<Gateway> = (0..3).map(|_| Gateway::start(&config)).collect();
    eventually("they have found the cluster", || gateways.iter().all(store_up));
    let ask = |gateway: &Gateway| gateway.get("/").header("X-Key", RAW).status();
    assert_eq!([ask(&gateways[0]), ask(&gateways[0])], [200, 429]);
    know(&gateways, 1);
    assert!(gateways.iter().all(|gateway| ask(gateway) == 429));
    ban_by_hand(&gateways[1], &json!({"address": "203.0.113.9", "for": "1h"}));
    know(&gateways, 2);
    for ban in listed(&gateways[2]) {
        lift(&gateways[2], &ban);
    }
    know(&gateways, 0);
    assert_eq!(ask(&gateways[1]), 200);
    for node in redis.masters() {
        state::is_clean(node, 20);
    }
}

/// How many bans of a burst are under way at once.
const AT_ONCE: usize = 200;

/// Bans so many keys at the first gateway, many at once.
fn burst(site: &Site, count: usize) {
    let (address, clock) = (site.gateways[0].address(), site.application.clock());
    let mut callers: Vec<Caller> = (0..AT_ONCE).map(|_| Caller::default()).collect();
    for first in (0..count).step_by(AT_ONCE) {
        for expected in [200, 429] {
            for (number, caller) in callers.iter_mut().enumerate() {
                caller.ask(address, "/", &format!("{RAW}-{}", first + number), clock);
            }
            assert!(callers.iter_mut().all(|caller| caller.answer() == Some(expected)));
        }
    }
}

#[test]
fn a_burst_of_bans_is_few_messages_and_every_gateway_knows_all() {
    let _alone = alone();
    let site = site(2);
    let before = calls(&site.redis, "publish");
    burst(&site, 1000);
    know(&site.gateways, 1000);
    let messages = calls(&site.redis, "publish") - before;
    assert!(messages <= 200, "{messages} messages");
}

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn what_a_ban_costs_redis_with_fifty_gateways_is_printed() {
    let _alone = alone();
    let site = site(1);
    let others: Vec<Child> = (0..50).map(|_| subscriber(&site.redis)).collect();
    let before = cpu_micros(&site.redis);
    for key in 0..20 {
        trip(&site, 0, &format!("{RAW}-alone-{key}"));
    }
    println!("one by one, with its two requests: {:.0} us of Redis a ban", (cpu_micros(&site.redis) - before) / 20.0);
    let before = cpu_micros(&site.redis);
    burst(&site, 2000);
    println!("in a burst, with its two requests: {:.0} us of Redis a ban", (cpu_micros(&site.redis) - before) / 2000.0);
    for mut other in others {
        let _ = other.kill();
        let _ = other.wait();
    }
}

/// A connection that gets what a gateway gets.
pub(super) fn subscriber(redis: &RedisServer) -> Child {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &redis.address().port().to_string(), "SUBSCRIBE", "portcullis:resets"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("tests/run installs it")
}

/// How much CPU time a Redis has used.
pub(super) fn cpu_micros(redis: &RedisServer) -> f64 {
    let told = redis.cli(&["INFO", "cpu"]);
    let of = |name: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(name)).expect("it is told");
        line.trim().parse::<f64>().expect("seconds") * 1e6
    };
    of("used_cpu_sys:") + of("used_cpu_user:")
}

#[test]
fn one_gateway_of_a_store_tells_of_a_ban_and_each_for_itself_while_redis_is_away() {
    let _alone = alone();
    let webhook = Origin::answering(|_| Answer::ok("thanks"));
    let rest = format!(
        "gateway: {{name: \"${{GATEWAY}}\"}}\nnotify: {{ops: {{webhook: \"{}\", every: 1h}}}}\nroutes:\n  \
         - {{name: login, match: /login, limits: [{{name: lockdown, key: [], rate: 1/hour, then: {{ban: 10m, notify: [ops]}}}}]}}\n  \
         - {{name: api, match: /api, limits: [{{name: pace, key: [], rate: 1/hour, then: {{deny: {{}}, notify: [ops]}}}}]}}\n  \
         - {{name: other, match: /other, limits: [{{name: apart, key: [], rate: 1/hour, then: {{deny: {{}}, notify: [ops]}}}}]}}",
        webhook.url()
    );
    let mut site = Site::start(0, "timeout: 1s", "", &rest);
    for name in ["eu-1", "eu-2"] {
        site.add(&[("GATEWAY", name)]);
    }
    let told = |path: &str| {
        let said = webhook.requests();
        let texts = said.iter().map(|request| serde_json::from_str::<Value>(&request.text()).expect("JSON"));
        texts.filter(|message| message["limit"] == path).collect::<Vec<_>>()
    };
    // Both deny at once, and go on denying.
    for round in 0..20 {
        for gateway in [0, 1] {
            site.status(gateway, "/login", "raw-value");
            let status = site.status(gateway, "/api", "raw-value");
            assert_eq!(status, if (round, gateway) == (0, 0) { 200 } else { 429 });
        }
    }
    let suppressed = |gateway: usize| {
        let metrics = Request::new(site.gateways[gateway].admin(), "GET", "/metrics").send().text();
        let line = "portcullis_notifications_total{channel=\"ops\",result=\"suppressed\"} ";
        metrics.lines().find_map(|found| found.strip_prefix(line)?.parse::<u64>().ok()).unwrap_or_default()
    };
    // Each event was told or left out, on both gateways.
    eventually("all are told or left out", || suppressed(0) + suppressed(1) == 39 + 39 - 2);
    eventually("both limits are told of", || !told("lockdown").is_empty() && !told("pace").is_empty());
    let (bans, denials) = (told("lockdown"), told("pace"));
    assert_eq!((bans.len(), denials.len()), (1, 1), "{bans:?} {denials:?}");
    let text = bans[0]["text"].as_str().expect("a text");
    assert!(text.contains(": locks the route login for everyone for 10m, by the limit lockdown"), "{text}");
    assert!(text.starts_with(&format!("portcullis {}: ", bans[0]["gateway"].as_str().expect("a name"))), "{text}");
    site.redis.kill();
    eventually("each tells for itself", || {
        for gateway in [0, 1] {
            site.status(gateway, "/other", "raw-value");
        }
        let mut names: Vec<_> = told("apart").iter().map(|message| message["gateway"].clone()).collect();
        names.sort_by_key(Value::to_string);
        names == [json!("eu-1"), json!("eu-2")]
    });
}
