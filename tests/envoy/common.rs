//! What every way in which Envoy asks does alike.

use std::thread;

use crate::rig::{PAGE, Rig};
use crate::support::{Origin, check_judged_targets, dropped_headers, eventually};

const FILES: [&str; 2] = ["envoy-ext-authz.yaml", "envoy-ext-proc.yaml"];

const LOGINS: &str = "deny_response: {body_file: slow-down.html}\nroutes:\n  - name: login\n    match: POST /login\n    limits: \
                      [{name: pace, key: client_ip, rate: 5/minute}]\n";

#[test]
fn five_logins_a_minute_pass_and_the_sixth_gets_the_page() {
    for file in FILES {
        let rig = Rig::new(file, Origin::start(), LOGINS);
        for number in 1..=5 {
            let passed = rig.request("POST", "/login").from("127.0.0.5").form("a=1").send();
            assert_eq!(passed.status, 200, "{number}");
            let remaining = format!("\"pace\";r={};t=", 5 - number);
            assert!(
                passed.header("ratelimit").is_some_and(|state| state.starts_with(&remaining)),
                "{:?}",
                passed.headers
            );
            assert_eq!(passed.headers.all("x-request-id").len(), 1);
        }
        let login = rig.request("POST", "/login").from("127.0.0.5").form("a=1");
        let denied = login.clone().header("Accept", "text/html").send();
        assert_eq!((denied.status, denied.text().as_str()), (429, PAGE));
        let wait: u64 = denied.header("retry-after").and_then(|wait| wait.parse().ok()).expect("whole seconds");
        assert!((1..=60).contains(&wait), "{wait}");
        assert_eq!(denied.header("cache-control"), Some("no-store"));
        assert_eq!(denied.header("content-type"), Some("text/html; charset=utf-8"));
        let problem = login.send();
        assert_eq!(problem.json()["violated-policies"][0], "pace");
        assert_eq!(rig.reached("/login"), 5);
        let other = rig.request("POST", "/login").target("/login?other").from("127.0.0.6");
        assert_eq!(other.form("a=1").status(), 200, "another client");
        assert_eq!(rig.request("GET", "/seen").from("127.0.0.6").status(), 200);
        let line = rig.gateway.log_line("/seen");
        assert_eq!(line["client"], "127.0.0.6", "{line}");
        assert_eq!(line["peer"], "127.0.0.1", "{line}");
    }
}

#[test]
fn what_a_client_forges_changes_nothing() {
    for file in FILES {
        let rig = Rig::new(file, Origin::start(), LOGINS);
        let forged = [
            ("X-Forwarded-For", "9.9.9.9"),
            ("X-Forwarded-For", "127.0.0.1"),
            ("X-Forwarded-Uri", "/"),
            ("X-Forwarded-Method", "GET"),
            ("X-Forwarded-Host", "other.example"),
            ("X-Original-URI", "/"),
            ("X-Original-URL", "/"),
            ("X-Original-Method", "GET"),
            ("X-Envoy-External-Address", "9.9.9.9"),
            ("X-Envoy-Original-Path", "/"),
            ("X-Envoy-Internal", "true"),
            ("X-Real-IP", "9.9.9.9"),
            ("Forwarded", "for=9.9.9.9"),
            ("X-HTTP-Method-Override", "GET"),
        ];
        let mut statuses = Vec::new();
        for (name, value) in forged {
            let asked = rig.request("POST", "/login").from("127.0.0.5").header(name, value).form("a=1");
            statuses.push(asked.status());
        }
        assert_eq!(statuses[..5], [200; 5]);
        assert_eq!(statuses[5..], [429; 9]);
        assert_eq!(rig.reached("/login"), 5);
    }
}

/// Those that Envoy writes itself.
const OF_ENVOY: [&str; 3] = ["x-forwarded-for", "x-forwarded-proto", "x-request-id"];

#[test]
fn what_the_gateway_does_not_pass_on_envoy_does_not_pass_on_either() {
    for file in ["envoy-ext-authz.yaml", "envoy-ext-proc.yaml", "envoy-ratelimit.yaml"] {
        let rig = Rig::without_warming(file, Origin::start(), LOGINS);
        eventually("Envoy asks", || rig.request("GET", "/").status() == 200);
        for names in dropped_headers().chunks(20) {
            let request = names.iter().fold(rig.request("GET", "/"), |request, name| request.header(name, "forged"));
            assert_eq!(request.status(), 200, "{file}: {names:?}");
            let received = rig.origin.last();
            for name in names {
                let seen = received.headers.all(name);
                let is_clean = if OF_ENVOY.contains(name) { !seen.contains(&"forged") } else { seen.is_empty() };
                assert!(is_clean, "{file}: {name}: {seen:?}");
            }
        }
    }
}

#[test]
fn of_sixty_four_logins_at_once_five_reach_the_application() {
    for file in FILES {
        let rig = Rig::new(file, Origin::start(), LOGINS);
        let statuses: Vec<u16> = thread::scope(|scope| {
            let ask = || rig.request("POST", "/login").from("127.0.0.5").form("a=1").status();
            let asking: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|asked| asked.join().expect("an answer")).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 5, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 59, "{statuses:?}");
        assert_eq!(rig.reached("/login"), 5);
    }
}

#[test]
fn without_the_gateway_nothing_passes() {
    for file in FILES {
        let mut rig = Rig::new(file, Origin::start(), LOGINS);
        rig.gateway.kill();
        let before = rig.origin.requests().len();
        eventually("Envoy sees that the gateway is gone", || rig.request("GET", "/").status() == 503);
        assert_eq!(rig.request("POST", "/login").form("a=1").status(), 503);
        assert_eq!(rig.origin.requests().len(), before);
    }
}

#[test]
fn envoy_asks_about_the_target_that_it_forwards() {
    for file in FILES {
        let rules = "log: {level: info, format: json, requests: true, query: true}\n\
                     routes: [{name: login-page, match: /login}]";
        let rig = Rig::new(file, Origin::start(), rules);
        check_judged_targets(&rig.origin, &rig.gateway, |target| rig.request("GET", target));
    }
}
