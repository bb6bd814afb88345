//! The page and the problem document of a denial.

use crate::support::{Gateway, Origin, Response};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// The denial of the second request, with this much more configuration.
fn denial(accept: Option<&str>, settings: &str, files: &[(&str, &str)]) -> Response {
    let origin = Origin::start();
    let gateway = Gateway::with_files(
        format!(
            "upstream: {}\n{settings}\nlimits:\n  - {{name: login-pace, key: client_ip, rate: 1/hour}}",
            origin.url()
        ),
        files,
    );
    let request = gateway.get("/");
    let request = match accept {
        Some(accept) => request.header("Accept", accept),
        None => request,
    };
    assert_eq!(request.status(), 200);
    let denial = request.send();
    assert_eq!(origin.count(), 1);
    denial
}

#[test]
fn a_program_gets_a_problem_document() {
    for accept in [None, Some("*/*"), Some("application/json"), Some("application/json, text/html;q=0.5")] {
        let denial = denial(accept, "", &[]);
        assert_eq!(denial.status, 429, "{accept:?}");
        assert_eq!(denial.header("content-type"), Some("application/problem+json"), "{accept:?}");
        let problem = denial.json();
        assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
        assert_eq!(problem["status"], 429);
        assert_eq!(problem["violated-policies"], serde_json::json!(["login-pace"]));
        assert!(problem["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{problem}");
    }
}

#[test]
fn a_browser_gets_a_page() {
    let denial = denial(Some(BROWSER), "", &[]);
    assert_eq!(denial.status, 429);
    assert!(denial.header("content-type").expect("a type").starts_with("text/html"));
    assert!(denial.text().to_ascii_lowercase().contains("<html"), "{}", denial.text());
    assert!(denial.text().contains(denial.header("x-request-id").expect("an id")), "{}", denial.text());
}

#[test]
fn a_denial_names_the_wait_and_is_not_cached() {
    for accept in [None, Some(BROWSER)] {
        let denial = denial(accept, "", &[]);
        let wait: u64 = denial.header("retry-after").expect("a wait").parse().expect("whole seconds");
        assert!((3500..=3600).contains(&wait), "{wait}");
        assert_eq!(denial.header("cache-control"), Some("no-store"));
    }
}

#[test]
fn the_request_id_is_the_one_in_the_log() {
    let origin = Origin::start();
    let gateway =
        Gateway::start(format!("upstream: {}\nlimits:\n  - {{name: one, key: client_ip, rate: 1/hour}}", origin.url()));
    assert_eq!(gateway.get("/").status(), 200);
    let problem = gateway.get("/denied").send().json();
    assert_eq!(gateway.log_line("/denied")["request_id"], problem["request_id"]);
}

#[test]
fn the_status_may_be_chosen() {
    let denial = denial(None, "deny_response: {status: 503}", &[]);
    assert_eq!(denial.status, 503);
    assert_eq!(denial.json()["status"], 503);
    assert!(denial.header("retry-after").is_some());
}

#[test]
fn a_page_of_the_operator_is_for_browsers_only() {
    let settings = "deny_response: {status: 429, body_file: slow.html}";
    let page = ("slow.html", "<html>slow down</html>");
    let browser = denial(Some(BROWSER), settings, &[page]);
    assert_eq!((browser.status, browser.text().as_str()), (429, "<html>slow down</html>"));
    assert!(browser.header("content-type").expect("a type").starts_with("text/html"));
    let program = denial(Some("application/json"), settings, &[page]);
    assert_eq!(program.header("content-type"), Some("application/problem+json"));
}

#[test]
fn a_body_of_the_operator_is_sent_as_it_is() {
    let settings =
        "deny_response: {status: 420, body: 'Calm down.', headers: {x-mood: calm, content-type: text/plain}}";
    let denial = denial(None, settings, &[]);
    assert_eq!((denial.status, denial.text().as_str()), (420, "Calm down."));
    assert_eq!(denial.header("x-mood"), Some("calm"));
    assert_eq!(denial.header("content-type"), Some("text/plain"));
    assert_eq!(denial.header("cache-control"), Some("no-store"));
}

#[test]
fn a_denial_may_redirect() {
    let denial = denial(Some(BROWSER), "deny_response: {status: 303, redirect: 'https://status.example/slow'}", &[]);
    assert_eq!((denial.status, denial.header("location")), (303, Some("https://status.example/slow")));
}

#[test]
fn a_route_and_a_limit_may_answer_in_their_own_way() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\ndeny_response: {{status: 429, body: site}}\nroutes:\n  - match: /a\n    deny_response: {{status: 429, body: route}}\n    limits:\n      - {{name: a, key: client_ip, rate: 1/hour}}\n  - match: /b\n    limits:\n      - {{name: b, key: client_ip, rate: 1/hour, then: {{deny: {{status: 418, body: limit}}}}}}\n  - match: /c\n    limits:\n      - {{name: c, key: client_ip, rate: 1/hour, then: deny}}",
        origin.url()
    ));
    for (path, status, body) in [("/a", 429, "route"), ("/b", 418, "limit"), ("/c", 429, "site")] {
        assert_eq!(gateway.get(path).status(), 200);
        let denial = gateway.get(path).send();
        assert_eq!((denial.status, denial.text().as_str()), (status, body), "{path}");
    }
}

#[test]
fn a_denied_head_request_has_no_body() {
    let origin = Origin::start();
    let gateway =
        Gateway::start(format!("upstream: {}\nlimits:\n  - {{name: one, key: client_ip, rate: 1/hour}}", origin.url()));
    assert_eq!(gateway.get("/").status(), 200);
    let mut client = gateway.connect();
    client.send(gateway.request("HEAD", "/").bytes());
    assert!(client.head().starts_with("HTTP/1.1 429 "));
    client.send(gateway.get("/").header("Accept", "application/json").bytes());
    assert_eq!(client.response().json()["status"], 429);
}
