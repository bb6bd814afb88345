//! What a proxy that asks by forward auth is answered.

use std::process::Command;

use crate::question::{ONE_LOGIN, ask, ask_as_nginx, asked};
use crate::support::{Request, Stopwatch, eventually};

#[test]
fn a_request_that_may_pass_is_answered_200_without_a_body() {
    let gateway = asked(ONE_LOGIN);
    let answer = ask(&gateway, "POST", "/login").send();
    assert_eq!((answer.status, &*answer.text()), (200, ""));
    assert_eq!(answer.header("x-request-id").map(str::len), Some(32));
    assert_eq!(answer.header("ratelimit"), Some("\"pace\";r=0;t=60"));
    assert_eq!(answer.header("content-type"), None);
    let line = gateway.log_line("/login");
    assert_eq!((&line["status"], &line["decision"], &line["route"]), (&200.into(), &"allowed".into(), &"login".into()));
    assert_eq!((&line["client"], &line["peer"]), (&"203.0.113.9".into(), &"127.0.0.1".into()));
    assert_eq!(
        (&line["method"], &line["host"], &line["scheme"]),
        (&"POST".into(), &"app.example".into(), &"https".into())
    );
    assert!(line["upstream"].is_null(), "{line}");
}

#[test]
fn a_request_that_may_not_pass_is_answered_as_the_gateway_answers_it() {
    let gateway =
        asked(&format!("{ONE_LOGIN}\ndeny_response: {{status: 420, body: slow down, headers: {{x-why: pace}}}}"));
    assert_eq!(ask(&gateway, "POST", "/login").status(), 200);
    let denied = ask(&gateway, "POST", "//LOGIN/").send();
    assert_eq!((denied.status, &*denied.text()), (420, "slow down"));
    assert_eq!(denied.header("x-why"), Some("pace"));
    assert!(denied.header("retry-after").is_some() && denied.header("ratelimit").is_some());
    assert_eq!(gateway.log_line("//LOGIN/")["status"], 420);
    // What it does not describe is not judged.
    assert_eq!(ask(&gateway, "GET", "/login").status(), 200);
    assert_eq!(ask(&gateway, "POST", "/login").header("X-Forwarded-For", "").target("/auth?/login").status(), 420);
}

#[test]
fn nginx_gets_403_and_the_status_meant_in_a_header() {
    let gateway = asked(ONE_LOGIN);
    assert_eq!(ask_as_nginx(&gateway, "POST", "/login").status(), 200);
    let denied = ask_as_nginx(&gateway, "POST", "//login").send();
    assert_eq!((denied.status, denied.header("x-portcullis-status")), (403, Some("429")));
    let wait: u64 = denied.header("retry-after").expect("a wait").parse().expect("a number");
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(gateway.log_line("//login")["status"], 429);
    // Both kinds of questions count alike.
    assert_eq!(ask(&gateway, "POST", "/login").status(), 429);
}

#[test]
fn a_question_and_a_request_of_the_same_client_share_a_limit() {
    let gateway = asked("upstream: http://127.0.0.1:9\nlimits: [{name: all, key: client_ip, rate: 2/minute}]");
    let forwarding = gateway.addresses()[1];
    let local = |request: Request| request.header("X-Forwarded-For", "127.0.0.1").status();
    assert_eq!(
        local(
            crate::question::bare(gateway.address())
                .header("X-Forwarded-Method", "GET")
                .header("X-Forwarded-Proto", "http")
                .header("X-Forwarded-Host", "a")
                .header("X-Forwarded-Uri", "/")
        ),
        200
    );
    assert_eq!(Request::new(forwarding, "GET", "/").status(), 502);
    assert_eq!(Request::new(forwarding, "GET", "/").status(), 429);
}

#[test]
fn a_body_that_comes_along_is_read_for_keys() {
    let gateway = asked(
        "upstream: http://127.0.0.1:9\nroutes:\n  - {name: login, match: POST /login, limits: [{name: name, key: param.username, rate: 1/minute}]}",
    );
    assert_eq!(ask(&gateway, "POST", "/login").form("username=alice&password=x").status(), 200);
    assert_eq!(ask(&gateway, "POST", "/login").form("username=ALICE&password=y").status(), 429);
    assert_eq!(ask(&gateway, "POST", "/login").form("username=bob").status(), 200);
    let chunked = ask(&gateway, "POST", "/login")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Transfer-Encoding", "chunked");
    let mut connection = chunked.connect();
    connection.send(chunked.bytes()).send("c\r\nusername=bob\r\n0\r\n\r\n");
    assert_eq!(connection.response().status, 429);
}

#[test]
fn what_may_hide_in_a_body_that_is_not_sent_along_counts_as_empty() {
    let gateway = asked(
        "upstream: http://127.0.0.1:9\nroutes:\n  - {name: login, match: /login, limits: [{name: name, key: param.username, rate: 2/minute}]}\n  \
         - {name: deletion, match: DELETE /files, limits: [{name: files, key: [], rate: 1/minute}]}",
    );
    let by_name = |number: usize| format!("/login?username=name{number}");
    let hiding: [(&str, Option<&str>); 3] =
        [("POST", None), ("GET", Some("application/x-www-form-urlencoded")), ("PATCH", Some("application/json"))];
    // The name in the query is another one each time, and the application may read the one in the body.
    for (number, (method, content_type)) in hiding.into_iter().enumerate() {
        for nginx in [false, true] {
            let target = by_name(10 * number + usize::from(nginx));
            let question = if nginx { ask_as_nginx(&gateway, method, &target) } else { ask(&gateway, method, &target) };
            let question =
                content_type.into_iter().fold(question, |question, kind| question.header("Content-Type", kind));
            let expected = match (number, nginx) {
                (0, _) => 200,
                (_, true) => 403,
                (_, false) => 429,
            };
            assert_eq!(question.status(), expected, "{method} {nginx}");
        }
    }
    // Each request that has usually no body counts by its query alone.
    for number in 100..110 {
        assert_eq!(ask(&gateway, "GET", &by_name(number)).status(), 200);
    }
    assert_eq!(ask(&gateway, "POST", "/login?username=shown").form("username=alice").status(), 200);
    // A form may name another method.
    assert_eq!(ask(&gateway, "POST", "/files").status(), 200);
    assert_eq!(ask(&gateway, "POST", "/files").status(), 429);
    assert_eq!(ask(&gateway, "POST", "/files").form("a=b").status(), 200);
    assert_eq!(ask(&gateway, "GET", "/files").status(), 200);
}

#[test]
fn a_success_is_never_the_status_of_a_denial() {
    let rules = "deny_response: {status: 200, body: fine}\nroutes:\n  - {match: /empty, limits: [{key: [], rate: 1/hour, then: {deny: {status: 201}}}]}\n  - {match: /hard, limits: [{key: [], rate: 1/hour, then: {challenge: pow}}]}\n  - {match: /plain, limits: [{key: [], rate: 1/hour}]}\nupstream: http://127.0.0.1:9";
    let gateway = asked(rules);
    for path in ["/empty", "/hard", "/plain"] {
        assert_eq!(ask(&gateway, "GET", path).status(), 200);
        assert_eq!(ask(&gateway, "GET", path).status(), 429, "{path}");
        assert_eq!(ask(&gateway, "GET", path).header("Accept", "text/html").status(), 429, "{path}");
        let called = ask(&gateway, "POST", path).header("Content-Type", "application/grpc").send();
        assert_eq!((called.status, called.header("grpc-status")), (429, Some("8")), "{path}");
    }
    // Neither is it that of an error.
    let called = crate::question::bare(gateway.address()).header("Content-Type", "application/grpc").send();
    assert_eq!(called.status, 400);
}

#[test]
fn a_question_with_head_gets_no_body_and_one_about_head_gets_one() {
    let gateway = asked("upstream: http://127.0.0.1:9\nlimits: [{name: all, key: [], rate: 1/hour}]");
    assert_eq!(ask(&gateway, "HEAD", "/").status(), 200);
    let about_head = ask(&gateway, "HEAD", "/").send();
    assert_eq!(about_head.status, 429);
    assert!(about_head.text().contains("\"status\":429"), "{}", about_head.text());
    let mut connection = gateway.connect();
    let headers =
        "X-Forwarded-Method: GET\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\nX-Forwarded-Uri: /\r\n\r\n";
    connection.send(format!("HEAD /auth HTTP/1.1\r\nHost: p\r\n{headers}"));
    assert_eq!(connection.response_to("HEAD").status, 429);
    // Nothing stands between two answers on one connection.
    connection.send(format!("GET /auth HTTP/1.1\r\nHost: p\r\n{headers}"));
    assert_eq!(connection.response().status, 429);
}

#[test]
fn delays_and_tarpits_hold_the_answer() {
    let gateway = asked(
        "upstream: http://127.0.0.1:9\nroutes:\n  - {match: /slow, limits: [{key: [], rate: 1/hour, then: {delay: 300ms}}]}\n  - {match: /pit, limits: [{key: [], rate: 1/hour, then: {tarpit: 300ms}}]}",
    );
    for (path, status) in [("/slow", 200), ("/pit", 429)] {
        assert_eq!(ask(&gateway, "GET", path).status(), 200);
        let watch = Stopwatch::start();
        assert_eq!(ask(&gateway, "GET", path).status(), status);
        assert!(watch.elapsed().as_millis() >= 300, "{path}");
    }
}

#[test]
fn a_slot_that_waits_for_an_answer_is_kept_as_if_the_answer_never_came() {
    let gateway = asked(
        "upstream: http://127.0.0.1:9\nroutes:\n  - name: login\n    match: POST /login\n    outcome: {success: {status: 302}}\n    limits: [{name: failures, key: client_ip, rate: 2/hour, count: failures, reset_on: success}]",
    );
    assert_eq!(ask(&gateway, "POST", "/login").status(), 200);
    assert_eq!(ask(&gateway, "POST", "/login").status(), 200);
    assert_eq!(gateway.log_line("/login")["outcome"], "unknown");
    assert_eq!(ask(&gateway, "POST", "/login").status(), 429);
}

#[test]
fn a_route_that_waits_for_answers_is_named_once_by_advice_and_the_log() {
    let gateway = asked(
        "upstream: http://127.0.0.1:9\nroutes:\n  - name: login\n    match: POST /login\n    outcome: {success: {status: 302}}\n    limits: [{name: failures, key: client_ip, rate: 9/hour, count: failures}]\n  - {name: plain, match: /plain, limits: [{key: client_ip, rate: 9/hour}]}",
    );
    let advice = || gateway.admin_request("GET", "/api/v1/advice").send().text();
    assert_eq!(ask(&gateway, "GET", "/plain").status(), 200);
    assert_eq!(ask(&gateway, "GET", "/login").status(), 200);
    assert_eq!(ask(&gateway, "POST", "/login").status(), 200);
    assert_eq!(ask(&gateway, "POST", "/login").status(), 200);
    eventually("it is said", || advice().contains("answers_unseen"));
    let said: serde_json::Value = serde_json::from_str(&advice()).expect("JSON");
    let said: Vec<_> =
        said.as_array().expect("a list").iter().filter(|said| said["kind"] == "answers_unseen").collect();
    let [said] = &said[..] else { panic!("{said:?}") };
    assert_eq!(said["route"], "login");
    assert!(
        said["message"].as_str().is_some_and(|message| message.contains("failures counts every request")),
        "{said}"
    );
    let logged = || {
        let lines = gateway.log_messages();
        lines.iter().filter(|line| line.contains("a proxy asks about requests of login")).count()
    };
    // The log is read by a thread of the test.
    eventually("it is logged", || logged() > 0);
    assert_eq!(logged(), 1);
}

#[test]
fn a_limit_on_concurrent_requests_is_left_out_because_their_end_is_not_seen() {
    let gateway = asked("upstream: http://127.0.0.1:9\nlimits: [{name: few, key: [], concurrent: 1}]");
    for _ in 0..3 {
        assert_eq!(ask(&gateway, "GET", "/").status(), 200);
    }
}

#[test]
fn sixty_four_at_once_are_never_more_than_the_limit() {
    let gateway = asked("upstream: http://127.0.0.1:9\nlimits: [{name: five, key: client_ip, rate: 5/hour}]");
    let passed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(|| ask(&gateway, "GET", "/").status())).collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).filter(|status| *status == 200).count()
    });
    assert_eq!(passed, 5);
}

#[test]
fn an_upgrade_that_is_described_is_a_request_like_any_other() {
    let gateway = asked("upstream: http://127.0.0.1:9\nlimits: [{name: one, key: client_ip, rate: 1/hour}]");
    let mut connection = gateway.connect();
    let handshake = |question: Request| {
        let question = question.header("Connection", "Upgrade").header("Upgrade", "websocket");
        question.header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==").header("Sec-WebSocket-Version", "13")
    };
    assert_eq!(handshake(ask(&gateway, "GET", "/socket")).send_on(&mut connection).status, 200);
    // The connection goes on with HTTP.
    assert_eq!(handshake(ask(&gateway, "GET", "/socket")).send_on(&mut connection).status, 429);
    assert_eq!(ask(&gateway, "GET", "/").send_on(&mut connection).status, 429);
}

#[test]
fn a_redirect_is_handed_on() {
    let rules =
        "upstream: http://127.0.0.1:9\nlimits: [{name: one, key: [], rate: 1/hour, then: {deny: {redirect: /wait}}}]";
    let gateway = asked(rules);
    assert_eq!(ask(&gateway, "GET", "/").status(), 200);
    let denied = ask(&gateway, "GET", "/").send();
    assert_eq!((denied.status, denied.header("location")), (303, Some("/wait")));
    let denied = ask_as_nginx(&gateway, "GET", "/").send();
    assert_eq!(
        (denied.status, denied.header("x-portcullis-status"), denied.header("location")),
        (403, Some("303"), Some("/wait"))
    );
}

#[test]
fn a_question_about_a_grpc_call_is_no_call() {
    let gateway = asked(ONE_LOGIN);
    let question = ask(&gateway, "POST", "/login").header("Content-Type", "application/grpc").bytes();
    let question = String::from_utf8(question).expect("a head");
    let curl = |path: &str| {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--http2-prior-knowledge"]);
        for line in question.lines().skip(1).filter(|line| line.contains(": ") && !line.starts_with("Host")) {
            curl.args(["-H", line]);
        }
        let ended = curl.arg(format!("http://{}{path}", gateway.address())).output().expect("curl is installed");
        String::from_utf8(ended.stdout).expect("a number")
    };
    // A failed call is a success of HTTP, which would let the request pass.
    assert_eq!(["/auth", "/auth", "/other"].map(curl), ["200", "429", "404"]);
}

#[test]
fn nginx_gets_every_refusal_of_its_client_s_request_as_a_denial() {
    let gateway = asked(&format!("{ONE_LOGIN}\nserver: {{max_body: 10}}"));
    let bad_host = ask_as_nginx(&gateway, "GET", "/").host("a/b").bytes();
    let long = ask_as_nginx(&gateway, "POST", "/login").body("text/plain", "longer than ten bytes").bytes();
    for (question, meant) in [(bad_host, "400"), (long, "413")] {
        let answer = gateway.connect().send(&question).response();
        let told = (answer.status, answer.header("x-portcullis-status"));
        assert_eq!(told, (403, Some(meant)), "{}", question.escape_ascii());
    }
}
