//! The configuration in force and its reload, over the admin API.

use std::process::Command;
use std::thread;

use serde_json::Value;

use crate::support::{ApiDescription, Gateway, Origin, Request, Response, binary, eventually};

const ADMIN: &str = "admin: {address: 127.0.0.1:0}\n";

fn ask(gateway: &Gateway, method: &str, target: &str) -> Request {
    Request::new(gateway.admin(), method, target).host(&gateway.admin().to_string())
}

fn reload(gateway: &Gateway) -> Response {
    ask(gateway, "POST", "/api/v1/reload").send()
}

/// What `portcullis check --format json` prints of the gateway's file.
fn check(gateway: &Gateway) -> Value {
    let output = Command::new(binary())
        .args(["check", "--format", "json"])
        .current_dir(gateway.path("."))
        .output()
        .expect("the binary starts");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_configuration_in_force_is_shown_without_secrets_and_can_be_used() {
    let origin = Origin::start();
    let config = format!(
        "{ADMIN}upstream: {}\nnotify: {{ops: {{webhook: 'http://127.0.0.1:9/hunter2'}}}}\nstore: {{redis: {{url: 'redis://:hunter2@127.0.0.1:1'}}}}\n\
         routes: [{{match: {{path: /x, header: {{x-api-key: hunter2}}}}, limits: [{{key: client_ip, rate: 1/second; 20/minute}}]}}]\n",
        origin.url()
    );
    let gateway = Gateway::start(config);
    let yaml = ask(&gateway, "GET", "/api/v1/config").send();
    assert_eq!(yaml.header("content-type"), Some("application/yaml"));
    let json = ask(&gateway, "GET", "/api/v1/config").header("Accept", "application/json").send();
    assert_eq!(json.header("content-type"), Some("application/json"));
    for shown in [yaml.text(), json.text()] {
        assert!(!shown.contains("hunter2") && shown.contains("20/minute") && shown.contains(&origin.url()), "{shown}");
    }
    assert_eq!(json.json()["routes"][0]["limits"][0]["key"], "client_ip");
    assert_eq!(json.json()["admin"]["address"], "127.0.0.1:0");
    // What is shown is a configuration.
    Gateway::start(yaml.text().replace("redis://***@", "redis://"));
}

#[test]
fn a_reload_is_answered_when_the_new_configuration_is_in_force() {
    let origin = Origin::start();
    let config = |limit: &str| {
        format!("{ADMIN}upstream: {}\nlimits: [{{name: pace, key: client_ip, rate: {limit}}}]\n", origin.url())
    };
    let gateway = Gateway::start(config("5/hour"));
    let description = ApiDescription::of(&gateway);
    for count in 1..4 {
        gateway.write_config(config(&format!("{count}/hour")));
        let answer = reload(&gateway);
        assert_eq!(answer.status, 200, "{}", answer.text());
        description.check("POST", "/api/v1/reload", &answer);
        let limits = ask(&gateway, "GET", "/api/v1/limits").send().json();
        assert_eq!(limits[0]["rates"][0]["limit"], count);
        let shown = ask(&gateway, "GET", "/api/v1/config").send().text();
        assert!(shown.contains(&format!("rate: {count}/hour")), "{shown}");
    }
}

#[test]
fn a_reload_that_is_refused_says_what_check_says_and_changes_nothing() {
    let origin = Origin::start();
    let config = format!("{ADMIN}upstream: {}\nlimits: [{{name: pace, key: client_ip, rate: 5/hour}}]\n", origin.url());
    let gateway = Gateway::start(&config);
    let description = ApiDescription::of(&gateway);
    let before = ask(&gateway, "GET", "/api/v1/config").send().text();
    gateway.write_config(format!("{config}rutes: []\nheaders: some\n"));
    let answer = reload(&gateway);
    assert_eq!(answer.status, 422, "{}", answer.text());
    description.check("POST", "/api/v1/reload", &answer);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(answer.json()["mistakes"], check(&gateway));
    assert_eq!(answer.json()["mistakes"].as_array().map(Vec::len), Some(2));
    assert_eq!(ask(&gateway, "GET", "/api/v1/config").send().text(), before);

    // An address that is taken is no mistake in the text.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    gateway.write_config(format!("listen: [127.0.0.1:0, '{address}']\n{config}"));
    let answer = reload(&gateway);
    assert_eq!((answer.status, &answer.json()["mistakes"]), (422, &serde_json::json!([])), "{}", answer.text());
    assert!(answer.text().contains("already in use"), "{}", answer.text());
}

#[test]
fn many_reloads_at_once_are_all_answered_and_none_overlaps() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("{ADMIN}upstream: {}\n", origin.url()));
    thread::scope(|scope| {
        let answers: Vec<_> = (0..16).map(|_| scope.spawn(|| reload(&gateway))).collect();
        for answer in answers {
            let answer = answer.join().expect("no panic");
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    });
    eventually("the reloads are logged", || (1..=17).contains(&gateway.reloads()));
}

#[test]
fn a_configuration_without_a_file_cannot_be_reloaded() {
    let gateway =
        Gateway::with_flags(&["--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let answer = reload(&gateway);
    assert_eq!(answer.status, 409, "{}", answer.text());
    ApiDescription::of(&gateway).check("POST", "/api/v1/reload", &answer);
    assert!(answer.text().contains("command line"), "{}", answer.text());
    assert!(ask(&gateway, "GET", "/api/v1/config").send().text().contains("upstream: http://127.0.0.1:9"));
}
