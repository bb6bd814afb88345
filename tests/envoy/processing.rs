//! Envoy shows requests and answers with `ext_proc`.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crate::rig::Rig;
use crate::support::{Answer, Origin, RawClient, Received, Stopwatch, eventually, throughout};

const FILE: &str = "envoy-ext-proc.yaml";

/// A login that answers by the password, after a while: the redirect to the account, or the form again.
fn application() -> Origin {
    Origin::answering(|received: &Received| match received.text() {
        form if form.contains("password=right") => {
            Answer::new(302, &[("Location", "/account"), ("Set-Cookie", "session=1")], "in")
        }
        _ => Answer::ok("the form").after(Duration::from_millis(100)),
    })
}

fn rules(limits: &str) -> String {
    format!(
        "routes:\n  - name: login\n    match: POST /login\n    outcome: {{success: {{status: 302}}, otherwise: failure}}\n    \
         known_clients: {{of: param.username, by: cookie}}\n    limits: {limits}\n"
    )
}

const THREE_FAILURES: &str = "[{name: failures, key: client_ip, rate: 3/hour, count: failures}]";

fn log_in(rig: &Rig, from: &str, password: &str) -> u16 {
    rig.request("POST", "/login").from(from).form(&format!("username=alice&password={password}")).status()
}

#[test]
fn of_ten_guesses_at_once_three_reach_the_application() {
    let rig = Rig::new(FILE, application(), &rules(THREE_FAILURES));
    let statuses: Vec<u16> = thread::scope(|scope| {
        let guessing: Vec<_> = (0..10).map(|_| scope.spawn(|| log_in(&rig, "127.0.0.5", "wrong"))).collect();
        guessing.into_iter().map(|guessed| guessed.join().expect("an answer")).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 3, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 7, "{statuses:?}");
    assert_eq!(rig.reached("/login"), 3);
    assert_eq!(log_in(&rig, "127.0.0.5", "right"), 429, "three failures are three");
}

#[test]
fn a_success_gives_back() {
    let rig = Rig::new(FILE, application(), &rules(THREE_FAILURES));
    for number in 0..6 {
        assert_eq!(log_in(&rig, "127.0.0.5", "right"), 302, "{number}");
    }
    assert_eq!(rig.gateway.log_line("/login")["outcome"], "success");
    let statuses = [0; 4].map(|_| log_in(&rig, "127.0.0.5", "wrong"));
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[test]
fn a_success_resets() {
    let limits = "[{name: failures, key: client_ip, rate: 3/hour, count: failures, reset_on: success}]";
    let rig = Rig::new(FILE, application(), &rules(limits));
    let passwords = ["wrong", "wrong", "right", "wrong", "wrong", "right", "wrong", "wrong", "wrong", "wrong"];
    let statuses = passwords.map(|password| log_in(&rig, "127.0.0.5", password));
    assert_eq!(statuses, [200, 200, 302, 200, 200, 302, 200, 200, 200, 429]);
}

/// The device cookie of an answer, beside the application's own.
fn device_cookie(answer: &crate::support::Response) -> Option<String> {
    let cookies = answer.headers.all("set-cookie");
    assert!(cookies.contains(&"session=1"), "{cookies:?}");
    let ours = cookies.iter().find(|cookie| cookie.starts_with("portcullis_device_"))?;
    Some(ours.split(';').next().unwrap_or_default().to_owned())
}

#[test]
fn the_device_cookie_arrives_and_is_known() {
    let by_body = "outcome: {success: {body: welcome}, otherwise: failure}";
    for (outcome, answer) in [("", "in"), (by_body, "welcome")] {
        let origin = Origin::answering(move |_| Answer::new(302, &[("Set-Cookie", "session=1")], answer));
        let rules = rules("[{name: pace, key: client_ip, rate: 1/hour, unless: [known_client]}]");
        let rules = match outcome {
            "" => rules,
            outcome => rules.replace("outcome: {success: {status: 302}, otherwise: failure}", outcome),
        };
        let rig = Rig::new(FILE, origin, &rules);
        let login = rig.request("POST", "/login").from("127.0.0.5").form("username=alice");
        let answer = login.clone().send();
        let cookie = device_cookie(&answer).unwrap_or_else(|| panic!("{outcome}: no cookie: {:?}", answer.headers));
        assert_eq!(login.clone().status(), 429, "{outcome}");
        assert_eq!(login.clone().header("Cookie", &cookie).status(), 302, "{outcome}");
        assert_eq!(rig.origin.last().header("cookie"), None);
    }
}

#[test]
fn an_outcome_in_the_body_is_read_and_the_body_arrives() {
    let long = "x".repeat(50_000) + "WELCOME";
    let page = long.clone();
    let origin = Origin::answering(move |received| {
        Answer::ok(if received.text().contains("right") { page.clone() } else { "wrong".to_owned() })
    });
    let rules = "routes: [{name: login, match: POST /login, outcome: {success: {body: WELCOME}, otherwise: failure}, limits: \
                 [{name: failures, key: client_ip, rate: 1/hour, count: failures}]}]";
    let rig = Rig::new(FILE, origin, rules);
    for _ in 0..3 {
        let answer = rig.request("POST", "/login").from("127.0.0.5").form("password=right").send();
        assert_eq!((answer.status, answer.text() == long), (200, true));
    }
    assert_eq!(log_in(&rig, "127.0.0.5", "wrong"), 200);
    assert_eq!(log_in(&rig, "127.0.0.5", "wrong"), 429);
}

#[test]
fn the_body_names_the_account_in_every_mode() {
    let rules =
        "routes: [{name: login, match: POST /login, limits: [{name: account, key: param.username, rate: 1/hour}]}]";
    let override_off = ("allow_mode_override: true", "allow_mode_override: false");
    for mode in ["BUFFERED_PARTIAL", "BUFFERED", "STREAMED"] {
        let mode = format!("request_body_mode: {mode}");
        let changes = [("request_body_mode: BUFFERED_PARTIAL", &*mode), override_off];
        let rig = Rig::changed(FILE, &changes, Origin::start(), rules);
        let ask = |from: &str, form: &str| rig.request("POST", "/login").from(from).form(form).status();
        assert_eq!(ask("127.0.0.5", "username=alice"), 200, "{mode}");
        assert_eq!(ask("127.0.0.6", "username=Alice"), 429, "{mode}");
        assert_eq!(ask("127.0.0.6", "username=bob"), 200, "{mode}");
        let long = format!("username=carol&x={}", "x".repeat(300_000));
        let answer = rig.request("POST", "/other").from("127.0.0.5").form(&long).status();
        assert_eq!((answer, rig.origin.last().body_length), (200, long.len() as u64), "{mode}");
    }
    let changes = [("request_body_mode: BUFFERED_PARTIAL", "request_body_mode: NONE"), override_off];
    let rig = Rig::changed(FILE, &changes, Origin::start(), rules);
    let answer = rig.request("POST", "/login").form("username=alice").status();
    assert_eq!((answer, rig.reached("/login")), (503, 0), "the body is not shown");
    let said = || rig.gateway.log_messages().iter().any(|line| line.contains("request_body"));
    eventually("the log names the setting", said);
}

#[test]
fn where_a_limit_reads_the_body_the_application_gets_nothing_before_the_decision() {
    let rules =
        "routes: [{name: login, match: POST /login, limits: [{name: account, key: param.username, rate: 1/hour}]}]";
    let changes = [("request_body_mode: BUFFERED_PARTIAL", "request_body_mode: STREAMED")];
    let rig = Rig::changed(FILE, &changes, Origin::start(), rules);
    let heads = || rig.origin.heads().iter().filter(|received| received.target == "/login").count();
    let head = "POST /login HTTP/1.1\r\nHost: app.example\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                Content-Length: 14\r\n\r\n";
    let mut clients: Vec<_> = (0..3).map(|_| RawClient::connect(rig.envoy.address())).collect();
    for client in &mut clients {
        client.send(head);
    }
    throughout(Duration::from_millis(500), || assert_eq!(heads(), 0));
    let statuses: Vec<u16> = clients.iter_mut().map(|client| client.send("username=alice").response().status).collect();
    assert_eq!((statuses, heads()), (vec![200, 429, 429], 1));
}

#[test]
fn an_upgrade_on_a_route_that_reads_bodies_goes_through() {
    let rules = "routes: [{name: live, match: /live, limits: [{name: account, key: form.user, rate: 100/hour}]}]";
    let changes =
        [("stat_prefix: front", "stat_prefix: front\n                upgrade_configs: [{upgrade_type: websocket}]")];
    let origin = Origin::scripted(|mut exchange| {
        while let Some(received) = exchange.request() {
            if received.header("upgrade").is_none() {
                exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                continue;
            }
            exchange.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
            exchange.pause(Duration::from_secs(1));
            return;
        }
    });
    let rig = Rig::changed(FILE, &changes, origin, rules);
    let asked = Stopwatch::start();
    let upgrade = rig.request("GET", "/live").header("Connection", "upgrade").header("Upgrade", "websocket");
    assert_eq!(upgrade.header("Sec-WebSocket-Version", "13").status(), 101);
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
}

#[test]
fn a_concurrent_limit_ends_with_the_answer() {
    let gate = Arc::new(Barrier::new(2));
    let origin = Origin::scripted({
        let gate = Arc::clone(&gate);
        move |mut exchange| {
            while let Some(received) = exchange.request() {
                if received.target == "/report" {
                    exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nfirst half");
                    gate.wait();
                    exchange.write("other half");
                } else {
                    exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                }
            }
        }
    });
    let rules = "routes: [{match: /report, limits: [{name: one, key: client_ip, concurrent: 1}]}]";
    let rig = Rig::new(FILE, origin, rules);
    thread::scope(|scope| {
        let report = || rig.request("GET", "/report").from("127.0.0.5").send();
        let first = scope.spawn(report);
        eventually("the report begins", || rig.reached("/report") == 1);
        assert_eq!(rig.request("GET", "/report").from("127.0.0.5").status(), 429);
        gate.wait();
        assert_eq!(first.join().expect("an answer").text(), "first halfother half");
        let second = scope.spawn(report);
        eventually("another report begins", || rig.reached("/report") == 2);
        gate.wait();
        assert_eq!(second.join().expect("an answer").status, 200);
    });
}

#[test]
fn an_answer_of_envoy_is_none_of_the_application() {
    let one = "[{name: failures, key: client_ip, rate: 1/hour, count: failures}]";
    // Nobody listens there: no request is sent.
    let gone = [("{address: 127.0.0.1, port_value: 8000}", "{address: 127.0.0.1, port_value: 1}")];
    let rig = Rig::changed(FILE, &gone, application(), &rules(one));
    for _ in 0..3 {
        assert_eq!(log_in(&rig, "127.0.0.5", "wrong"), 503, "it counts as nothing");
    }
    // The application may have read it: the slot is kept.
    let origin = Origin::answering(|received| match received.target.as_str() {
        "/login" => Answer::silence(),
        _ => Answer::ok(""),
    });
    let rig = Rig::new(FILE, origin, &rules(one));
    assert_eq!(log_in(&rig, "127.0.0.5", "wrong"), 503);
    assert_eq!(log_in(&rig, "127.0.0.5", "wrong"), 429);
    eventually("the log names the cause", || {
        rig.gateway.stdout().iter().any(|line| line.contains("upstream_reset_before_response_started"))
    });
}

/// A filter before `ext_proc` that answers requests with `X-Abort` itself.
const ABORTING: (&str, &str) = (
    "http_filters:",
    "http_filters:
                  - name: envoy.filters.http.fault
                    typed_config:
                      \"@type\": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault
                      headers: [{name: x-abort, present_match: true}]
                      abort: {http_status: 418, percentage: {numerator: 100}}",
);

#[test]
fn what_envoy_answers_before_it_asks_reaches_the_client_and_is_not_counted() {
    let one = "routes: [{name: login, match: POST /login, limits: [{name: one, key: client_ip, rate: 1/hour}]}]";
    for body_mode in ["NONE", "BUFFERED", "STREAMED"] {
        let body_mode = format!("response_body_mode: {body_mode}");
        let rig = Rig::changed(FILE, &[ABORTING, ("response_body_mode: NONE", &body_mode)], application(), one);
        let login = rig.request("POST", "/login").from("127.0.0.5").form("password=wrong");
        for _ in 0..3 {
            let aborted = login.clone().header("X-Abort", "1").send();
            assert_eq!((aborted.status, aborted.text().as_str()), (418, "fault filter abort"), "{body_mode}");
        }
        let no_host = RawClient::connect(rig.envoy.address()).send("GET / HTTP/1.1\r\n\r\n").response();
        assert_eq!(no_host.status, 400, "{body_mode}");
        assert_eq!([login.status(), login.status()], [200, 429], "{body_mode}");
        assert_eq!(rig.reached("/login"), 1, "{body_mode}");
        let recorded = || rig.gateway.stdout().iter().filter(|line| line.contains("/login")).count();
        eventually("both that were decided are logged", || recorded() >= 2);
        assert_eq!(recorded(), 2, "{body_mode}");
    }
}

#[test]
fn what_envoy_answers_while_a_request_is_held_reaches_the_client_and_not_the_application() {
    let short = ("stat_prefix: front", "stat_prefix: front\n                stream_idle_timeout: 1s");
    let slow = "routes: [{match: /slow, limits: [{name: slow, key: client_ip, rate: 1/hour, then: {delay: 20s}}]}]";
    let rig = Rig::changed(FILE, &[short], application(), slow);
    let ask = || rig.request("GET", "/slow").from("127.0.0.5").send();
    assert_eq!(ask().status, 200);
    let timed_out = ask();
    assert_eq!((timed_out.status, timed_out.text().as_str()), (504, "stream timeout"));
    let given_up = || rig.gateway.stdout().iter().any(|line| line.contains("Envoy answered before the decision"));
    eventually("the log says why", given_up);
    assert_eq!(rig.reached("/slow"), 1);
}

#[test]
fn the_answer_to_a_request_that_envoy_does_not_show_is_not_handed_on() {
    let hidden = ("request_header_mode: SEND", "request_header_mode: SKIP");
    let unsaid = ("response_attributes: [response.code_details]", "response_attributes: []");
    for (change, header) in [(hidden, "X-Other"), (unsaid, "X-Abort")] {
        let rig = Rig::unwarmed(FILE, &[ABORTING, change], application(), "");
        assert_eq!(rig.request("GET", "/").header(header, "1").status(), 503, "{change:?}");
        let said = || rig.gateway.log_messages().iter().any(|line| line.contains("request_headers did not come"));
        eventually("the log names what is missing", said);
    }
}

#[test]
fn a_client_that_leaves_keeps_its_slot() {
    let origin = Origin::scripted(|mut exchange| {
        while let Some(received) = exchange.request() {
            if received.target == "/login" {
                exchange.client_has_left();
                return;
            }
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let one = "[{name: failures, key: client_ip, rate: 1/hour, count: failures}]";
    let rig = Rig::new(FILE, origin, &rules(one));
    let login = rig.request("POST", "/login").from("127.0.0.5").form("password=wrong");
    let mut client = login.connect();
    client.send(login.bytes());
    eventually("the application has it", || rig.reached("/login") == 1);
    drop(client);
    let line = rig.gateway.log_line("/login");
    assert_eq!((&line["status"], &line["outcome"]), (&serde_json::Value::Null, &"unknown".into()), "{line}");
    assert_eq!(login.status(), 429);
}

#[test]
fn a_delay_holds_the_request() {
    let rig = Rig::new(
        FILE,
        application(),
        &rules("[{name: slow, key: client_ip, rate: 1/hour, count: failures, then: {delay: 1s}}]"),
    );
    assert_eq!(log_in(&rig, "127.0.0.5", "wrong"), 200);
    let waited = Stopwatch::start();
    assert_eq!(log_in(&rig, "127.0.0.5", "wrong"), 200);
    assert!(waited.elapsed() >= Duration::from_secs(1));
}
