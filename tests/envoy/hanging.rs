//! An Envoy that hangs over a request, and one whose application takes long.

use std::thread;
use std::time::Duration;

use envoy_types::pb::envoy::service::ext_proc::v3::ProcessingResponse;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response;
use prost::Message;

use crate::call::Connection;
use crate::mistakes::process;
use crate::rig::Rig;
use crate::support::{Exchange, Origin, eventually};

const PROCESS: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";

/// After at most three seconds, an Envoy that says nothing is no more waited for.
const RULES: &str = "server: {timeouts: {keepalive: 1s, body_idle: 1s}}\n\
                     routes: [{match: /report, limits: [{name: one, key: client_ip, concurrent: 1}]}]";

/// An application that does this before it answers with the report.
fn application(before: impl Fn(&mut Exchange) + Send + Sync + 'static) -> Origin {
    Origin::scripted(move |mut exchange| {
        while let Some(received) = exchange.request() {
            if received.target == "/report" {
                before(&mut exchange);
            }
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    })
}

#[test]
fn an_envoy_that_hangs_gives_its_slots_back() {
    let rig = Rig::new("envoy-ext-proc.yaml", application(|exchange| assert!(exchange.client_has_left())), RULES);
    let report = rig.request("GET", "/report").from("127.0.0.5");
    let mut client = report.connect();
    client.send(report.bytes());
    eventually("the application has it", || rig.reached("/report") == 1);
    assert_eq!(report.status(), 429);
    rig.envoy.pause();
    let line = rig.gateway.log_line_where(|line| line["path"] == "/report" && line["decision"] == "allowed");
    assert_eq!(line["status"], serde_json::Value::Null, "{line}");
    let [method, path, host, client] =
        [(":method", "GET"), (":path", "/report"), (":authority", "a"), ("x-forwarded-for", "127.0.0.5")];
    let asked = Connection::open(rig.gateway.address()).call(PROCESS, &process(&[method, path, host, client]));
    let reply = ProcessingResponse::decode(&asked.body[5..]).expect("a reply");
    assert!(matches!(reply.response, Some(Response::RequestHeaders(_))), "{reply:?}");
}

#[test]
fn an_envoy_whose_application_takes_long_is_waited_for() {
    let rig = Rig::new("envoy-ext-proc.yaml", application(|_| thread::sleep(Duration::from_secs(5))), RULES);
    assert_eq!(rig.request("GET", "/report").from("127.0.0.5").status(), 200);
    let line = rig.gateway.log_line("/report");
    assert_eq!((&line["decision"], &line["status"]), (&"allowed".into(), &200.into()), "{line}");
}
