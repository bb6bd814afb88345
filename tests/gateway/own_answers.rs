//! The gateway's own answers that are no denials: for browsers, for programs, and for gRPC.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::Request as Http;

use crate::http2::{ask, over_http2};
use crate::support::{Answer, Gateway, Origin, Request, Response, eventually, python};
use crate::timeouts::nowhere;

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[track_caller]
fn is_for_both(ask: &Request, status: u16, detail: &str) {
    let page = ask.clone().header("Accept", BROWSER).send();
    assert_eq!((page.status, page.header("content-type")), (status, Some("text/html; charset=utf-8")));
    let id = page.header("x-request-id").expect("an id").to_owned();
    assert!(page.text().contains(detail) && page.text().contains(&id), "{}", page.text());
    for accept in ["application/json", "*/*"] {
        let document = ask.clone().header("Accept", accept).send();
        assert_eq!((document.status, document.header("content-type")), (status, Some("application/problem+json")));
        let problem = document.json();
        assert_eq!((problem["status"].as_u64(), problem["type"].as_str()), (Some(status.into()), Some("about:blank")));
        assert_eq!(problem["detail"], detail);
        assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{problem}");
        assert_eq!(problem["request_id"].as_str(), document.header("x-request-id"));
    }
}

#[test]
fn an_application_that_is_down_is_a_page_for_browsers_and_a_document_for_others() {
    let gateway = Gateway::start(format!("upstream: {}", nowhere()));
    is_for_both(&gateway.get("/"), 502, "The application did not answer.");
}

#[test]
fn what_is_refused_is_a_page_for_browsers_and_a_document_for_others() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}\nserver: {{max_body: 10}}", origin.url()));
    is_for_both(&gateway.get("/").header("Host", "another.example"), 400, "There is more than one Host header.");
    is_for_both(&gateway.request("TRACE", "/"), 405, "This method is not allowed.");
    is_for_both(&gateway.post("/").body("text/plain", "x".repeat(11)), 413, "The body is too long.");
    assert_eq!(origin.count(), 0);
}

/// An answer has all that every answer of the gateway has, in the form that was asked for.
#[track_caller]
fn is_whole(status: u16, headers: &dyn Fn(&str) -> Option<String>, body: &str, is_page: bool) {
    let id = headers("x-request-id").unwrap_or_else(|| panic!("{status} has no id"));
    assert!(headers("date").is_some_and(|date| date.ends_with("GMT")), "{status} has no date");
    assert_eq!(headers("cache-control").as_deref(), Some("no-store"));
    let content_type = if is_page { "text/html; charset=utf-8" } else { "application/problem+json" };
    assert_eq!(headers("content-type").as_deref(), Some(content_type), "{status}");
    assert!(body.contains(&id) && body.contains(if is_page { "<title>" } else { "\"detail\"" }), "{body}");
}

#[test]
fn a_head_that_cannot_be_read_is_a_page_for_browsers_and_a_document_for_others() {
    let gateway =
        Gateway::start(format!("upstream: {}\nserver: {{max_header_bytes: 16KiB, max_headers: 50}}", nowhere()));
    let (many, long) = ("X: y\r\n".repeat(60), "x".repeat(20_000));
    let asked = |accept: &str| format!("Host: a\r\nACCEPT:{accept}\r\n");
    for accept in [BROWSER, "application/json"] {
        let asked = asked(accept);
        let heads = [
            (431, format!("GET / HTTP/1.1\r\n{asked}{many}\r\n")),
            (431, format!("GET / HTTP/1.1\r\n{asked}X: {long}\r\n\r\n")),
            (431, format!("POST / HTTP/1.1\r\n{asked}Content-Length: 18446744073709551615\r\n\r\n")),
            (400, format!("GET / HTTP/1.1\r\n{asked}No field\r\n\r\n")),
            (400, format!("GET / HTTP/1.1\n{asked}\r\n")),
            (505, format!("GET / HTTP/3.0\r\n{asked}\r\n")),
        ];
        for (status, head) in heads {
            let mut client = gateway.connect();
            client.send(head);
            let answer = client.response();
            let header = |name: &str| answer.header(name).map(str::to_owned);
            assert_eq!(answer.status, status);
            is_whole(status, &header, &answer.text(), accept == BROWSER);
            assert_eq!(answer.header("connection"), Some("close"));
        }
    }
    // Behind a target without an end there is nothing that says which form is wanted.
    let mut client = gateway.connect();
    client.send(format!("GET /{long} HTTP/1.1\r\n{}\r\n", asked(BROWSER)));
    let answer = client.response();
    assert_eq!(answer.status, 414);
    is_whole(414, &|name| answer.header(name).map(str::to_owned), &answer.text(), false);
    let mut client = gateway.connect();
    client.send(format!("HEAD / HTTP/1.1\r\n{}{many}\r\n", asked(BROWSER)));
    let answer = client.response_to("HEAD");
    assert_eq!((answer.status, answer.header("content-type")), (431, Some("text/html; charset=utf-8")));
    assert!(client.rest().is_empty());
}

#[test]
fn a_head_that_cannot_be_read_is_a_page_over_http2_too() {
    let gateway = Gateway::start(format!("upstream: {}\nserver: {{max_headers: 50}}", nowhere()));
    let answer = over_http2(&gateway, async |sender| {
        let mut request = Http::get("http://a/").header("accept", BROWSER);
        for number in 0..60 {
            request = request.header("x-field", number);
        }
        ask(&sender, request.body(()).expect("a request"), None).await.expect("an answer")
    });
    assert_eq!(answer.status, 431);
    let header = |name: &str| answer.headers.get(name).map(|value| value.to_str().expect("text").to_owned());
    is_whole(431, &header, &String::from_utf8_lossy(&answer.body), true);
}

/// The denials that a call meets, and its application that is down.
fn called() -> Gateway {
    Gateway::start(format!(
        "upstream: {}\nlists: {{nobody: {{addresses: [10.0.0.1]}}}}\nroutes:\n  \
         - {{match: /closed/*, only: [nobody]}}\n  \
         - {{name: shop, match: /shop/*, limits: [{{name: calls, key: client_ip, rate: 1/hour, then: {{deny: {{status: 503, body: no}}}}}}]}}",
        nowhere()
    ))
}

#[test]
fn a_denied_call_ends_with_the_status_of_a_call() {
    let gateway = called();
    let answers = over_http2(&gateway, async |sender| {
        let mut answers = Vec::new();
        for path in ["/shop/Buy", "/shop/Buy", "/closed/Look"] {
            let request = Http::post(format!("http://app.example{path}"))
                .header("content-type", "application/grpc+proto")
                .header("te", "trailers")
                .body(())
                .expect("a request");
            let mut sender = sender.clone().ready().await.expect("ready");
            let (response, mut upload) = sender.send_request(request, false).expect("sent");
            upload.send_data(Bytes::from_static(b"\0\0\0\0\0"), true).expect("sent");
            let answer = response.await.expect("an answer");
            // Nothing follows the head: the whole call ends with it.
            answers.push((answer.status().as_u16(), answer.headers().clone(), answer.body().is_end_stream()));
        }
        answers
    });
    let told: Vec<_> = answers
        .iter()
        .map(|(status, headers, is_all)| {
            let text = |name: &str| headers.get(name).map(|value| value.to_str().expect("text"));
            assert_eq!((*status, text("content-type"), *is_all), (200, Some("application/grpc"), true), "{headers:?}");
            assert!(text("grpc-message").is_some_and(|message| message.ends_with('.')), "{headers:?}");
            text("grpc-status")
        })
        .collect();
    assert_eq!(told, [Some("14"), Some("8"), Some("7")]);
    let denial = &answers[1].1;
    assert!(denial.contains_key("retry-after") && denial.contains_key("ratelimit"), "{denial:?}");
    assert!(denial.contains_key("grpc-retry-pushback-ms"), "{denial:?}");
}

#[test]
fn a_call_over_http1_and_one_of_a_browser_end_in_the_same_way() {
    let gateway = called();
    let call = |content_type: &str| gateway.post("/closed/Look").body(content_type, b"\0\0\0\0\0").send();
    for (sent, answered) in
        [("application/grpc", "application/grpc"), ("Application/GRPC-Web+proto", "application/grpc-web")]
    {
        let answer = call(sent);
        assert_eq!((answer.status, answer.header("content-type"), answer.text()), (200, Some(answered), String::new()));
        assert_eq!(answer.header("grpc-status"), Some("7"));
        assert_eq!(answer.header("grpc-message"), Some("Access is denied."));
    }
    assert_eq!(call("application/json").status, 403);
}

#[test]
fn a_grpc_library_knows_what_was_denied_and_what_failed() {
    let gateway = called();
    let script = "
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
for method in ['/shop/Buy', '/shop/Buy', '/closed/Look']:
    call = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
    try:
        call(b'', timeout=20)
    except grpc.RpcError as error:
        print(error.code().name, error.details())
";
    let output = python(Path::new("."))
        .args(["-c", script, &gateway.address().to_string()])
        .env("no_proxy", "*")
        .output()
        .expect("python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [
            "UNAVAILABLE The application did not answer.",
            "RESOURCE_EXHAUSTED Too many requests. Try again in 60 minutes.",
            "PERMISSION_DENIED Access is denied."
        ],
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A page for a reader of this language.
#[track_caller]
fn page_in(ask: &Request, language: &str) -> Response {
    let page = ask.clone().header("Accept", BROWSER).header("Accept-Language", language).send();
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    page
}

/// Each page has this status and title, in three languages.
#[track_caller]
fn is_told(ask: &Request, status: u16, titles: [&str; 3]) {
    for (accepted, language, title) in [
        ("en-GB,en;q=0.9", "en", titles[0]),
        ("de-CH,de;q=0.8,en;q=0.5", "de", titles[1]),
        ("fi,ja;q=0.7", "ja", titles[2]),
    ] {
        let page = page_in(ask, accepted);
        assert_eq!((page.status, page.header("content-language")), (status, Some(language)));
        assert_eq!(page.header("vary"), Some("Accept, Accept-Language"));
        let policy = page.header("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe"),
            "{policy}"
        );
        let (text, id) = (page.text(), page.header("x-request-id").expect("an id").to_owned());
        assert!(text.contains(&format!("<html lang=\"{language}\">")), "{text}");
        assert!(text.contains(&format!("<h1>{title}</h1>")) && text.contains(&id), "{title}: {text}");
        assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("{{"), "{text}");
    }
}

#[test]
fn a_person_is_told_in_their_language_what_happened() {
    let slow = Origin::answering(|_| Answer::ok("late").after(Duration::from_secs(3)));
    let gateway = Gateway::start(format!(
        "upstream: nowhere\nupstreams:\n  nowhere: {{servers: [{}]}}\n  \
         slow: {{servers: [{}], timeouts: {{response: 100ms}}}}\n\
         lists: {{nobody: {{addresses: [10.0.0.1]}}}}\nserver: {{max_body: 10, max_headers: 50}}\nroutes:\n  \
         - {{match: /closed/*, only: [nobody]}}\n  - {{match: /slow, upstream: slow}}\n  \
         - {{match: /often, limits: [{{key: client_ip, rate: 1/day}}]}}",
        nowhere(),
        slow.url()
    ));
    is_told(
        &gateway.get("/").header("Host", "another.example"),
        400,
        ["This request was not understood", "Diese Anfrage wurde nicht verstanden", "リクエストを認識できませんでした"],
    );
    is_told(&gateway.get("/closed/a"), 403, ["Access denied", "Zugriff verweigert", "アクセスが拒否されました"]);
    is_told(
        &gateway.post("/").body("text/plain", "x".repeat(11)),
        413,
        ["What you sent is too large", "Was Sie gesendet haben, ist zu groß", "送信されたデータが大きすぎます"],
    );
    assert_eq!(gateway.get("/often").status(), 502);
    is_told(&gateway.get("/often"), 429, ["Too many attempts", "Zu viele Versuche", "試行回数が多すぎます"]);
    let many = (0..60).fold(gateway.get("/"), |ask, _| ask.header("X-Field", "1"));
    is_told(
        &many,
        431,
        [
            "Your browser sent too much along with the request",
            "Ihr Browser hat mit der Anfrage zu viel mitgesendet",
            "ブラウザーがリクエストと一緒に送ったデータが多すぎます",
        ],
    );
    is_told(
        &gateway.get("/"),
        502,
        ["The site did not answer", "Die Website hat nicht geantwortet", "サイトから応答がありませんでした"],
    );
    is_told(
        &gateway.get("/slow"),
        504,
        [
            "The site took too long to answer",
            "Die Website hat zu lange für ihre Antwort gebraucht",
            "サイトの応答に時間がかかりすぎました",
        ],
    );
}

#[test]
fn a_store_that_is_away_is_told_with_the_wait() {
    let redis = nowhere().replace("http:", "redis:");
    let gateway = Gateway::start(format!(
        "upstream: {}\nstore: {{redis: {{url: \"{redis}\"}}, on_failure: deny}}\n\
         limits: [{{key: client_ip, rate: 100/day}}]",
        nowhere()
    ));
    is_told(
        &gateway.get("/"),
        503,
        [
            "The site is not available at the moment",
            "Die Website ist zurzeit nicht verfügbar",
            "サイトは現在ご利用いただけません",
        ],
    );
    assert!(page_in(&gateway.get("/"), "pl").text().contains(">Spróbuj ponownie za 1 sekundę.</p>"));
}

#[test]
fn wrong_passwords_are_named_only_to_the_client_that_sent_them() {
    let origin = Origin::answering(|_| Answer::new(401, &[], ""));
    let gateway = Gateway::start(format!(
        "upstream: {}\nclient_ip: {{trusted_proxies: [127.0.0.1]}}\nroutes:\n  \
         - match: POST /login\n    outcome: {{failure: {{status: 401}}, otherwise: success}}\n    limits:\n      \
         - {{name: own, key: [client_ip, param.username], rate: 2/hour, count: failures}}\n      \
         - {{name: account, key: param.username, rate: 3/hour, count: failures}}",
        origin.url()
    ));
    let log_in =
        |client: &str| gateway.post("/login").header("X-Forwarded-For", client).form("username=alice&password=x");
    assert_eq!([log_in("192.0.2.1").status(), log_in("192.0.2.1").status()], [401, 401]);
    let page = page_in(&log_in("192.0.2.1"), "en");
    assert_eq!(page.status, 429);
    assert!(page.text().contains("<h1>Too many wrong passwords for this account</h1>"), "{}", page.text());
    assert!(page.text().contains("id=\"back\"") && !page.text().contains("id=\"again\""), "{}", page.text());
    // Another client is denied for what the first one did. It is not told that there was anybody.
    assert_eq!(log_in("192.0.2.2").status(), 401);
    let page = page_in(&log_in("192.0.2.2"), "en");
    assert_eq!(page.status, 429);
    assert!(page.text().contains("<h1>Too many attempts</h1>"), "{}", page.text());
    let document = log_in("192.0.2.1").header("Accept", "application/json").header("Accept-Language", "de").send();
    assert_eq!(document.json()["title"], "Too Many Requests");
}

#[test]
fn programs_are_answered_as_ever_whatever_their_language_is() {
    let gateway = called();
    let document = gateway.get("/closed/a").header("Accept", "application/json").header("Accept-Language", "de").send();
    assert_eq!((document.status, document.header("content-type")), (403, Some("application/problem+json")));
    assert_eq!((document.header("cache-control"), document.header("retry-after")), (Some("no-store"), None));
    let id = document.header("x-request-id").expect("an id");
    let expected = format!(
        "{{\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":403,\"detail\":\"Access is denied.\",\"request_id\":\"{id}\"}}\n"
    );
    assert_eq!(document.text(), expected);
    let call = gateway.post("/closed/a").body("application/grpc", b"\0\0\0\0\0").header("Accept-Language", "de").send();
    assert_eq!(call.header("grpc-message"), Some("Access is denied."));
    for answer in [document, call] {
        for absent in ["content-language", "vary", "content-security-policy"] {
            assert_eq!(answer.header(absent), None);
        }
    }
}

#[test]
fn a_head_request_for_a_page_has_its_headers_and_no_body() {
    let gateway = called();
    let ask = |method: &str| page_in(&gateway.request(method, "/closed/a"), "sv");
    let (whole, head) = (ask("GET"), ask("HEAD"));
    assert_eq!((head.status, head.header("content-language")), (403, Some("sv")));
    assert_eq!(head.header("content-length"), Some(&*whole.body.len().to_string()));
    assert!(head.body.is_empty());
}

#[test]
fn pages_of_the_operator_stand_before_those_of_the_gateway() {
    let config = |more: &str| {
        format!(
            "upstream: {}\npages: .\nlists: {{nobody: {{addresses: [10.0.0.1]}}}}\nroutes:\n  \
             - {{match: /closed/*, only: [nobody]}}\n  \
             - {{match: /often, limits: [{{key: client_ip, rate: 1/hour, then: {{deny: {{body_file: own.html}}}}}}]}}\n{more}",
            nowhere()
        )
    };
    let gateway = Gateway::with_files(
        config(""),
        &[
            ("denied.html", "any: {{sentence}}|{{seconds}}|{{status}}|{{request_id}}"),
            ("denied.de.html", "deutsch: {{ sentence }}"),
            ("own.html", "of the limit: {{sentence}}"),
        ],
    );
    let (closed, broken) = (gateway.get("/closed/a"), gateway.get("/"));
    assert!(page_in(&closed, "de-AT").text().starts_with("deutsch: Zugriff verweigert. "));
    let page = page_in(&closed, "fr");
    let id = page.header("x-request-id").expect("an id");
    assert!(
        page.text().starts_with("any: Accès refusé. ") && page.text().ends_with(&format!("||403|{id}")),
        "{}",
        page.text()
    );
    assert_eq!((page.header("content-language"), page.header("content-security-policy")), (None, None));
    assert!(page_in(&broken, "de").text().contains("<h1>Die Website hat nicht geantwortet</h1>"));
    // The page of a limit is sent as it is.
    assert_eq!(gateway.get("/often").status(), 502);
    assert_eq!(page_in(&gateway.get("/often"), "de").text(), "of the limit: {{sentence}}");

    // A page that comes is a change, and so is one that is mended.
    gateway.write("error.html", "error: {{status}}");
    eventually("the new page is sent", || page_in(&broken, "de").text() == "error: 502");
    gateway.write("error.html", "error: {{cause}}");
    eventually("the reload fails", || gateway.failed_reloads() == 1);
    assert_eq!(page_in(&broken, "de").text(), "error: 502");
    let said = gateway.stderr().join("\n");
    assert!(said.contains("unknown placeholder `cause`") && said.contains("error.html"), "{said}");
}
