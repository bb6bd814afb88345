//! A Redis user with exactly the rights that the book lists.

use std::fs;
use std::path::Path;

use portcullis::rules::limit::AlgorithmName;
use serde_json::json;

use crate::site::{RAW, alone, ask_admin, config, said_of_redis, store_up};
use crate::state;
use crate::support::{Caller, Gateway, Ledger, RedisServer, eventually};

#[test]
fn the_rights_that_the_book_lists_are_enough() {
    let _alone = alone();
    let redis = RedisServer::start();
    let rights = rights();
    assert_eq!(redis.cli(&rights.iter().map(String::as_str).collect::<Vec<_>>()), "OK", "{rights:?}");
    let application = Ledger::start();
    let url = redis.url().replace("redis://", "redis://gate:PASSWORD@");
    let limit = |algorithm: AlgorithmName| {
        format!("  - {{name: {algorithm}-of-the-test, key: header.x-key, rate: 3/hour, algorithm: {algorithm}}}\n")
    };
    // One with entries enough to be kept another way.
    let long = "  - {name: long-of-the-test, key: [], rate: 5000/hour}\n";
    let busy = "  - {name: busy-of-the-test, key: [], concurrent: 20}\n";
    let limits = format!("limits:\n{}{long}{busy}", AlgorithmName::ALL.map(limit).concat());
    let place = format!("url: \"{url}\", timeout: 10s");
    let configuration = config(&application.url(), &place, "  on_failure: deny\n  nodes: auto", &limits);
    let gateway = Gateway::start(&configuration);
    eventually("the gateway has found Redis", || store_up(&gateway));
    let mut caller = Caller::default();
    let mut ask = |key: &str| caller.call(gateway.address(), "/", key, application.clock()).expect("an answer");
    assert_eq!([ask(RAW), ask(RAW), ask(RAW), ask(RAW)], [200, 200, 200, 429]);
    for number in 0..1500 {
        assert_eq!(ask(&format!("{RAW}-{number}")), 200);
    }
    for algorithm in AlgorithmName::ALL {
        let path = format!("/api/v1/limits/{algorithm}-of-the-test/state?header.x-key={RAW}");
        assert_eq!(ask_admin(&gateway, "GET", &path).json()["allowed"], false, "{algorithm}");
        assert!(matches!(ask_admin(&gateway, "DELETE", &path).status, 200 | 204));
    }
    eventually("the key is forgotten", || ask(RAW) == 200);
    // Another gateway may ask what this one knows.
    let other = Gateway::start(configuration);
    eventually("it has found Redis", || store_up(&other));
    let history = ask_admin(&other, "GET", "/api/v1/history").json();
    assert_eq!((&history["scope"], &history["missing"]), (&json!("all"), &json!([])));
    assert!(history["routes"]["-"]["denied"].as_array().expect("steps").iter().any(|step| *step != 0), "{history}");
    for gateway in [&gateway, &other] {
        let part = || ask_admin(gateway, "GET", "/api/v1/status").json()["store"]["part"].as_f64();
        eventually("it holds its part", || part() == Some(0.5));
        assert_eq!(said_of_redis(gateway), Vec::<String>::new());
    }
    state::is_clean(&redis, 5000);
}

/// The words of the command in the book that makes such a user.
fn rights() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/redis.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let lines = page.lines().skip_while(|line| !line.contains("ACL SETUSER gate")).take_while(|line| *line != "```");
    let words: Vec<String> = lines.flat_map(str::split_whitespace).map(str::to_owned).collect();
    assert!(words.len() > 10, "the page says no more which rights are enough");
    words
}
