//! The challenge: the page works, and a proof of work buys one budget once.

use std::thread;

use crate::chromium::Chromium;
use crate::support::{Answer, Gateway, Origin, RedisServer, Request, Response, attribute, eventually, solve};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Two requests an hour, then work.
const TWO: &str = "limits:\n  - {name: pace, key: client_ip, rate: 2/hour, then: {challenge: pow}}";

fn challenging(origin: &Origin, more: &str) -> Gateway {
    Gateway::start(format!("upstream: {}\n{more}", origin.url()))
}

fn browsing(request: Request) -> Request {
    request.header("Accept", BROWSER)
}

fn with(request: Request, proof: &str) -> Request {
    browsing(request).header("Cookie", &format!("a=1; portcullis_pow={proof}; b=2"))
}

/// Uses up the two that pass, and returns the page for the third.
fn challenged(gateway: &Gateway) -> Response {
    for _ in 0..2 {
        assert_eq!(browsing(gateway.get("/")).status(), 200);
    }
    let page = browsing(gateway.get("/third")).send();
    assert_eq!(page.status, 429);
    page
}

#[test]
fn a_browser_gets_a_page_that_loads_nothing_and_is_not_kept() {
    let origin = Origin::start();
    let gateway = challenging(&origin, TWO);
    let page = challenged(&gateway);
    assert!(page.header("content-type").expect("a type").starts_with("text/html"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(page.header("retry-after").is_some());
    assert_eq!(page.header("x-request-id").map(str::len), Some(32));
    let policy = page.header("content-security-policy").expect("a policy").to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"), "{policy}");
    let text = page.text();
    assert!(!text.contains("{{") && !text.contains("http://") && !text.contains("https://"), "{text}");
    assert!(text.contains("<noscript>") && text.contains("Try again in"), "{text}");
    assert_eq!(attribute(&page, "repeat"), "reload");
    // Each page asks for something of its own.
    let next = browsing(gateway.get("/")).send();
    assert_ne!(attribute(&next, "token"), attribute(&page, "token"));
    assert_ne!(next.header("content-security-policy"), Some(&*policy));
    let line = gateway.log_line("/third");
    assert_eq!((line["decision"].as_str(), line["limit"].as_str()), (Some("challenged"), Some("pace")));
}

#[test]
fn a_program_gets_a_problem_document() {
    let origin = Origin::start();
    let gateway = challenging(&origin, TWO);
    challenged(&gateway);
    let denial = gateway.get("/program").header("Accept", "application/json").send();
    assert_eq!((denial.status, denial.header("content-type")), (429, Some("application/problem+json")));
    assert_eq!(denial.json()["violated-policies"], serde_json::json!(["pace"]));
    assert_eq!(gateway.log_line("/program")["decision"], "challenged");
}

#[test]
fn a_form_is_to_be_sent_again_and_nothing_of_it_stands_in_the_page() {
    let origin = Origin::start();
    let gateway = challenging(&origin, TWO);
    challenged(&gateway);
    let page = browsing(gateway.post("/login")).form("user=alice&password=correct+horse").send();
    assert_eq!(attribute(&page, "repeat"), "back");
    assert!(!page.text().contains("alice") && !page.text().contains("horse"));
}

#[test]
fn the_page_has_the_status_of_the_deny_response() {
    let origin = Origin::start();
    for (response, status) in [("{status: 503, body: no}", 503), ("{redirect: 'http://a.example/'}", 429)] {
        let gateway = challenging(&origin, &format!("deny_response: {response}\n{TWO}"));
        for _ in 0..2 {
            assert_eq!(gateway.get("/").status(), 200);
        }
        let page = browsing(gateway.get("/")).send();
        assert_eq!(page.status, status);
        assert_eq!(attribute(&page, "repeat"), "reload");
    }
}

#[test]
fn work_buys_one_budget_once() {
    let origin = Origin::start();
    let gateway = challenging(&origin, TWO);
    let proof = solve(&challenged(&gateway));
    assert_eq!(origin.count(), 2);
    // As many as the limit allows, and no more with the same proof.
    let answers: Vec<u16> = (0..4).map(|_| with(gateway.get("/bought"), &proof).status()).collect();
    assert_eq!(answers, [200, 200, 429, 429]);
    assert_eq!(origin.count(), 4);
    assert_eq!(origin.last().header("cookie"), Some("a=1; b=2"));
    let another = solve(&browsing(gateway.get("/")).send());
    assert_eq!(with(gateway.get("/"), &another).status(), 200);
}

#[test]
fn work_is_not_used_up_while_there_is_room() {
    let origin = Origin::start();
    let gateway = challenging(&origin, TWO);
    let proof = solve(&challenged(&gateway));
    let answers: Vec<u16> = (0..2).map(|_| with(gateway.get("/"), &proof).status()).collect();
    let spare = solve(&browsing(gateway.get("/")).send());
    assert_eq!(with(gateway.get("/").from("127.0.0.2"), &spare).status(), 200);
    assert_eq!((answers, with(gateway.get("/"), &spare).status()), (vec![200, 200], 200));
}

#[test]
fn many_who_bring_one_proof_at_once_get_one_budget() {
    let origin = Origin::start();
    let gateway = challenging(&origin, TWO);
    let proof = solve(&challenged(&gateway));
    let passed = thread::scope(|scope| {
        let asking: Vec<_> = (0..16).map(|_| scope.spawn(|| with(gateway.get("/"), &proof).status())).collect();
        asking.into_iter().map(|answer| answer.join().expect("an answer")).filter(|status| *status == 200).count()
    });
    assert_eq!((passed, origin.count()), (2, 4));
}

#[test]
fn work_for_one_client_or_limit_is_nothing_for_another() {
    let origin = Origin::start();
    let gateway = challenging(
        &origin,
        "routes:
  - match: /a
    limits:
      - {name: a, key: client_ip, rate: 1/hour, then: {challenge: pow}}
  - match: /b
    limits:
      - {name: b, key: client_ip, rate: 1/hour, then: {challenge: pow}}
  - match: /c
    limits:
      - {name: c, key: client_ip, rate: 1/hour}",
    );
    let page = |path: &str, from: &str| {
        assert_eq!(browsing(gateway.get(path).from(from)).status(), 200);
        browsing(gateway.get(path).from(from)).send()
    };
    let (one, other) = ("127.0.0.1", "127.0.0.2");
    let proof = solve(&page("/a", one));
    page("/a", other);
    page("/b", one);
    page("/c", one);
    for (path, from) in [("/a", other), ("/b", one), ("/c", one)] {
        assert_eq!(with(gateway.get(path).from(from), &proof).status(), 429, "{path} {from}");
    }
    for nonsense in ["", ".", "x.1", &proof[1..], &format!("{proof}1")] {
        assert_eq!(with(gateway.get("/a"), nonsense).status(), 429);
    }
    assert_eq!(with(gateway.get("/a"), &proof).status(), 200);
}

#[test]
fn a_deny_beside_a_challenge_is_a_deny_and_uses_up_no_proof() {
    let origin = Origin::start();
    let gateway = challenging(
        &origin,
        "limits:
  - {name: work, key: client_ip, rate: 1/hour, then: {challenge: pow}}
  - {name: hard, key: header.x-hard, rate: 1/hour, missing: skip}",
    );
    assert_eq!(browsing(gateway.get("/").header("X-Hard", "1")).status(), 200);
    let proof = solve(&browsing(gateway.get("/")).send());
    let denial = with(gateway.get("/hard").header("X-Hard", "1"), &proof).send();
    assert_eq!((denial.status, gateway.log_line("/hard")["decision"].as_str()), (429, Some("denied")));
    assert!(!denial.text().contains("data-token"));
    assert_eq!(with(gateway.get("/"), &proof).status(), 200);
}

#[test]
fn gateways_of_one_redis_take_each_others_work_once() {
    let redis = RedisServer::start();
    let origin = Origin::start();
    let store = format!("store: {{redis: {{url: '{}', timeout: 10s}}}}\n{TWO}", redis.url());
    let (one, other) = (challenging(&origin, &store), challenging(&origin, &store));
    let proof = solve(&challenged(&one));
    assert_eq!(browsing(other.get("/")).status(), 429);
    eventually("the other takes it", || with(other.get("/"), &proof).status() == 200);
    assert_eq!(with(one.get("/"), &proof).status(), 200);
    for gateway in [&one, &other] {
        assert_eq!(with(gateway.get("/"), &proof).status(), 429);
    }
    assert_eq!(origin.count(), 4);
}

/// Under a name and over plain http, where a browser trusts a site with less than on the loopback address.
fn visit(gateway: &Gateway, path: &str) -> Chromium {
    Chromium::visits(&format!("http://shop.example:{}{path}", gateway.address().port()))
}

#[test]
fn a_real_browser_does_the_work_and_gets_what_it_asked_for() {
    let origin = Origin::start();
    let gateway = challenging(&origin, "limits:\n  - {name: pace, key: path, rate: 1/hour, then: {challenge: pow}}");
    assert_eq!(gateway.get("/wanted").status(), 200);
    let _browser = visit(&gateway, "/wanted");
    let is_wanted = |head: &str| head.starts_with("GET /wanted ");
    eventually("the page loads itself again and is let in", || {
        origin.requests().iter().filter(|request| is_wanted(&request.head)).count() == 2
    });
    let decisions = || {
        let lines = gateway.stdout().into_iter().filter(|line| line.contains("\"/wanted\""));
        lines
            .filter_map(|line| {
                Some(serde_json::from_str::<serde_json::Value>(&line).ok()?["decision"].as_str()?.to_owned())
            })
            .collect::<Vec<_>>()
    };
    eventually("all of it is logged", || decisions() == ["allowed", "challenged", "allowed"]);
}

#[test]
fn in_a_real_browser_a_form_is_asked_for_again() {
    // A page sends a form into a frame, and looks what is shown there.
    const FORM: &str = "<form id=form method=post action=/login target=frame><input name=password value=horse></form>
<iframe id=shown name=frame></iframe>
<script>
form.submit();
var timer = setInterval(function () {
  var again = document.getElementById('shown').contentDocument.getElementById('again');
  if (!again || again.hidden) return;
  clearInterval(timer);
  form.submit();
}, 50);
</script>";
    let origin = Origin::answering(|request| {
        let html = [("Content-Type", "text/html")];
        if request.head.starts_with("GET /form ") { Answer::new(200, &html, FORM) } else { Answer::ok("in") }
    });
    let gateway = challenging(
        &origin,
        "routes:\n  - match: POST /login\n    limits:\n      - {name: pace, key: path, rate: 1/hour, then: {challenge: pow}}",
    );
    assert_eq!(gateway.post("/login").form("a=b").status(), 200);
    let _browser = visit(&gateway, "/form");
    eventually("the form is sent again and let in", || {
        origin.requests().iter().any(|request| request.text() == "password=horse")
    });
}
