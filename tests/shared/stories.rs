//! Stories of a burst of denials are known at the other gateways when theirs has gone, all of the newest ten thousand.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::site::{Site, alone, store_up};
use crate::support::{Gateway, RedisServer, Request, Stopwatch, eventually};
use crate::together::{RULES, json_of, login, story};

/// Sends so many requests at once, most of which are denied. Returns the ids of those, in the order of their connections.
fn burst(gateway: &Gateway, count: usize) -> Vec<String> {
    let address = gateway.address();
    let send = |count: usize| {
        let mut client = Request::new(address, "GET", "/login").connect();
        let mut denied = Vec::new();
        for _ in 0..count {
            let answer = client.send(b"GET /login HTTP/1.1\r\nHost: app.example\r\n\r\n").response_to("GET");
            if answer.status == 429 {
                denied.push(answer.header("x-request-id").expect("an id").to_owned());
            }
        }
        denied
    };
    thread::scope(|scope| {
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(|| send(count / 8))).collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("every request is answered")).collect()
    })
}

/// The ids that this gateway knows no story of, among every twentieth.
fn unknown<'i>(gateway: &Gateway, ids: &'i [String]) -> Vec<&'i String> {
    let asked = ids.iter().step_by(20);
    asked.filter(|id| json_of(gateway, &format!("requests/{id}")).is_null()).collect()
}

/// How many stories gateways have written, and the bytes of Redis that all they have written takes.
pub(super) fn in_redis(redis: &RedisServer) -> (usize, u64) {
    let keys = redis.cli(&["KEYS", "*{records}:*"]);
    let hashes = keys.lines().filter(|key| !key.ends_with(":gateways"));
    let sizes = hashes.map(|key| {
        let stories = redis.cli(&["HKEYS", key]).lines().filter(|field| field.contains("request/")).count();
        (stories, redis.cli(&["MEMORY", "USAGE", key]).trim().parse::<u64>().expect("a number of bytes"))
    });
    sizes.fold((0, 0), |(stories, bytes), (more, size)| (stories + more, bytes + size))
}

#[test]
fn the_stories_of_a_burst_are_in_redis_some_seconds_later() {
    let _alone = alone();
    let mut site = Site::start(2, "timeout: 10s", "", RULES);
    let ids = burst(&site.gateways[0], 9600);
    assert!(ids.len() >= 9000, "{} were denied", ids.len());
    let begun = Stopwatch::start();
    // Nobody asks for a story meanwhile.
    eventually("all are written", || in_redis(&site.redis).0 == ids.len());
    let took = begun.elapsed();
    let (_, bytes) = in_redis(&site.redis);
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(bytes < 16 << 20, "{bytes} bytes");
    site.gateways[0].kill();
    assert_eq!(unknown(&site.gateways[1], &ids), Vec::<&String>::new());
}

#[test]
fn a_gateway_that_ends_in_order_writes_all_stories_first() {
    let _alone = alone();
    let mut site = Site::start(2, "timeout: 10s", "", RULES);
    let ids = burst(&site.gateways[0], 4000);
    site.gateways[0].signal("TERM");
    site.gateways[0].ended();
    assert_eq!(unknown(&site.gateways[1], &ids), Vec::<&String>::new());
}

#[test]
fn how_a_key_stands_that_other_gateways_count_is_told_by_redis_alone() {
    let _alone = alone();
    let site = Site::start(2, "timeout: 10s", "  nodes: 2", RULES);
    let answers = [0, 0, 1, 1].map(|gateway| login(&site.gateways[gateway]));
    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 200, 429, 429]);
    // The second gateway has asked Redis for the first denial, and gives the next one by itself.
    let counted = |answer| {
        let limits = story(&site.gateways[1], answer)["limits"].take();
        limits.as_array().expect("a list").iter().map(|limit| limit["rates"][0]["counted"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(counted(&answers[2]), [json!(2), json!(2)]);
    assert_eq!(counted(&answers[3]), [json!(2), json!(null)]);
}

#[test]
fn a_denial_by_a_part_of_a_limit_does_not_say_that_all_of_it_was_counted() {
    let _alone = alone();
    let mut site = Site::start(1, "", "  nodes: 2", RULES);
    site.redis.kill();
    eventually("Redis is away", || !store_up(&site.gateways[0]));
    let answers = [(); 2].map(|()| login(&site.gateways[0]));
    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 429]);
    let told = story(&site.gateways[0], &answers[1]);
    let sentence = told["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.contains(", and the part of that which this gateway grants while Redis does not answer"),
        "{told}"
    );
    assert_eq!(told["limits"][0]["rates"], json!([]));
    site.redis.restart();
    eventually("Redis is back", || store_up(&site.gateways[0]));
}
