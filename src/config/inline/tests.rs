use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::config::Settings;
use crate::rules::client::ClientIp;
use crate::rules::limit::{LimitId, Rule};
use crate::rules::list::Membership;
use crate::rules::request::CanonicalHead;
use crate::rules::route::{BodyMethods, RequestReadings};
use crate::wire::head;

fn flags(limits: &[&str]) -> Flags {
    Flags {
        upstream: "http://127.0.0.1:8000".to_owned(),
        listen: None,
        admin: None,
        limits: limits.iter().map(|text| (*text).to_owned()).collect(),
    }
}

/// Each route's match and the numbers of its limits.
#[track_caller]
fn check(limits: &[&str], expected: &[(&str, &[u16])]) {
    let settings = inline(&flags(limits)).expect("good flags");
    let name = |id: &LimitId| settings.policy.limits[usize::from(id.0)].name.clone();
    let number = |id: &LimitId| name(id).trim_start_matches("limit-").parse::<u16>().expect("a number");
    let found: Vec<(String, Vec<u16>)> = settings
        .policy
        .routes
        .all()
        .iter()
        .map(|route| (route.name.to_string(), route.limits.iter().map(number).collect()))
        .collect();
    let expected: Vec<_> = expected.iter().map(|(name, ids)| ((*name).to_owned(), ids.to_vec())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_limit_is_a_route() {
    check(&["POST /login client_ip 5/minute"], &[("POST /login", &[1])]);
    check(
        &["get,post /login client_ip, param.username 1/second; 20/minute"],
        &[("GET /login", &[1]), ("POST /login", &[1])],
    );
}

#[test]
fn two_limits_of_one_match_hold_together() {
    check(&["POST /login client_ip 5/minute", "POST /LOGIN/ param.username 5/hour"], &[("POST /login", &[1, 2])]);
}

#[test]
fn a_wide_limit_holds_on_narrow_routes_too() {
    check(
        &["/api/* client_ip 100/second", "POST /api/login client_ip 5/minute"],
        &[("POST /api/login", &[1, 2]), ("/api/*", &[1])],
    );
    check(&["GET /a client_ip 100/second", "HEAD /a client_ip 5/minute"], &[("HEAD /a", &[1, 2]), ("GET /a", &[1])]);
}

#[test]
fn what_two_limits_share_is_a_route_of_its_own() {
    check(&["/a/{x} client_ip 1/s", "/{y}/b client_ip 2/s"], &[("/a/b", &[1, 2]), ("/a/{x}", &[1]), ("/{y}/b", &[2])]);
    check(
        &["/a/* client_ip 1/s", "POST /* client_ip 2/s"],
        &[("POST /a/*", &[1, 2]), ("/a/*", &[1]), ("POST /*", &[2])],
    );
}

#[test]
fn a_limit_on_everything_needs_no_route() {
    let settings = inline(&flags(&["/* [] 100/second"])).expect("good flags");
    assert_eq!(settings.policy.everywhere, [LimitId(0)]);
    assert!(settings.policy.limits[0].key.parts.is_empty());
    assert!(settings.policy.routes.all().is_empty());
}

#[test]
fn mistakes_name_their_flag() {
    let mut wrong = flags(&["POST /login client_ip 5/fortnight", "/x", "POST /login cilent_ip 5/minute"]);
    wrong.listen = Some("8080".to_owned());
    wrong.upstream = "127.0.0.1:8000".to_owned();
    let found: Vec<_> = inline(&wrong)
        .expect_err("five mistakes")
        .into_iter()
        .map(|mistake| format!("{}:{}: {}", mistake.file.display(), mistake.column, mistake.message))
        .collect();
    assert_eq!(
        found,
        [
            "--limit:1: a limit is a path, a key and a rate",
            "--limit:13: unknown selector `cilent_ip`",
            "--limit:23: unknown unit `fortnight`",
            "--listen:1: `8080` is not an address with a port",
            "--upstream:1: `127.0.0.1:8000` is not a URL",
        ]
    );
}

#[test]
fn overlaps_beyond_reason_are_for_a_file() {
    // Ten limits, each on one literal segment out of ten: every subset of them is an overlap.
    let limits: Vec<String> = (0..10)
        .map(|literal| {
            let segment = |n| if n == literal { "x".to_owned() } else { format!("{{s{n}}}") };
            format!("/{} client_ip 1/s", (0..10).map(segment).collect::<Vec<_>>().join("/"))
        })
        .collect();
    let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
    let mistakes = inline(&flags(&limits)).expect_err("too many overlaps");
    assert!(mistakes.iter().any(|mistake| mistake.message == "these limits overlap in more than 300 ways"));
}

proptest! {
    #[test]
    fn no_flag_makes_it_panic(limits in prop::collection::vec("([A-Z,]{0,6} )?/?[a-b/*{}]{0,6} ?[a-z_,. ]{0,9} ?[0-9/a-z;]{0,6}\\PC{0,2}", 0..4)) {
        let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
        let _ = inline(&flags(&limits));
    }
}

/// The rates of all limits that hold for a request.
fn holding(settings: &Settings, method: &str, path: &str) -> Vec<String> {
    let mut sent = head::RequestHead::to(method.parse().expect("a method"), path).expect("a path");
    sent.set_host("localhost");
    let head = CanonicalHead::read(&sent, ClientIp::new(Ipv4Addr::LOCALHOST.into()));
    let mut readings = RequestReadings::new(&head, BodyMethods::Known(&[]), &|_| Membership::None);
    let routes = &settings.policy.routes;
    let on_routes = routes.walk(&mut readings).collected.into_iter().flat_map(|id| routes.get(id).limits.clone());
    let all = settings.policy.everywhere.iter().copied().chain(on_routes);
    let mut rates: Vec<String> = all
        .map(|id| match &settings.policy.limits[usize::from(id.0)].rule {
            Rule::Rates { rates, .. } => rates.to_string(),
            Rule::Concurrent(_) | Rule::Distinct(_) => String::new(),
        })
        .collect();
    rates.sort();
    rates
}

proptest! {
    #[test]
    fn every_limit_holds_for_each_request_that_it_matches(
        limits in prop::collection::vec("((GET|HEAD|POST|GET,POST) )?(/(a|B|\\{x\\}))(/(a|b|\\{y\\}))?(/\\*)?", 1..5),
        method in "GET|HEAD|POST|PUT",
        path in "(/[abc]){1,3}",
    ) {
        let texts: Vec<String> =
            limits.iter().enumerate().map(|(n, scope)| format!("{scope} client_ip {}/minute", n + 1)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let together = inline(&flags(&texts)).expect("good flags");
        let mut alone: Vec<String> = texts
            .iter()
            .flat_map(|text| holding(&inline(&flags(&[text])).expect("good flags"), &method, &path))
            .collect();
        alone.sort();
        prop_assert_eq!(holding(&together, &method, &path), alone);
    }
}
