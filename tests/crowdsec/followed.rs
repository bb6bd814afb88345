//! A list follows what a real Local API decides.

use serde_json::json;

use super::engine::{Engine, KEY};
use super::site::{OTHER, Site, config};
use crate::support::{CertificateAuthority, Gateway, Origin, attribute, eventually, solve};

const BROWSER: &str = "text/html,application/xhtml+xml;q=0.9";

#[test]
fn bans_of_addresses_and_ranges_are_followed_until_they_are_deleted() {
    let engine = Engine::start();
    engine.decide("ban", "127.0.0.7");
    let site = Site::following(&engine);
    assert_eq!((site.from("127.0.0.7").status(), site.from(OTHER).status()), (403, 200));
    engine.decide("ban", "127.1.0.0/16");
    site.gets("127.1.2.3", 403);
    assert_eq!(site.from("127.1.2.3").target("/denied").status(), 403);
    let line = site.gateway.log_line("/denied");
    assert_eq!((line["decision"].as_str(), line["list"].as_str()), (Some("listed"), Some("community")), "{line}");
    assert_eq!(site.from("127.2.0.1").status(), 200);
    assert_eq!(site.metric("portcullis_list_entries"), Some(2));
    assert_eq!(site.metric("portcullis_list_source_up"), Some(1));
    engine.delete("127.0.0.7");
    site.gets("127.0.0.7", 200);
    assert_eq!(site.from("127.1.2.3").status(), 403);
    engine.delete("127.1.0.0/16");
    site.gets("127.1.2.3", 200);
    assert_eq!((site.list()["entries"].clone(), engine.decisions()), (json!(0), Vec::new()));
}

#[test]
fn a_deleted_address_that_is_banned_anew_stays_banned() {
    let engine = Engine::start();
    engine.decide("ban", "127.0.0.7");
    let site = Site::following(&engine);
    // The API repeats what was deleted, beside what is new.
    engine.delete("127.0.0.7");
    engine.decide("ban", "127.0.0.7");
    engine.decide("ban", "127.0.0.8");
    site.gets("127.0.0.8", 403);
    assert_eq!(site.from("127.0.0.7").status(), 403);
}

#[test]
fn a_ban_ends_by_itself_also_while_the_api_is_away() {
    let mut engine = Engine::start();
    engine.decide_for("ban", "127.0.0.7", "5s");
    engine.decide_for("ban", "127.0.0.8", "1h");
    let site = Site::following(&engine);
    assert_eq!(site.from("127.0.0.7").status(), 403);
    engine.stop();
    site.gets("127.0.0.7", 200);
    assert_eq!(site.from("127.0.0.8").status(), 403);
}

#[test]
fn a_captcha_is_a_challenge_that_is_met_once_an_hour() {
    let engine = Engine::start();
    engine.decide("captcha", "127.0.0.7");
    let site = Site::following(&engine);
    let browsing = || site.from("127.0.0.7").header("Accept", BROWSER);
    let page = browsing().target("/page").send();
    assert_eq!((page.status, page.header("cache-control")), (403, Some("no-store")));
    let line = site.gateway.log_line("/page");
    assert_eq!((line["decision"].as_str(), line["list"].as_str()), (Some("challenged"), Some("community")), "{line}");
    let id = attribute_of_footer(&page.text());
    let why = site.gateway.admin_request("GET", &format!("/api/v1/requests/{id}")).send().json();
    assert!(
        why["sentence"].as_str().is_some_and(|words| words.contains("the list community lets 127.0.0.7 in only")),
        "{why}"
    );
    // A program gets no page, and another client no pass.
    let refused = site.from("127.0.0.7").header("Accept", "application/json").send();
    assert_eq!((refused.status, refused.header("content-type")), (403, Some("application/problem+json")));
    let proof = format!("portcullis_pow={}", solve(&page));
    assert_eq!(browsing().header("Cookie", "portcullis_pow=nonsense").send().status, 403);
    engine.decide("captcha", "127.0.0.8");
    site.gets("127.0.0.8", 403);
    assert_eq!(site.from("127.0.0.8").header("Cookie", &proof).status(), 403);
    assert_eq!(browsing().header("Cookie", &proof).send().status, 200);
    assert_eq!(site.origin.last().header("cookie"), None);
    assert_eq!(browsing().send().status, 200);
    assert_eq!(attribute(&site.from("127.0.0.8").header("Accept", BROWSER).send(), "repeat"), "reload");
    // A ban goes before a captcha.
    engine.decide("ban", "127.0.0.7");
    eventually("the ban counts", || browsing().send().status == 403);
    assert_eq!(browsing().target("/banned").send().status, 403);
    assert_eq!(site.gateway.log_line("/banned")["decision"], "listed");
}

fn attribute_of_footer(page: &str) -> String {
    let id = page.split("<code>").nth(1).and_then(|rest| rest.split('<').next());
    id.expect("the page names the request").to_owned()
}

#[test]
fn what_is_known_stays_while_the_api_is_away_and_what_changed_meanwhile_is_followed_when_it_is_back() {
    let mut engine = Engine::start();
    engine.decide("ban", "127.0.0.7");
    let site = Site::following(&engine);
    engine.stop();
    eventually("the gateway says that the API is away", || site.said("the list `community` cannot follow ") == 1);
    assert_eq!(site.from("127.0.0.7").status(), 403);
    let list = site.list();
    assert_eq!((&list["up"], &list["entries"]), (&json!(false), &json!(1)), "{list}");
    assert!(list["reason"].as_str().is_some_and(|reason| reason.contains("refused")), "{list}");
    assert_eq!(site.metric("portcullis_list_source_up"), Some(0));
    engine.start_again();
    eventually("the gateway says that it is back", || site.said("the list `community` follows ") == 2);
    engine.delete("127.0.0.7");
    engine.decide("ban", "127.0.0.8");
    site.gets("127.0.0.8", 403);
    site.gets("127.0.0.7", 200);
    assert_eq!((site.said("the list `community` cannot follow "), site.list()["up"].clone()), (1, json!(true)));
}

#[test]
fn the_gateway_starts_before_the_api() {
    let mut engine = Engine::start();
    engine.decide("ban", "127.0.0.7");
    engine.stop();
    let site = Site::at(engine.address(), KEY);
    assert_eq!(site.from("127.0.0.7").status(), 200);
    engine.start_again();
    site.gets("127.0.0.7", 403);
}

#[test]
fn a_wrong_key_is_one_line_and_a_right_one_needs_no_restart() {
    let engine = Engine::start();
    engine.decide("ban", "127.0.0.7");
    let site = Site::at(engine.address(), "wrong-key-wrong-key");
    let refused = "the list `community` cannot follow ";
    eventually("the gateway says so", || site.said(refused) == 1);
    let line = site.gateway.log_messages().into_iter().find(|line| line.starts_with(refused)).expect("just seen");
    assert!(
        line.contains("403 Forbidden") && line.contains("cscli bouncers add") && !line.contains("wrong-key"),
        "{line}"
    );
    // Two more questions.
    let asked = engine.questions();
    eventually("it asks again", || engine.questions() >= asked + 2);
    assert_eq!(site.said(refused), 1);
    site.gateway.write("key", &format!("{KEY}\n"));
    site.gets("127.0.0.7", 403);
    assert!(!site.gateway.stderr().iter().any(|line| line.contains(KEY) || line.contains("wrong-key")));
}

#[test]
fn a_reload_keeps_what_is_known() {
    let mut engine = Engine::start();
    engine.decide("ban", "127.0.0.7");
    let site = Site::following(&engine);
    engine.stop();
    let url = format!("http://{}", engine.address());
    site.gateway.reload(config(&site.origin, &url, "limits: [{key: client_ip, rate: 100/minute}]"));
    assert_eq!(site.from("127.0.0.7").status(), 403);
    // With another key, and with a list less.
    site.gateway.write("key", "another-key-another-key\n");
    eventually("the key is read", || site.gateway.reloads() == 2);
    assert_eq!(site.from("127.0.0.7").status(), 403);
    site.gateway.reload(format!("upstream: {}\nadmin: {{address: 127.0.0.1:0}}\n", site.origin.url()));
    assert_eq!(site.from("127.0.0.7").status(), 200);
}

#[test]
fn a_list_may_lead_to_a_route() {
    let engine = Engine::start();
    engine.decide("ban", "127.0.0.7");
    let origin = Origin::start();
    let gateway = Gateway::with_files(
        format!(
            "upstream: {}\nlists: {{community: {{crowdsec: {{url: \"http://{}\", key_file: key, every: 1s}}}}}}\nroutes:\n  - \
             match: {{path: /*, client: [community]}}\n    limits: [{{key: client_ip, rate: 1/hour}}]\n",
            origin.url(),
            engine.address()
        ),
        &[("key", KEY)],
    );
    let ask = |client: &str| gateway.get("/").from(client).status();
    eventually("the list follows the API", || gateway.log_messages().iter().any(|line| line.contains("follows http")));
    assert_eq!([ask("127.0.0.7"), ask("127.0.0.7"), ask(OTHER), ask(OTHER)], [200, 429, 200, 200]);
}

#[test]
fn an_api_with_tls_is_verified() {
    let authority = CertificateAuthority::generate();
    let server = authority.server(&["127.0.0.1"]);
    let engine = Engine::with_tls(Some((&server.cert, &server.key)));
    engine.decide("ban", "127.0.0.7");
    let origin = Origin::start();
    let config = |ca: &str| {
        config(&origin, &format!("https://{}", engine.address()), "").replace("every: 1s", &format!("every: 1s{ca}"))
    };
    let gateway = Gateway::with_files(config(""), &[("key", KEY), ("ca.pem", authority.pem())]);
    eventually("the gateway does not trust it", || {
        gateway.log_messages().iter().any(|line| line.contains("cannot follow https://") && line.contains("ertificate"))
    });
    assert_eq!(gateway.get("/").from("127.0.0.7").status(), 200);
    gateway.reload(config(", ca: ca.pem"));
    eventually("it follows", || gateway.get("/").from("127.0.0.7").status() == 403);
}

#[test]
fn types_that_mean_nothing_here_are_said_once() {
    let engine = Engine::start();
    engine.decide("throttle", "127.0.0.7");
    let site = Site::following(&engine);
    engine.decide("throttle", "127.0.0.8");
    engine.decide("ban", "127.0.0.9");
    site.gets("127.0.0.9", 403);
    assert_eq!((site.from("127.0.0.7").status(), site.from("127.0.0.8").status()), (200, 200));
    assert_eq!(site.said("the list `community` does not follow decisions of type \"throttle\""), 1);
}

#[test]
fn a_network_of_most_visitors_is_not_banned_by_a_mistake_of_the_engine() {
    let engine = Engine::start();
    engine.decide("ban", "127.0.0.0/7");
    let site = Site::following(&engine);
    engine.decide("ban", "127.0.0.9");
    site.gets("127.0.0.9", 403);
    assert_eq!(site.from("127.0.0.7").status(), 200);
    assert_eq!(site.said("the list `community` does not follow decisions about a network larger than a /8"), 1);
}
