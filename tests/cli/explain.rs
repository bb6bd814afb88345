//! `portcullis explain`.

use crate::command::Folder;

const CONFIG: &str = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
client_ip: {trusted_proxies: [10.0.0.0/8]}
lists:
  office: {addresses: [198.51.100.0/24]}
routes:
  - name: login
    match: POST /login
    limits:
      - {name: pace, key: [client_ip, param.username], rate: 20/minute, unless: [office]}
  - name: admin
    match: /admin/*
    only: [office]
";

#[test]
fn the_route_the_limits_and_their_keys_are_named() {
    let ended = Folder::with(CONFIG).run(&["explain", "-d", "username=Alice", "http://example.com//LOGIN/"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for expected in ["127.0.0.1", "login", "pace", "20/minute", "alice"] {
        assert!(ended.stdout.contains(expected), "no `{expected}` in\n{}", ended.stdout);
    }
}

#[test]
fn a_body_means_post_and_a_form_as_it_does_for_curl() {
    let ended = Folder::with(CONFIG).run(&["explain", "--format", "json", "-d", "username=alice", "/login"]);
    let story = ended.json();
    assert_eq!(story["route"], "login");
    assert_eq!(story["limits"][0]["key"][1]["values"], serde_json::json!(["alice"]), "{story}");
}

#[test]
fn without_a_body_the_method_is_get() {
    let story = Folder::with(CONFIG).run(&["explain", "--format", "json", "/login"]).json();
    assert_eq!((&story["method"], &story["route"]), (&"GET".into(), &serde_json::Value::Null), "{story}");
}

#[test]
fn a_body_is_read_where_there_is_one() {
    let folder = Folder::with(CONFIG);
    let reads_body = |arguments: &[&str]| {
        folder.run(&[&["explain", "--format", "json"], arguments].concat()).json()["reads_body"].clone()
    };
    assert_eq!(reads_body(&["-d", "username=alice", "/login"]), true);
    assert_eq!(reads_body(&["-X", "POST", "/login"]), false);
    assert_eq!(reads_body(&["-d", "username=alice", "/elsewhere"]), false);
}

#[test]
fn the_client_is_found_as_the_gateway_finds_it() {
    let folder = Folder::with(CONFIG);
    let header = "X-Forwarded-For: 203.0.113.9";
    let trusted = folder.run(&["explain", "--format", "json", "--from", "10.0.0.5", "-H", header, "/"]).json();
    assert_eq!(trusted["client"], "203.0.113.9");
    let untrusted = folder.run(&["explain", "--format", "json", "--from", "192.0.2.1", "-H", header, "/"]).json();
    assert_eq!(untrusted["client"], "192.0.2.1");
}

#[test]
fn the_rules_read_the_headers_that_the_gateway_lets_them_read() {
    let values = |then: &str, headers: &[&str]| {
        let key = "[header.connection, header.x-foo, cookie.portcullis_pow]";
        let config = format!(
            "listen: 127.0.0.1:8080\nupstream: http://127.0.0.1:8000\n\
             limits: [{{name: a, key: {key}, rate: 1/minute, then: {then}}}]\n"
        );
        let headers = headers.iter().flat_map(|header| ["-H", header]);
        let arguments: Vec<_> = ["explain", "--format", "json"].into_iter().chain(headers).chain(["/"]).collect();
        let story = Folder::with(&config).run(&arguments).json();
        [0, 1, 2].map(|part| story["limits"][0]["key"][part]["values"][0].as_str().expect("a value").to_owned())
    };
    let headers = ["Connection: x-foo", "X-Foo: bar", "Cookie: portcullis_pow=a"];
    // A client cannot remove a header that the rules read by naming it in `Connection`.
    assert_eq!(values("deny", &headers), ["", "bar", "a"]);
    assert_eq!(values("{challenge: pow}", &headers), ["", "bar", ""]);
}

#[test]
fn why_a_request_is_denied_is_said() {
    let story =
        Folder::with(CONFIG).run(&["explain", "--format", "json", "--from", "192.0.2.1", "/admin/users"]).json();
    assert!(story["denied"].is_string(), "{story}");
    let story = Folder::with(CONFIG).run(&["explain", "--format", "json", "--from", "198.51.100.1", "/admin"]).json();
    assert!(story["denied"].is_null(), "{story}");
}

#[test]
fn what_the_gateway_would_refuse_is_refused() {
    let ended = Folder::with(CONFIG).run(&["explain", "-H", "Host: a,b", "/"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("400"), "{ended:?}");
}

#[test]
fn a_bad_configuration_is_told_to_stderr() {
    let ended = Folder::with("listen: nowhere\n").run(&["explain", "/"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    assert!(ended.stderr.contains("portcullis.yaml:1:9"), "{ended:?}");
}
