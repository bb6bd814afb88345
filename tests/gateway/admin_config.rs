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
    // As HTTP clients in JavaScript ask.
    let listed = ask(&gateway, "GET", "/api/v1/config").header("Accept", "application/json, text/plain, */*").send();
    assert_eq!(listed.header("content-type"), Some("application/json"));
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

    // An address that cannot be listened on is a mistake where it is named, in the answer and in the log.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let of_admin = config.replace("admin: {address: 127.0.0.1:0}", &format!("admin: {{address: '{address}'}}"));
    for (config, named, said) in [
        (format!("listen: [127.0.0.1:0, '{address}']\n{config}"), format!("'{address}'"), "already in use"),
        (format!("listen: [{{address: 203.0.113.1:0}}]\n{config}"), "203.0.113.1:0".to_owned(), "no interface"),
        (format!("listen: unix:/missing/a.sock\n{config}"), "unix:/missing".to_owned(), "folder does not exist"),
        (of_admin, format!("'{address}'"), "already in use"),
    ] {
        gateway.write_config(&config);
        let answer = reload(&gateway);
        assert_eq!(answer.status, 422, "{}", answer.text());
        description.check("POST", "/api/v1/reload", &answer);
        let [mistake] = &answer.json()["mistakes"].as_array().expect("a list").clone()[..] else {
            panic!("one mistake: {}", answer.text())
        };
        let text = std::fs::read_to_string(gateway.path("portcullis.yaml")).expect("its file");
        let mut places = (1..).zip(text.lines()).filter_map(|(line, text)| Some((line, text.find(&named)? + 1)));
        let (line, column): (usize, usize) = places.next().expect("it is named");
        assert_eq!((&mistake["line"], &mistake["column"]), (&line.into(), &column.into()), "{mistake}");
        assert!(mistake["message"].as_str().is_some_and(|message| message.contains(said)), "{mistake}");
        assert!(mistake["help"].is_string() && mistake["severity"] == "error", "{mistake}");
        eventually("the log has the same", || {
            let lines = gateway.stderr();
            let mut lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.any(|line| {
                let is_same = |field: &str| line[field] == mistake[field];
                line["level"] == "ERROR" && ["file", "line", "column", "help"].into_iter().all(is_same)
            })
        });
    }
    assert_eq!(ask(&gateway, "GET", "/api/v1/config").send().text(), before);
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
