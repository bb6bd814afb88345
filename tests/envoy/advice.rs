//! What the gateway finds misconfigured in domains.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use prost::Message;
use serde_json::Value;

use crate::call::{Connection, framed};
use crate::support::{Gateway, eventually};

const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// A gateway with these limits on the route `logins` of the domain `shop`.
fn gateway(limits: &str) -> Gateway {
    Gateway::start(format!(
        "listen: {{address: 127.0.0.1:0, serves: decisions}}\nadmin: {{address: 127.0.0.1:0}}\nroutes:\n  - name: logins\n    \
         match: {{domain: shop}}\n{limits}"
    ))
}

fn call(connection: &Connection, domain: &str) {
    let entry = Entry { key: "user".to_owned(), value: "alice".to_owned() };
    let descriptor = RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
    let question = RateLimitRequest { domain: domain.to_owned(), descriptors: vec![descriptor], hits_addend: 0 };
    let called = connection.call(METHOD, &framed(&question.encode_to_vec()));
    assert_eq!(called.status, Some(0), "{}", called.message);
}

/// What the first judgement saw is no part of the thousand.
fn call_until_advised(gateway: &Gateway, connection: &Connection, domain: &str) {
    eventually("a limit that counted nothing is named", || {
        for _ in 0..100 {
            call(connection, domain);
        }
        !advice(gateway, "limit_never_counted").is_empty()
    });
}

fn advice(gateway: &Gateway, kind: &str) -> Vec<Value> {
    let all = gateway.admin_request("GET", "/api/v1/advice").send().json();
    all.as_array().expect("a list").iter().filter(|advice| advice["kind"] == kind).cloned().collect()
}

#[test]
fn a_key_that_no_descriptor_has_is_named_and_a_limit_that_chooses_among_values_is_not() {
    let gateway = gateway(
        "    limits:\n      - {name: right, key: descriptor.user, rate: 100000/hour}\n      \
         - {name: misspelt, key: descriptor.usr, rate: 100000/hour}\n      \
         - {name: rare, key: descriptor.user, descriptor: {user: root}, rate: 100000/hour}\n      \
         - {name: spared, key: descriptor.user, except: {user: [alice]}, rate: 100000/hour}\n",
    );
    let connection = Connection::open(gateway.address());
    call_until_advised(&gateway, &connection, "shop");
    let [advice] = &advice(&gateway, "limit_never_counted")[..] else { panic!("one advice") };
    assert_eq!(advice["limit"], "misspelt");
    let text = |name: &str| advice[name].as_str().unwrap_or_default().to_owned();
    assert!(text("message").contains("calls of shop has all parts of its key (descriptor.usr)"), "{advice}");
    assert!(text("help").contains("`key: descriptor.NAME`"), "{advice}");
}

#[test]
fn a_route_that_waits_for_answers_is_named_once_a_call_has_asked() {
    let gateway = gateway(
        "    outcome: {failure: {status: 401}}\n    limits:\n      \
         - {name: failures, key: descriptor.user, rate: 9/hour, count: failures}\n      \
         - {name: few, key: descriptor.user, concurrent: 1}\nlimits: [{name: everywhere, key: client_ip, concurrent: 9}]\n",
    );
    assert_eq!(advice(&gateway, "answers_unseen"), Vec::<Value>::new());
    let connection = Connection::open(gateway.address());
    call(&connection, "shopp");
    call(&connection, "shop");
    eventually("it is named", || !advice(&gateway, "answers_unseen").is_empty());
    let [advice] = &advice(&gateway, "answers_unseen")[..] else { panic!("one advice") };
    assert_eq!(advice["route"], "logins");
    let expected = "failures counts every request as if its answer never came, few is left out";
    assert!(advice["message"].as_str().is_some_and(|message| message.ends_with(expected)), "{advice}");
    let logged =
        || gateway.log_messages().iter().filter(|line| line.contains("asks about descriptors of logins")).count();
    eventually("it is logged", || logged() > 0);
    assert_eq!(logged(), 1);
}
