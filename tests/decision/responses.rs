//! The response of a denial, and the upstream of a request that passes.

use http::StatusCode;
use portcullis::rules::limit::{Action, Limit, Then};
use portcullis::rules::route::UpstreamId;

use crate::support::{World, ask, limit, with_status, world};

#[track_caller]
fn check(of_limit: Option<u16>, of_route: Option<u16>, general: Option<u16>, expected: Option<u16>) {
    let mut world = world();
    let action = Action::Deny(of_limit.map(|status| Box::new(with_status(status))));
    let then = Then { action, notify: Vec::new() };
    let limits = vec![Limit { then, ..limit("pace", "", "1/hour") }];
    world.route("/login", limits).deny_response = of_route.map(|status| Box::new(with_status(status)));
    world.policy.deny_response.status = general.map(|status| StatusCode::from_u16(status).unwrap());
    assert!(world.passes(&ask("GET /login")));
    assert_eq!(world.decide(&ask("GET /login")).status.map(|status| status.as_u16()), expected);
}

#[test]
fn the_most_particular_deny_response_counts() {
    check(Some(418), Some(420), Some(503), Some(418));
    check(None, Some(420), Some(503), Some(420));
    check(None, None, Some(503), Some(503));
    check(None, None, None, None);
}

#[test]
fn the_deny_response_is_that_of_the_limit_that_decided() {
    let mut world = world();
    let with = |status| Then { action: Action::Deny(Some(Box::new(with_status(status)))), notify: Vec::new() };
    world.everywhere(Limit { then: with(418), ..limit("minute", "", "1/minute") });
    world.everywhere(Limit { then: with(420), ..limit("hour", "", "1/hour") });
    assert!(world.passes(&ask("GET /")));
    assert_eq!(world.decide(&ask("GET /")).status.map(|status| status.as_u16()), Some(420));
}

#[test]
fn a_request_goes_to_the_upstream_of_its_route_or_the_default() {
    let mut world: World = world();
    world.route("/a", vec![]);
    world.route("/b", vec![]);
    assert_eq!(world.decide(&ask("GET /b")).upstream, Some(UpstreamId(2)));
    let told = world.decide(&ask("GET /else"));
    assert_eq!((told.upstream, told.route, told.charges), (Some(UpstreamId(0)), None, 0));
}
