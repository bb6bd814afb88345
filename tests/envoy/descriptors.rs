//! Envoy asks with `ratelimit`, and calls that Envoy does not make.

use std::thread;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::UInt64Value;
use prost::Message;
use serde_json::{Value, json};

use crate::call::{Connection, framed};
use crate::rig::Rig;
use crate::support::{Gateway, Origin, Request, eventually, spellings};

const FILE: &str = "envoy-ratelimit.yaml";

/// Those that the file names, with another rate for all requests of an address.
const RULES: &str = "routes: [{name: edge, match: {domain: my-domain}, limits: [\
                     {name: address, key: descriptor.remote_address, entries: exact, rate: 100/minute}, \
                     {name: login, key: descriptor.remote_address, descriptor: {page: login}, rate: 5/minute}]}]";

#[test]
fn five_logins_a_minute_pass_and_the_sixth_is_told_when() {
    let rig = Rig::without_warming(FILE, Origin::start(), RULES);
    let login =
        || rig.request("POST", "/login").from("127.0.0.5").header("X-Forwarded-For", "9.9.9.9").form("a=1").send();
    eventually("Envoy asks", || rig.request("POST", "/login").from("127.0.0.99").status() == 200);
    for number in 0..5 {
        let passed = login();
        assert_eq!(passed.status, 200, "{number}");
        assert!(passed.header("ratelimit").is_some(), "{:?}", passed.headers);
    }
    let denied = login();
    let wait: u64 = denied.header("retry-after").and_then(|wait| wait.parse().ok()).expect("whole seconds");
    assert_eq!((denied.status, (1..=60).contains(&wait)), (429, true));
    assert_eq!(rig.request("POST", "/login").from("127.0.0.6").status(), 200, "another client");
    assert_eq!(rig.request("GET", "/other").from("127.0.0.5").status(), 200, "another page");
    let statuses: Vec<u16> = (0..100).map(|_| rig.request("GET", "/other").from("127.0.0.7").status()).collect();
    assert_eq!(statuses, [200; 100]);
    assert_eq!(rig.request("PUT", "/any").from("127.0.0.7").status(), 429, "every request of an address counts");
}

#[test]
fn of_sixty_four_at_once_five_pass_and_without_the_gateway_none() {
    let mut rig = Rig::without_warming(FILE, Origin::start(), RULES);
    eventually("Envoy asks", || rig.request("POST", "/login").from("127.0.0.99").status() == 200);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let ask = || rig.request("POST", "/login").from("127.0.0.5").form("a=1").status();
        let asking: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|asked| asked.join().expect("an answer")).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 5, "{statuses:?}");
    rig.gateway.kill();
    let before = rig.reached("/login");
    eventually("nothing passes", || rig.request("POST", "/login").from("127.0.0.7").status() == 503);
    assert_eq!(rig.reached("/login"), before);
}

/// However a login is spelled, and whatever method it names, it meets the limit of the login.
#[test]
fn no_spelling_of_the_login_escapes_its_limit() {
    let rules = RULES.replace("100/minute", "100000/minute").replace("5/minute", "1/hour").replace(
        "routes: [",
        "routes: [{name: login, match: /login, limits: [{name: seen, key: [], headers: full, rate: 1000000/hour}]}, ",
    );
    let rig = Rig::without_warming(FILE, Origin::start(), &rules);
    eventually("Envoy asks", || rig.request("POST", "/login").from("127.0.0.99").status() == 200);
    let client = "127.0.0.5";
    assert_eq!(rig.request("POST", "/login").from(client).status(), 200);
    let before = rig.origin.count();
    for target in ["/login", "/login/", "//login", "/%6cogin", "/Login", "/login;x", "/x/../login", "/index.php/login"]
    {
        assert_eq!(rig.request("POST", target).from(client).status(), 429, "{target}");
        let get = rig.request("GET", target).from(client).header("X-HTTP-Method-Override", "POST");
        assert_eq!(get.status(), 429, "{target}");
    }
    assert_eq!(rig.origin.count(), before);
    for target in spellings("/login") {
        rig.request("POST", &target).from(client).header("X-Target", &target).send();
    }
    // What passes is no login as portcullis reads it.
    for received in &rig.origin.requests()[before..] {
        let question = Request::new(rig.gateway.address(), "GET", "/auth/nginx").header("X-Original-Method", "POST");
        let read = question.header("X-Original-URI", &received.target).send();
        let spelled = received.header("x-target");
        assert_eq!(read.header("ratelimit-policy"), None, "{spelled:?} passes as {}", received.target);
    }
}

const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

fn descriptor(name: &str, hits: Option<u64>) -> RateLimitDescriptor {
    let entry = Entry { key: "user".to_owned(), value: name.to_owned() };
    let hits_addend = hits.map(|value| UInt64Value { value });
    RateLimitDescriptor { entries: vec![entry], hits_addend, ..RateLimitDescriptor::default() }
}

#[test]
fn the_descriptors_of_a_call_pass_together_or_not_at_all() {
    let gateway = Gateway::start(
        "listen: {address: 127.0.0.1:0, serves: decisions}\nupstream: http://127.0.0.1:1\nroutes: \
         [{name: users, match: {domain: d}, limits: [{name: two, key: descriptor.user, rate: 2/hour}]}]",
    );
    let connection = Connection::open(gateway.address());
    let ask = |domain: &str, descriptors: &[RateLimitDescriptor], hits_addend: u32| -> (i32, Vec<(i32, u32)>) {
        let question = RateLimitRequest { domain: domain.to_owned(), descriptors: descriptors.to_vec(), hits_addend };
        let reply: RateLimitResponse = connection.call(METHOD, &framed(&question.encode_to_vec())).decoded();
        (reply.overall_code, reply.statuses.iter().map(|status| (status.code, status.limit_remaining)).collect())
    };
    assert_eq!(ask("d", &[descriptor("a", None)], 2), (1, vec![(1, 0)]));
    let (overall, statuses) = ask("d", &[descriptor("a", None), descriptor("b", None)], 0);
    assert_eq!((overall, statuses[0].0), (2, 2));
    assert_eq!(ask("d", &[descriptor("b", Some(0))], 1), (1, vec![(1, 2)]), "b was not charged");
    assert_eq!(ask("d", &[descriptor("a", Some(0))], 1).0, 2, "an exhausted limit is over without hits");
    assert_eq!(ask("unknown", &[descriptor("a", None)], 1).0, 1);
}

#[test]
fn of_a_call_that_the_configuration_denies_the_route_is_told_and_no_list() {
    let gateway = Gateway::start(
        "listen: {address: 127.0.0.1:0, serves: decisions}\nadmin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\nroutes: \
         [{name: users, match: {domain: d}, deny: [{descriptor: {user: mallory}}], limits: \
         [{name: two, key: descriptor.user, rate: 2/hour}]}]",
    );
    let descriptors = vec![descriptor("mallory", None)];
    let question = RateLimitRequest { domain: "d".to_owned(), descriptors, hits_addend: 0 };
    let reply: RateLimitResponse =
        Connection::open(gateway.address()).call(METHOD, &framed(&question.encode_to_vec())).decoded();
    assert_eq!(reply.overall_code, 2);
    let line = gateway.log_line("");
    let told = [&line["decision"], &line["route"], &line["limit"], &line["list"], &line["status"]];
    assert_eq!(told, [&json!("denied"), &json!("users"), &Value::Null, &Value::Null, &json!(429)], "{line}");
    let target = format!("/api/v1/requests/{}", line["request_id"].as_str().expect("an id"));
    let story = gateway.admin_request("GET", &target).send().json();
    let told = [&story["decision"], &story["route"], &story["limit"], &story["list"], &story["limits"]];
    assert_eq!(told, [&json!("denied"), &json!("users"), &Value::Null, &Value::Null, &json!([])], "{story}");
    let sentence = story["sentence"].as_str().expect("a sentence");
    let reason = ": the route users denies such descriptors by its configuration, whatever was counted.";
    assert!(sentence.ends_with(reason), "{sentence}");
}

#[test]
fn under_a_ban_the_limit_is_told_too() {
    let gateway = Gateway::start(
        "listen: {address: 127.0.0.1:0, serves: decisions}\nupstream: http://127.0.0.1:1\nroutes: [{name: users, match: \
         {domain: d}, limits: [{name: one, key: descriptor.user, rate: 1/hour, then: {ban: 2h}}]}]",
    );
    let connection = Connection::open(gateway.address());
    let question =
        RateLimitRequest { domain: "d".to_owned(), descriptors: vec![descriptor("a", None)], hits_addend: 1 };
    // The second one trips the ban, under which the others are.
    for code in [1, 2, 2, 2] {
        let reply: RateLimitResponse = connection.call(METHOD, &framed(&question.encode_to_vec())).decoded();
        let status = &reply.statuses[0];
        let limit = status.current_limit.as_ref().expect("a limit");
        let told = (status.code, &*limit.name, limit.requests_per_unit, limit.unit(), status.limit_remaining);
        assert_eq!(told, (code, "one", 1, Unit::Hour, 0));
        let reset = status.duration_until_reset.as_ref().map_or(0, |reset| reset.seconds);
        assert_eq!(reset > 3600, code == 2, "{status:?}");
    }
}

#[test]
fn hits_are_not_given_back() {
    let gateway = Gateway::start(
        "listen: {address: 127.0.0.1:0, serves: decisions}\nupstream: http://127.0.0.1:1\nroutes: \
         [{name: users, match: {domain: d}, limits: [{name: two, key: descriptor.user, rate: 2/hour}]}]",
    );
    let negative = RateLimitDescriptor { is_negative_hits: true, ..descriptor("a", Some(1)) };
    let question = RateLimitRequest { domain: "d".to_owned(), descriptors: vec![negative], hits_addend: 0 };
    let called = Connection::open(gateway.address()).call(METHOD, &framed(&question.encode_to_vec()));
    assert_eq!(called.status, Some(3), "{}", called.message);
    assert!(called.message.contains("is_negative_hits"), "{}", called.message);
}
