//! Requests and answers are forwarded unchanged, apart from what must change.

use crate::support::{Answer, Gateway, Origin};

fn before(origin: &Origin) -> Gateway {
    Gateway::start(format!("upstream: {}", origin.url()))
}

#[test]
fn method_target_fields_and_body_arrive_as_they_were_sent() {
    let origin = Origin::start();
    let gateway = before(&origin);
    let request = gateway
        .request("PATCH", "/things/7?x=1&y=%20")
        .header("Accept", "text/*;q=0.3, */*")
        .header("X-Twice", "one")
        .header("X-Twice", "two")
        .header("Authorization", "Bearer t")
        .header("Cookie", "a=b; c=d")
        .header("session_token", "kept")
        .body("text/plain", "hello");
    assert_eq!(request.status(), 200);
    let received = origin.last();
    assert_eq!((received.method.as_str(), received.target.as_str()), ("PATCH", "/things/7?x=1&y=%20"));
    assert_eq!(received.header("host"), Some("app.example"));
    assert_eq!(received.header("accept"), Some("text/*;q=0.3, */*"));
    assert_eq!(received.headers.all("x-twice"), ["one", "two"]);
    assert_eq!(received.header("authorization"), Some("Bearer t"));
    assert_eq!(received.header("cookie"), Some("a=b; c=d"));
    assert_eq!(received.header("session_token"), Some("kept"));
    assert_eq!(received.header("content-length"), Some("5"));
    assert_eq!(received.text(), "hello");
}

#[test]
fn the_answer_comes_back_as_it_was_said() {
    let origin = Origin::answering(|_| {
        Answer::new(418, &[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-App", "yes"), ("Server", "teapot")], "tea")
    });
    let gateway = before(&origin);
    let response = gateway.get("/").send();
    assert_eq!((response.status, response.text().as_str()), (418, "tea"));
    assert_eq!(response.headers.all("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(response.header("x-app"), Some("yes"));
    assert_eq!(response.header("server"), Some("teapot"));
    assert_eq!(response.header("content-length"), Some("3"));
    assert_eq!(response.header("transfer-encoding"), None);
}

#[test]
fn long_heads_of_answers_come_back_as_they_were_said() {
    let origin = Origin::answering(|received| match received.target.as_str() {
        "/cookies" => cookies(),
        "/100-kib" => Answer::raw(format!("HTTP/1.1 204 No\r\nX: {}\r\n\r\n", "y".repeat((100 << 10) - 24))),
        _ => Answer::raw(format!("HTTP/1.1 204 No\r\nX: {}\r\n\r\n", "y".repeat(130 << 10))),
    });
    let gateway = before(&origin);
    let mut client = gateway.connect();
    let answer = gateway.get("/cookies").send_on(&mut client);
    assert_eq!(answer.headers.all("set-cookie"), cookie_lines());
    assert_eq!(gateway.get("/100-kib").send_on(&mut client).header("x").map(str::len), Some((100 << 10) - 24));
    assert_eq!(gateway.get("/130-kib").send_on(&mut client).status, 502);
    gateway.reload(format!("upstream: {}\nserver: {{max_header_bytes: 200KiB}}", origin.url()));
    assert_eq!(gateway.get("/130-kib").send_on(&mut client).status, 204);
}

/// Forty of 400 bytes.
pub(crate) fn cookie_lines() -> Vec<String> {
    (0..40).map(|number| format!("c{number:02}={}", "x".repeat(396))).collect()
}

pub(crate) fn cookies() -> Answer {
    let lines = cookie_lines();
    let fields: Vec<(&str, &str)> = lines.iter().map(|line| ("Set-Cookie", line.as_str())).collect();
    Answer::new(200, &fields, "")
}

#[test]
fn a_client_cannot_have_removed_what_its_request_was_judged_by() {
    let origin = Origin::start();
    let gateway = Gateway::with_files(
        format!(
            "upstream: {}\n\
         lists: {{partners: {{of: header.x-partner, file: partners.txt}}}}\n\
         limits:\n\
         - {{key: header.x-tenant, distinct: header.x-thing, rate: 100/hour, unless: [partners]}}\n\
         - {{key: [bearer, cookie.session], rate: 100/hour}}\n\
         routes:\n\
         - match: {{path: /api, header: {{x-version: \"2*\"}}}}\n  \
           outcome: {{success: {{status: 200}}}}\n  \
           known_clients: {{of: header.x-user}}\n  \
           limits: [{{name: v2, key: client_ip, rate: 100/hour, headers: full}}]",
            origin.url()
        ),
        &[("partners.txt", "p\n")],
    );
    let kept =
        ["Authorization", "Cookie", "Content-Type", "X-Partner", "X-Tenant", "X-Thing", "X-Version", "X-User", "Range"];
    let request = kept.iter().fold(gateway.post("/api"), |request, name| request.header(name, "2"));
    let request = request.header("Connection", &format!("close, {}, X-Hop", kept.join(","))).header("X-Hop", "1");
    let response = request.send();
    assert!(response.header("ratelimit-policy").is_some_and(|policy| policy.contains("v2")), "{response:?}");
    let received = origin.last();
    // Ranges are not asked for where the answer has a meaning.
    for name in kept.iter().filter(|name| **name != "Range") {
        assert_eq!(received.header(&name.to_lowercase()), Some("2"), "{name}");
    }
    assert_eq!(received.header("x-hop"), None);
}

#[test]
fn an_answer_keeps_what_it_is_judged_by_and_loses_what_is_for_one_hop() {
    let origin = Origin::answering(|_| {
        Answer::new(
            200,
            &[
                ("Connection", "Set-Cookie, X-Result, X-Hop"),
                ("Set-Cookie", "a=1"),
                ("X-Result", "good"),
                ("X-Hop", "1"),
                ("Keep-Alive", "timeout=5"),
                ("Proxy-Authenticate", "Basic"),
                ("WWW-Authenticate", "Basic"),
            ],
            "",
        )
    });
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes: [{{match: /, outcome: {{success: {{header: {{x-result: good}}}}}}}}]",
        origin.url()
    ));
    let response = gateway.get("/").send();
    assert_eq!(["set-cookie", "x-result"].map(|name| response.header(name)), [Some("a=1"), Some("good")]);
    assert_eq!(response.header("www-authenticate"), Some("Basic"));
    assert_eq!(["x-hop", "keep-alive", "proxy-authenticate"].map(|name| response.header(name)), [None; 3]);
}

#[test]
fn a_target_arrives_byte_for_byte() {
    let origin = Origin::start();
    let gateway = before(&origin);
    let mut client = gateway.connect();
    let path = r#"/a"<b>`^{c}|\%22%3c[d]~;e=f//../?q={"a":[1,2]}&r=<x>`|\^'"#;
    for target in [path.to_owned(), format!("http://app.example{path}")] {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: app.example\r\n\r\n"));
        assert_eq!(client.response().status, 200, "{target}");
        assert_eq!(origin.last().target, path);
    }
}

#[test]
fn an_application_in_an_older_or_a_later_version_of_http_1_is_understood() {
    for version in ["HTTP/1.0", "HTTP/1.2"] {
        let head = "Transfer-Encoding: chunked\r\nConnection: keep-alive";
        let answer = format!("{version} 200 OK\r\n{head}\r\n\r\n2 \r\nok\r\n0\r\n\r\n");
        let origin = Origin::answering(move |_| Answer::raw(&answer));
        let gateway = before(&origin);
        let mut client = gateway.connect();
        for _ in 0..2 {
            assert_eq!(gateway.get("/").send_on(&mut client).text(), "ok", "{version}");
        }
        // An older one that sends chunks may not know where they end.
        assert_eq!(origin.connections(), if version == "HTTP/1.0" { 2 } else { 1 });
    }
}

#[test]
fn a_chunked_answer_reaches_an_old_client_without_chunks() {
    let origin = Origin::answering(|_| {
        Answer::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    });
    let gateway = before(&origin);
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.0\r\nHost: app.example\r\n\r\n");
    let response = client.response();
    assert_eq!((response.header("transfer-encoding"), response.header("connection")), (None, Some("close")));
    assert_eq!(response.text(), "abcde");
}

#[test]
fn an_expectation_to_continue_is_passed_to_the_application() {
    let origin = Origin::answering(|received| Answer::ok(received.text()));
    let gateway = before(&origin);
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert!(client.head().starts_with("HTTP/1.1 100 "));
    client.send("hello");
    assert_eq!(client.response().text(), "hello");
}

#[test]
fn an_application_may_refuse_before_the_body_comes() {
    let origin = Origin::scripted(|mut exchange| {
        exchange.head();
        exchange.write("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
    });
    let gateway = before(&origin);
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5000000\r\n\r\n");
    let head = client.head();
    assert!(head.starts_with("HTTP/1.1 413 ") || head.starts_with("HTTP/1.1 100 "), "{head}");
    if head.starts_with("HTTP/1.1 100 ") {
        assert_eq!(client.response().status, 413);
    }
}

#[test]
fn trailers_are_announced_where_they_follow() {
    let origin = Origin::answering(|_| {
        Answer::raw(
            "HTTP/1.1 799\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 42\r\nContent-Length: 9\r\n\r\n",
        )
    });
    let gateway = before(&origin);
    for (te, announced) in [("", vec![]), ("TE: trailers\r\nConnection: te\r\n", vec!["X-Sum"])] {
        let mut client = gateway.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{te}\r\n"));
        let answer = client.response();
        assert_eq!(answer.status, 799);
        assert_eq!(answer.headers.all("trailer"), announced);
        assert_eq!(answer.trailers.get("x-sum"), (!announced.is_empty()).then_some("42"));
        assert_eq!(answer.trailers.get("content-length"), None);
    }
}

#[test]
fn an_answer_of_one_client_never_reaches_another() {
    let origin = Origin::answering(|received| Answer::ok(format!("for {}", received.target)));
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let gateway = &gateway;
            scope.spawn(move || {
                let mut client = gateway.connect();
                for number in 0..100 {
                    let target = format!("/{thread}/{number}");
                    assert_eq!(gateway.get(&target).send_on(&mut client).text(), format!("for {target}"));
                    // Every seventh leaves while its answer is on the way.
                    if number % 7 == 0 {
                        client.send(gateway.get("/left").bytes());
                        client = gateway.connect();
                    }
                }
            });
        }
    });
}
