//! Which request is judged, and what is not one.

use crate::question::{ONE_LOGIN, ask, ask_as_nginx, asked, bare};
use crate::support::{Gateway, Request, eventually};

const FORWARDED: [(&str, &str); 4] = [
    ("X-Forwarded-Method", "GET"),
    ("X-Forwarded-Proto", "http"),
    ("X-Forwarded-Host", "app.example"),
    ("X-Forwarded-Uri", "/"),
];

fn described(gateway: &Gateway, path: &str, headers: &[(&str, &str)]) -> Request {
    headers.iter().fold(bare(gateway.address()).target(path), |request, (name, value)| request.header(name, value))
}

#[track_caller]
fn check(gateway: &Gateway, path: &str, headers: &[(&str, &str)], expected: &str) {
    let answer = described(gateway, path, headers).send();
    let text = answer.text();
    assert!(answer.status == 400 && text.contains(expected), "{headers:?} under {path}: {} {text}", answer.status);
}

#[test]
fn what_describes_no_request_or_two_is_refused_by_the_name_of_the_header() {
    let gateway = asked(ONE_LOGIN);
    check(&gateway, "/auth", &[], "X-Forwarded-Uri is missing");
    for missing in 0..4 {
        let rest: Vec<_> = (0..4).filter(|at| *at != missing).map(|at| FORWARDED[at]).collect();
        check(&gateway, "/auth", &rest, &format!("{} is missing", FORWARDED[missing].0));
        let mut twice = FORWARDED.to_vec();
        twice.push(FORWARDED[missing]);
        check(&gateway, "/auth", &twice, &format!("{} is there more than once", FORWARDED[missing].0));
        let mut empty = FORWARDED;
        empty[missing].1 = "";
        check(&gateway, "/auth", &empty, &format!("{} is missing", FORWARDED[missing].0));
    }
    for second in [("X-Original-URI", "/"), ("X-Original-URL", "http://app.example/"), ("x-original-method", "GET")] {
        let mut both = FORWARDED.to_vec();
        both.push(second);
        check(&gateway, "/auth", &both, "describes the request a second time");
    }
    let original = [("X-Original-Method", "GET"), ("X-Original-URI", "/")];
    let url = ("X-Original-URL", "http://app.example/");
    check(&gateway, "/auth", &original[..1], "X-Original-URI is missing");
    check(&gateway, "/auth", &original[1..], "X-Original-Method is missing");
    check(&gateway, "/auth", &[original[0], original[1], url], "X-Original-URL describes the request a second time");
    check(&gateway, "/auth", &[original[0], url, url], "X-Original-URL is there more than once");
    check(&gateway, "/auth", &[original[0], ("X-Original-URL", "/")], "X-Original-URL is malformed");
    check(&gateway, "/auth", &[original[0], ("X-Original-URL", "ftp://app.example/")], "X-Original-URL is malformed");
    check(&gateway, "/auth/nginx", &[], "X-Original-URI is missing");
    check(&gateway, "/auth/nginx", &FORWARDED, "X-Original-URI is missing");
    check(&gateway, "/auth/nginx", &[original[0], url], "X-Original-URI is missing");
    check(&gateway, "/auth/nginx", &[original[0], original[1], original[1]], "X-Original-URI is there more than once");
    check(
        &gateway,
        "/auth/nginx",
        &[original[0], original[0], original[1]],
        "X-Original-Method is there more than once",
    );
    check(&gateway, "/auth/nginx", &[("X-Original-Method", "GET /"), original[1]], "X-Original-Method is malformed");
}

#[test]
fn a_proxy_that_describes_badly_is_named_in_one_log_line() {
    let gateway = asked(ONE_LOGIN);
    for _ in 0..3 {
        assert_eq!(bare(gateway.address()).status(), 400);
    }
    let lines = || {
        let lines = gateway.stderr().into_iter().filter(|line| line.contains("X-Forwarded-Uri is missing"));
        lines.collect::<Vec<_>>()
    };
    eventually("the warning is written", || !lines().is_empty());
    assert_eq!(lines().len(), 1, "{:?}", lines());
    assert!(lines()[0].contains("\"part\":\"X-Forwarded-Uri\"") && lines()[0].contains("127.0.0.1"), "{:?}", lines());
}

#[test]
fn the_described_head_is_as_strict_as_one_that_arrives() {
    let gateway = asked(ONE_LOGIN);
    for (method, target, status) in [
        ("TRACE", "/", 405),
        ("CONNECT", "/", 405),
        ("GET", "login", 400),
        ("GET", "*", 400),
        ("OPTIONS", "*", 200),
        ("GET", "/\u{e9}", 400),
        ("GET", "http://other.example/", 400),
        ("GET", "http://app.example/", 200),
        ("GET", "/a b", 400),
        ("GET", "/a#/../b", 400),
    ] {
        assert_eq!(ask(&gateway, method, target).status(), status, "{method} {target}");
        let answer = ask_as_nginx(&gateway, method, target).send();
        let meant = answer.header("x-portcullis-status").map_or(200, |status| status.parse().expect("a status"));
        assert_eq!(meant, status, "{method} {target}");
    }
    for host in ["a,b", "a:99999", "a b", "user@a", "a/b"] {
        let mut forwarded = FORWARDED;
        forwarded[2].1 = host;
        assert_eq!(described(&gateway, "/auth", &forwarded).status(), 400, "{host}");
    }
}

#[test]
fn a_malformed_request_is_logged_as_it_was_described() {
    let gateway = asked(ONE_LOGIN);
    let long = format!("/{}#", "x".repeat(8000));
    for (target, path) in [
        ("/a b?c", "/a b"),
        ("/c#d", "/c#d"),
        ("login", "login"),
        ("other.example:443", "other.example:443"),
        (&long, &long[..1024]),
    ] {
        for question in [ask(&gateway, "PUT", target), ask_as_nginx(&gateway, "PUT", target)] {
            let answer = question.send();
            let id = answer.header("x-request-id").expect("an id").to_owned();
            let line = gateway.log_line_where(|line| line["request_id"] == *id);
            let told = ["client", "method", "host", "path", "scheme", "decision", "error"].map(|name| &line[name]);
            let scheme = if line["scheme"] == "https" { "https" } else { "http" };
            let malformed = "the request target is malformed";
            assert_eq!(told, ["203.0.113.9", "PUT", "app.example", path, scheme, "error", malformed], "{line}");
        }
    }
    let mut forwarded = FORWARDED;
    forwarded[2].1 = "a b";
    assert_eq!(described(&gateway, "/auth", &forwarded).status(), 400);
    let line = gateway.log_line_where(|line| line["host"] == "a b");
    assert_eq!(line["error"], "the Host header is malformed", "{line}");
}

#[test]
fn other_paths_are_not_found() {
    let gateway = asked(ONE_LOGIN);
    for path in ["/", "/auth/", "/auth/other", "/AUTH", "//auth", "/auth%2fnginx", "/login"] {
        assert_eq!(ask(&gateway, "GET", "/").target(path).status(), 404, "{path}");
    }
    assert_eq!(ask(&gateway, "GET", "/").target("/auth?a=b").status(), 200);
}

#[test]
fn a_url_brings_its_own_host_and_scheme() {
    let gateway = asked(
        "upstream: http://127.0.0.1:9\nroutes:\n  - {name: there, match: {host: there.example, path: /login}, limits: [{key: [], rate: 1/hour}]}",
    );
    let question =
        |url| described(&gateway, "/auth", &[("X-Original-Method", "POST"), ("X-Original-URL", url)]).status();
    assert_eq!(question("HTTPS://There.Example:443/login?a=b"), 200);
    assert_eq!(question("HTTPS://There.Example:443/login?a=b"), 429);
    assert_eq!(question("https://there.example/login#c"), 400);
    let line = gateway.log_line("/login");
    assert_eq!((&line["scheme"], &line["route"]), (&"https".into(), &"there".into()));
}

#[test]
fn what_describes_a_request_is_no_header_of_the_client() {
    let gateway = asked(
        "upstream: http://127.0.0.1:9\nlimits:\n  - {name: described, key: [header.x-original-uri, header.x-forwarded-uri, header.x-forwarded-method, header.x-original-method], rate: 2/hour}",
    );
    assert_eq!(ask(&gateway, "GET", "/a").status(), 200);
    assert_eq!(ask_as_nginx(&gateway, "PUT", "/b").status(), 200);
    assert_eq!(ask(&gateway, "POST", "/c").status(), 429);
}

#[test]
fn the_client_is_the_last_address_that_is_no_proxy() {
    let gateway = Gateway::start(format!(
        "listen: {{address: 127.0.0.1:0, serves: decisions}}\nclient_ip: {{trusted_proxies: 10.0.0.0/8, header: cf-connecting-ip}}\n{ONE_LOGIN}"
    ));
    let client = |list: &str, path: &str| {
        let mut question = described(&gateway, "/auth", &FORWARDED[..3]).header("X-Forwarded-Uri", path);
        question = question.header("X-Forwarded-For", list).header("CF-Connecting-IP", "192.0.2.1");
        assert_eq!(question.status(), 200);
        gateway.log_line(path)["client"].as_str().expect("a client").to_owned()
    };
    assert_eq!(client("203.0.113.9", "/1"), "203.0.113.9");
    assert_eq!(client("198.51.100.1, 203.0.113.9, 10.1.2.3, 127.0.0.7", "/2"), "203.0.113.9");
    assert_eq!(client("203.0.113.9, unknown", "/3"), "127.0.0.1");
    assert_eq!(client("", "/4"), "127.0.0.1");
}

#[test]
fn the_id_of_a_described_request_is_not_the_clients_word() {
    let gateway = asked(ONE_LOGIN);
    let answer = ask(&gateway, "GET", "/").header("X-Request-ID", "mine").send();
    assert_eq!(answer.header("x-request-id").map(str::len), Some(32));
}
