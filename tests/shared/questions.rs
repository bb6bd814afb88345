//! A gateway that is asked what all of them know asks the others, and says which of them do not answer.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::site::{RAW, Site, alone, ask_admin, at_rest, config, store_up, url_of_mute};
use crate::stories::in_redis;
use crate::support::{
    Caller, Gateway, Ledger, RedisSentinels, RedisServer, Request, Response, Stopwatch, eventually, found_within,
    settled, throughout,
};
use crate::together::{RULES, busiest, denied, json_of, login, story};

fn states(gateway: &Gateway) -> Vec<Value> {
    let status = json_of(gateway, "status");
    status["gateways"].as_array().expect("a list").iter().map(|gateway| gateway["state"].clone()).collect()
}

fn id(gateway: &Gateway) -> String {
    json_of(gateway, "status")["gateways"][0]["id"].as_str().expect("an id").to_owned()
}

/// The ids in the header of an answer, or nothing.
fn missing_in(answer: &Response) -> String {
    answer.header("x-portcullis-missing").unwrap_or_default().to_owned()
}

/// Longer than it takes from one write of a gateway to the next.
const WRITTEN: Duration = Duration::from_secs(5);

/// Redis has so many stories within five seconds, although no gateway asks for one.
#[track_caller]
fn stories_are_written(site: &Site, count: usize) {
    found_within(WRITTEN, || match in_redis(&site.redis).0 {
        written if written == count => Ok(()),
        written => Err(format!("{written} stories of {count} are written")),
    });
}

#[test]
fn the_first_answer_of_another_gateway_is_whole_at_once() {
    let _alone = alone();
    let site = Site::start(2, "timeout: 10s", "", RULES);
    let answers: Vec<_> = (0..6).map(|_| login(&site.gateways[0])).collect();
    let begun = Stopwatch::start();
    let second = &site.gateways[1];
    // Each is asked once. Nobody has asked before.
    assert_eq!(denied(second), 4);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(busiest(second).0, 4);
    assert!(answers[2..].iter().all(|answer| !story(second, answer).is_null()));
    let status = json_of(second, "status");
    assert_eq!(
        (&status["last_minute"], &status["complete"]),
        (&json!({"passed": 2, "denied": 4, "errors": 0, "signed_in": 0, "failed": 0}), &json!(true))
    );
    assert_eq!(login(&site.gateways[0]).status, 429);
    assert_eq!(denied(second), 5, "what is asked later is not answered with what was known before");
    assert_eq!(json_of(second, "history")["missing"], json!([]));
    assert_eq!(missing_in(&ask_admin(second, "GET", "/api/v1/top")), "");
}

#[test]
fn what_a_gateway_counted_is_known_though_it_ended_before_anybody_asked() {
    let _at_rest = at_rest();
    let mut site = Site::start(3, "timeout: 10s", "", RULES);
    let answers: Vec<_> = (0..6).map(|_| login(&site.gateways[0])).collect();
    stories_are_written(&site, 4);
    site.gateways[0].kill();
    let third = &site.gateways[2];
    assert_eq!((denied(third), busiest(third).0), (4, 4));
    assert_eq!(
        json_of(third, "status")["last_minute"],
        json!({"passed": 2, "denied": 4, "errors": 0, "signed_in": 0, "failed": 0})
    );
    assert!(answers[2..].iter().all(|answer| !story(third, answer).is_null()));
    assert_eq!(states(third).iter().filter(|state| **state == "up").count(), 2);
    // One that ends in order writes what is left, and is not waited for.
    let ended = id(&site.gateways[1]);
    let answer = login(&site.gateways[1]);
    assert_eq!(answer.status, 429);
    site.gateways[1].signal("TERM");
    site.gateways[1].ended();
    let third = &site.gateways[2];
    assert_eq!(denied(third), 5);
    assert!(!story(third, &answer).is_null());
    let status = json_of(third, "status");
    let gateways = status["gateways"].as_array().expect("a list");
    assert!(gateways.iter().any(|gateway| gateway["id"] == *ended && gateway["state"] == "ended"), "{status}");
    assert!(!json_of(third, "history")["missing"].to_string().contains(&ended));
    // What it knows outlives a restart of all of them.
    site.gateways[2].kill();
    site.add(&[]);
    assert_eq!(denied(&site.gateways[3]), 5);
}

#[test]
fn a_takeover_and_a_restart_keep_the_last_hour() {
    let _alone = alone();
    let mut site = Site::start(1, "timeout: 10s", "", RULES);
    let answers: Vec<_> = (0..6).map(|_| login(&site.gateways[0])).collect();
    let knows_all = |gateway: &Gateway| {
        assert_eq!((denied(gateway), busiest(gateway).0), (4, 4));
        assert!(answers[2..].iter().all(|answer| !story(gateway, answer).is_null()));
    };
    let successor = site.gateways[0].successor();
    // The old process may be asked still, and has written all when it has ended.
    knows_all(&successor);
    site.gateways[0].ended();
    knows_all(&successor);
    site.gateways[0] = successor;
    site.gateways[0].signal("TERM");
    site.gateways[0].ended();
    site.gateways[0].restart();
    eventually("it has found Redis", || store_up(&site.gateways[0]));
    knows_all(&site.gateways[0]);
}

#[test]
fn a_gateway_that_does_not_answer_is_named_until_it_does() {
    let _alone = alone();
    let site = Site::start(3, "timeout: 10s", "", RULES);
    let first = &site.gateways[0];
    let silent = id(&site.gateways[2]);
    let name = json_of(&site.gateways[2], "status")["gateway"].as_str().expect("a name").to_owned();
    login(&site.gateways[2]);
    eventually("all are known", || states(first) == ["up", "up", "up"]);
    site.gateways[2].pause();
    let in_time = |ask: &dyn Fn()| {
        let begun = Stopwatch::start();
        ask();
        assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    };
    in_time(&|| {
        let status = json_of(first, "status");
        assert_eq!(status["complete"], false);
        let gateways = status["gateways"].as_array().expect("a list");
        assert!(gateways.iter().any(|gateway| gateway["id"] == *silent && gateway["state"] == "missing"), "{status}");
    });
    in_time(&|| {
        assert_eq!(json_of(first, "history")["missing"], json!([silent]));
    });
    in_time(&|| {
        assert_eq!(missing_in(&ask_admin(first, "GET", "/api/v1/top")), silent);
    });
    let unknown = ask_admin(first, "GET", "/api/v1/requests/unknown");
    assert!(unknown.status == 404 && unknown.text().contains(&silent), "{}", unknown.text());
    let said = first.run(&["status"]).stdout;
    assert!(said.contains(&format!("{name} does not answer")), "{said}");
    let said = first.run(&["top"]).stdout;
    assert!(said.contains(&format!("without {silent}, which does not answer")), "{said}");
    // Where one is known to be gone, nobody waits for it.
    eventually("it counts as gone", || states(first).contains(&json!("gone")));
    nobody_is_waited_for(first, &json!([silent]));

    site.gateways[2].resume();
    eventually("it answers again", || states(first) == ["up", "up", "up"]);
    assert_eq!(json_of(first, "history")["missing"], json!([]));
    assert_eq!(missing_in(&ask_admin(first, "GET", "/api/v1/top")), "");
    assert_eq!(json_of(first, "status")["complete"], true);
}

#[test]
fn a_flood_of_one_client_does_not_hide_what_happened_to_another() {
    let _at_rest = at_rest();
    let rules = format!("client_ip: {{trusted_proxies: [127.0.0.0/8]}}\n{RULES}");
    let mut site = Site::start(2, "timeout: 10s", "", &rules);
    let login = |client: &str| {
        let request = Request::new(site.gateways[0].address(), "POST", "/login").header("x-forwarded-for", client);
        request.form("username=alice").send()
    };
    let victim: Vec<_> = (0..3).map(|_| login("198.51.100.7")).collect();
    assert_eq!(victim[2].status, 429);
    let mut callers: Vec<Caller> = (0..8).map(|_| Caller::default()).collect();
    let mut denied = 1;
    for _ in 0..400 {
        for caller in &mut callers {
            caller.ask(site.gateways[0].address(), "/login", RAW, site.application.clock());
        }
        for caller in &mut callers {
            denied += usize::from(caller.answer().expect("an answer") == 429);
        }
    }
    stories_are_written(&site, denied);
    site.gateways[0].kill();
    assert!(!story(&site.gateways[1], &victim[2]).is_null());
}

/// How often Redis was sent this command.
pub(super) fn calls(redis: &RedisServer, command: &str) -> u32 {
    let stats = redis.cli(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or_default()
}

#[test]
fn gateways_at_rest_write_nothing_and_many_who_ask_share_the_questions() {
    let _at_rest = at_rest();
    let site = Site::start(2, "timeout: 10s", "", RULES);
    login(&site.gateways[0]);
    eventually("both are known", || states(&site.gateways[0]) == ["up", "up"]);
    let writes = || calls(&site.redis, "hset");
    // As many looks as there are half seconds in the time from one write to the next.
    let before = settled(11, WRITTEN / 10, writes);
    throughout(WRITTEN * 2, || assert!(writes() - before <= 2, "a sign of life once a minute is enough"));
    let (before, begun) = (calls(&site.redis, "publish"), Stopwatch::start());
    let asked: usize = thread::scope(|scope| {
        let page = |number: usize| {
            let gateway = &site.gateways[number % 2];
            scope.spawn(move || {
                let mut asked = 0;
                while begun.elapsed() < Duration::from_secs(3) {
                    assert_eq!(json_of(gateway, "history")["missing"], json!([]));
                    asked += 1;
                }
                asked
            })
        };
        let pages: Vec<_> = (0..10).map(page).collect();
        pages.into_iter().map(|page| page.join().expect("every answer is whole")).sum()
    });
    let published = f64::from(calls(&site.redis, "publish") - before);
    // Each gateway asks four times in a second at most, and less where it hears the question of another.
    assert!(published <= 8.0 * begun.elapsed().as_secs_f64() + 2.0, "{published} questions for {asked} answers");
    assert!(asked >= 40, "{asked} answers in three seconds to ten who ask");
}

/// A gateway that waited would do so for 300 ms each time. The machine may be busy at one time.
#[track_caller]
fn nobody_is_waited_for(gateway: &Gateway, missing: &Value) {
    let took = || {
        let begun = Stopwatch::start();
        assert_eq!(json_of(gateway, "history")["missing"], *missing);
        begun.elapsed()
    };
    let fastest = (0..5).map(|_| took()).min();
    assert!(fastest < Some(Duration::from_millis(290)), "{fastest:?}");
}

#[test]
fn who_may_not_publish_answers_from_what_was_written() {
    let _at_rest = at_rest();
    let redis = RedisServer::start();
    let url = url_of_mute(&redis);
    let application = Ledger::start();
    let config = config(&application.url(), &format!("url: \"{url}\", timeout: 10s"), "", RULES);
    let mut gateways = [Gateway::start(&config), Gateway::start(&config)];
    eventually("both have found Redis", || gateways.iter().all(store_up));
    let answers: Vec<_> = (0..4).map(|_| login(&gateways[0])).collect();
    let second = &gateways[1];
    found_within(WRITTEN, || match (denied(second), busiest(second).0, story(second, &answers[3])) {
        (2, 2, story) if !story.is_null() => Ok(()),
        other => Err(format!("{other:?}")),
    });
    nobody_is_waited_for(&gateways[1], &json!([]));
    assert_eq!(states(&gateways[1]), ["up", "up"]);
    gateways[0].kill();
    eventually("it is not heard of any more", || states(&gateways[1]) == ["up", "gone"]);
}

#[test]
fn behind_sentinels_too() {
    let _alone = alone();
    let mut redis = RedisSentinels::start();
    let application = Ledger::start();
    let place = format!("url: {}, mode: sentinel, timeout: 200ms", redis.urls());
    let config = config(&application.url(), &place, "", RULES);
    let gateways = [Gateway::start(&config), Gateway::start(&config)];
    eventually("both have found the master", || gateways.iter().all(store_up));
    let answers: Vec<_> = (0..4).map(|_| login(&gateways[0])).collect();
    assert_eq!((denied(&gateways[1]), busiest(&gateways[1]).0), (2, 2));
    assert!(!story(&gateways[1], &answers[3]).is_null());
    redis.servers[0].kill();
    eventually("the sentinels tell of the new master", || redis.agree_on_master(&redis.servers[1]));
    eventually("the gateways have found it", || gateways.iter().all(store_up));
    eventually("what was counted is told again", || {
        denied(&gateways[1]) == 2 && busiest(&gateways[1]).0 == 2 && !story(&gateways[1], &answers[3]).is_null()
    });
}
