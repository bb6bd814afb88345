//! `grpc.health.v1.Health` says what `/readyz` says.

use std::sync::mpsc::Receiver;

use prost::Message;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::call::{Connection, PATIENCE, framed};
use crate::support::Gateway;

const CHECK: &str = "/grpc.health.v1.Health/Check";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

const CONFIG: &str = "listen: {address: 127.0.0.1:0, serves: decisions}\nadmin: {address: 127.0.0.1:0}\n\
                      upstream: http://127.0.0.1:1\n";

fn question(service: &str) -> Vec<u8> {
    framed(&HealthCheckRequest { service: service.to_owned() }.encode_to_vec())
}

/// What a check says of the whole server.
fn checked(gateway: &Gateway) -> ServingStatus {
    Connection::open(gateway.address()).call(CHECK, &question("")).decoded::<HealthCheckResponse>().status()
}

/// The next status that a watch tells; `None`: it has ended.
fn told(watch: &Receiver<Vec<u8>>) -> Option<ServingStatus> {
    match watch.recv_timeout(PATIENCE) {
        Ok(message) => Some(HealthCheckResponse::decode(&message[..]).expect("a status").status()),
        Err(ended) => {
            assert_eq!(ended, std::sync::mpsc::RecvTimeoutError::Disconnected, "it tells nothing");
            None
        }
    }
}

#[test]
fn each_service_is_served_and_no_other() {
    let gateway = Gateway::start(CONFIG);
    let connection = Connection::open(gateway.address());
    for service in [
        "",
        "envoy.service.auth.v3.Authorization",
        "envoy.service.ext_proc.v3.ExternalProcessor",
        "envoy.service.ratelimit.v3.RateLimitService",
        "grpc.health.v1.Health",
    ] {
        let answer: HealthCheckResponse = connection.call(CHECK, &question(service)).decoded();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let unknown = connection.call(CHECK, &question("no.such.Service"));
    assert_eq!(unknown.status, Some(5), "{unknown:?}");
    assert_eq!(told(&connection.stream(WATCH, &question("no.such.Service"))), Some(ServingStatus::ServiceUnknown));
}

#[test]
fn a_watch_tells_that_the_gateway_drains_and_does_not_hold_it_up() {
    let mut gateway = Gateway::start(format!("{CONFIG}server: {{timeouts: {{lame_duck: 3s}}}}"));
    let connection = Connection::open(gateway.address());
    let watch = connection.stream(WATCH, &question(""));
    assert_eq!(told(&watch), Some(ServingStatus::Serving));
    gateway.signal("TERM");
    assert_eq!(told(&watch), Some(ServingStatus::NotServing));
    assert_eq!(checked(&gateway), ServingStatus::NotServing, "as long as it accepts connections");
    assert_eq!(told(&watch), None);
    drop(connection);
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn a_watch_ends_with_its_listener() {
    let gateway = Gateway::start(CONFIG);
    let connection = Connection::open(gateway.address());
    let watch = connection.stream(WATCH, &question(""));
    assert_eq!(told(&watch), Some(ServingStatus::Serving));
    gateway.reload(CONFIG.replace("127.0.0.1:0, serves", "'[::1]:0', serves"));
    assert_eq!(told(&watch), None);
}

#[test]
fn without_its_store_a_gateway_that_denies_meanwhile_does_not_serve() {
    for (on_failure, expected) in [("deny", ServingStatus::NotServing), ("local", ServingStatus::Serving)] {
        let store = format!("store: {{redis: {{url: redis://127.0.0.1:1}}, on_failure: {on_failure}}}");
        let limits = "limits: [{name: all, key: client_ip, rate: 100/second}]";
        let gateway = Gateway::start(format!("{CONFIG}{store}\n{limits}\n"));
        let ready = gateway.admin_request("GET", "/readyz").status();
        assert_eq!((checked(&gateway), ready == 200), (expected, expected == ServingStatus::Serving), "{on_failure}");
    }
}
