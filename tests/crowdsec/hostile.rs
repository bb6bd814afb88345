//! What a Local API that is none, or a broken one, does to a gateway.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::engine::KEY;
use super::site::{OTHER, Site};
use crate::support::{Answer, Origin, Stopwatch, eventually};

/// What a list says when its API does not answer as one.
const FAILED: &str = "the list `community` cannot follow ";

/// What a list says when it follows, and when it follows again.
const FOLLOWS: &str = "the list `community` follows ";

fn json(body: impl AsRef<[u8]>) -> Answer {
    Answer::new(200, &[("Content-Type", "application/json")], body)
}

fn ban(value: &str, duration: &str) -> String {
    format!(
        r#"{{"id":1,"origin":"CAPI","scenario":"s","scope":"Ip","type":"ban","value":"{value}","duration":"{duration}"}}"#
    )
}

/// Answers the first question with a ban of 127.0.0.7, and the others with this.
fn turning_bad(bad: impl Fn() -> Answer + Send + Sync + 'static) -> (Origin, Site) {
    let asked = AtomicUsize::new(0);
    let api = Origin::answering(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => json(format!(r#"{{"new":[{}],"deleted":null}}"#, ban("127.0.0.7", "1h"))),
        _ => bad(),
    });
    let site = Site::at(api.address(), KEY);
    eventually("it follows", || site.said(FOLLOWS) == 1);
    (api, site)
}

#[track_caller]
fn check(bad: impl Fn() -> Answer + Send + Sync + 'static, reason: &str) {
    let (api, site) = turning_bad(bad);
    eventually("two answers were bad", || site.said(FAILED) == 1 && api.count() >= 3);
    let said: Vec<_> = site.gateway.log_messages().into_iter().filter(|line| line.starts_with(FAILED)).collect();
    assert!(said.len() == 1 && said[0].contains(reason), "{said:?}");
    assert_eq!((site.from("127.0.0.7").status(), site.from(OTHER).status()), (403, 200));
    // What the API counts as answered is not known: everything is asked for again.
    let targets: Vec<_> = api.requests().iter().map(|request| request.target.clone()).collect();
    let (all, changed) = ("/v1/decisions/stream?startup=true", "/v1/decisions/stream");
    assert_eq!(targets[..3], [all, changed, all]);
    let sent = api.last();
    assert_eq!((sent.header("x-api-key"), sent.header("authorization")), (Some(KEY), None));
}

#[test]
fn garbage_changes_nothing_and_is_said_once() {
    check(|| json("<html>Welcome to nginx</html>"), "its answer cannot be read");
    check(|| json(r#"{"new":[{"type":7}]}"#), "its answer cannot be read");
    check(|| json(format!("{{\"new\":{}", "[".repeat(10_000))), "its answer cannot be read");
    check(|| json(r#"{"new":null,"#), "its answer cannot be read");
    check(|| json(b"\xff\xfe\0"), "its answer cannot be read");
    check(|| Answer::raw("nonsense\r\n\r\n").closing(), "invalid HTTP");
    check(
        || Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{\"new\":null").closing(),
        "its answer cannot be read",
    );
    check(|| Answer::raw(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))), "too large");
    check(|| Answer::new(500, &[], "{\"new\":null}"), "it answered 500");
    check(|| Answer::new(404, &[], ""), "it answered 404");
}

#[test]
fn a_redirection_is_not_followed() {
    let other = Origin::start();
    let location = other.url();
    check(move || Answer::new(302, &[("Location", &location)], ""), "it answered 302 Found");
    assert_eq!(other.count(), 0);
}

#[test]
fn an_endless_answer_is_cut_and_takes_little_memory() {
    for piece in [" ".repeat(1 << 16), "x".repeat(1 << 16)] {
        let api = Origin::scripted(move |mut exchange| {
            let _ = exchange.request();
            exchange.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"new\":[{\"value\":\"");
            while exchange.write(&piece) {}
        });
        let site = Site::at(api.address(), KEY);
        eventually("the gateway says so", || site.said(FAILED) == 1);
        let said = site.gateway.log_messages().join("\n");
        assert!(said.contains("longer than 64 KiB"), "{said}");
        assert!(site.gateway.peak_kib() < 200 * 1024, "{} KiB", site.gateway.peak_kib());
        assert_eq!(site.from(OTHER).status(), 200);
    }
}

#[test]
fn a_silent_api_holds_up_neither_the_start_nor_the_ends_of_bans() {
    let watch = Stopwatch::start();
    let silent = Origin::scripted(|mut exchange| _ = exchange.client_has_left());
    let site = Site::at(silent.address(), KEY);
    assert_eq!(site.from(OTHER).status(), 200);
    assert!(watch.elapsed().as_secs() < 5, "it waited for the API");
    eventually("the gateway says so", || site.said(FAILED) == 1);
    let said = site.gateway.log_messages().join("\n");
    assert!(said.contains("did not answer within 10 s"), "{said}");

    let asked = AtomicUsize::new(0);
    let turning_silent = Origin::scripted(move |mut exchange| {
        if asked.fetch_add(1, Ordering::SeqCst) == 0 && exchange.request().is_some() {
            let body = format!(r#"{{"new":[{}]}}"#, ban("127.0.0.7", "4s"));
            exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
        exchange.client_has_left();
    });
    let site = Site::at(turning_silent.address(), KEY);
    site.gets("127.0.0.7", 403);
    let watch = Stopwatch::start();
    site.gets("127.0.0.7", 200);
    assert!(watch.elapsed().as_secs() < 8, "the end of the ban waited for the API");
}

#[test]
fn odd_durations_values_and_numbers_are_survived() {
    let long = "9".repeat(400);
    let decisions = [
        ban("127.0.0.7", "99999999999999999999999h"),
        ban("127.0.0.8", "-4h"),
        ban("127.0.0.9", "soon"),
        ban("999.0.0.1", "1h"),
        ban("::ffff:127.0.0.10", "1h"),
        ban("127.0.0.11", "1h").replace("\"Ip\"", "\"Country\""),
        ban("127.0.0.12", "1h").replace("\"id\":1", &format!("\"id\":-{long}.{long}e{long}")),
        ban("127.0.0.13", "1h").replace("CAPI", "portcullis"),
    ];
    let body = format!(r#"{{"new":[{}]}}"#, decisions.join(","));
    let api = Origin::answering(move |_| json(&body));
    let site = Site::at(api.address(), KEY);
    eventually("it follows", || site.said(FOLLOWS) == 1);
    let statuses: Vec<_> = (7..=13).map(|last| site.from(&format!("127.0.0.{last}")).status()).collect();
    assert_eq!(statuses, [403, 200, 200, 403, 200, 403, 200]);
    for words in
        ["that last no duration, such as \"soon\"", "about no address, such as \"999.0.0.1\"", "of scope \"Country\""]
    {
        assert_eq!(site.said(&format!("the list `community` does not follow decisions {words}")), 1, "{words}");
    }
}

#[test]
fn hundreds_of_thousands_of_decisions_are_followed() {
    let decisions: Vec<_> = (0..200_000_u32)
        .map(|number| ban(&std::net::Ipv4Addr::from(0x0a00_0000 + 2 * number).to_string(), "4h"))
        .collect();
    let body = format!(r#"{{"new":[{},{}],"deleted":[]}}"#, decisions.join(","), ban("127.0.0.7", "4h"));
    let asked = AtomicUsize::new(0);
    let api = Origin::answering(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => json(&body),
        _ => json(r#"{"new":null,"deleted":null}"#),
    });
    let site = Site::at(api.address(), KEY);
    eventually("it follows", || site.said(FOLLOWS) == 1);
    assert_eq!(site.list()["entries"], 200_001);
    assert_eq!((site.from("127.0.0.7").status(), site.from(OTHER).status()), (403, 200));
    assert!(site.gateway.peak_kib() < 300 * 1024, "{} KiB", site.gateway.peak_kib());
}
