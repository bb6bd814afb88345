//! The gateway's own answers that are no denials: for browsers, for programs, and for gRPC.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::Request as Http;

use crate::http2::over_http2;
use crate::support::Answer;
use crate::support::Gateway;
use crate::support::Origin;
use crate::support::Request;
use crate::support::python;
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
fn an_application_that_is_slow_is_a_page_for_browsers_and_a_document_for_others() {
    let origin = Origin::answering(|_| Answer::ok("late").after(Duration::from_secs(3)));
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}], timeouts: {{response: 200ms}}}}",
        origin.url()
    ));
    is_for_both(&gateway.get("/"), 504, "The application took too long.");
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
