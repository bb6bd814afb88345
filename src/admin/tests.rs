use std::num::NonZeroU32;
use std::sync::Arc;

use arc_swap::access::Constant;
use axum::Router;
use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower::ServiceExt;

use super::auth::PathAccess;
use super::*;
use crate::admin::server::router;
use crate::record::{Gauges, Metrics, Sinks};
use crate::rules::client::Prefix;
use crate::rules::decision::Policy;
use crate::rules::decision::policy::Access;
use crate::rules::key::{KeyPart, KeySpec, Spelling};
use crate::rules::limit::{
    Algorithm, Count, DenyResponse, DescriptorFilter, Detail, Limit, LimitId, Missing, OnFailure, Rule, Then,
};
use crate::rules::route::{RouteTable, SessionCarriers, UpstreamId};
use crate::store::{AnyStore, MemoryStore, MovableStore, memory};
use crate::words::clock::{Clock, ManualClock, Timestamp};

#[tokio::test]
async fn the_gateway_is_ready_until_it_drains_and_healthy_throughout() {
    let state = state();
    let router = router(Arc::clone(&state));
    assert_eq!(ask(&router, "GET", "/healthz").await.0, StatusCode::OK);
    let (status, _, body) = ask(&router, "GET", "/readyz").await;
    assert_eq!((status, &*body), (StatusCode::OK, r#"{"status":"ready","store":{"kind":"memory","up":true}}"#));

    state.begin_draining();
    assert_eq!(ask(&router, "GET", "/healthz").await.0, StatusCode::OK);
    let (status, _, body) = ask(&router, "GET", "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("draining"), "{body}");
}

#[tokio::test]
async fn every_described_operation_answers_as_described_and_no_other_is_there() {
    let router = router(state());
    let document = json_of(&router, "GET", "/openapi.json").await;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let (status, _, body) = ask(&router, method, &path.replace("{name}", "gone").replace("{id}", "gone")).await;
            let operation = &operations[method.to_lowercase()];
            assert_eq!(status != StatusCode::METHOD_NOT_ALLOWED, operation.is_object(), "{method} {path}");
            if operation.is_object() {
                let access = PathAccess::of(&method.parse().unwrap(), path);
                assert_eq!(access != PathAccess::Api, operation["security"] == json!([]), "{path}");
                let summary = operation["summary"].as_str().unwrap();
                assert!(!summary.contains(['\n', '.']), "{method} {path}: {summary}");
                let responses = &operation["responses"];
                assert!(responses[status.as_str()].is_object(), "{method} {path} answers {status}: {body}");
                assert_eq!(responses["401"]["$ref"].is_string(), access == PathAccess::Api, "{method} {path}");
                assert_eq!(responses["403"]["$ref"].is_string(), access != PathAccess::Monitoring, "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn every_reference_of_the_description_has_a_target() {
    let document = json_of(&router(state()), "GET", "/openapi.json").await;
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        if let Some(reference) = value["$ref"].as_str() {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
        open.extend(value.as_object().into_iter().flat_map(|object| object.values()));
        open.extend(value.as_array().into_iter().flatten());
    }
}

#[tokio::test]
async fn a_hit_costs_what_it_says_and_takes_no_slot_for_long() {
    let router = router(state());
    let paced = json_of(&router, "POST", "/api/v1/limits/pace/hit?client_ip=10.0.0.1&cost=2").await;
    assert_eq!(paced["rates"][0]["remaining"], 0);
    for _ in 0..3 {
        let flight = json_of(&router, "POST", "/api/v1/limits/in%20flight/hit").await;
        assert_eq!((&flight["allowed"], &flight["rates"]), (&json!(true), &json!([])));
    }
    for (wrong, said) in [("0", "whole number"), ("x", "whole number"), ("1&cost=1", "several"), ("3", "a cost of 3")] {
        let (status, _, body) =
            ask(&router, "POST", &format!("/api/v1/limits/pace/hit?client_ip=10.0.0.1&cost={wrong}")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(body.contains(said), "{body}");
    }
}

#[tokio::test]
async fn an_unclear_query_is_a_problem_that_repeats_no_value() {
    let router = router(state());
    let problem = async |path: &str| {
        let (status, content_type, body) = ask(&router, "GET", &format!("/api/v1/limits/{path}")).await;
        assert_eq!(content_type, "application/problem+json");
        assert!(!body.contains("hunter2"), "{body}");
        (status.as_u16(), serde_json::from_str::<Value>(&body).unwrap()["detail"].as_str().unwrap().to_owned())
    };
    let (status, detail) = problem("pase/state").await;
    assert_eq!((status, &*detail), (404, "there is no limit of that name; did you mean `pace`?"));
    let (status, detail) = problem("account/state?client_ip=10.0.0.1&param.usrname=hunter2").await;
    assert_eq!(status, 400);
    assert!(detail.ends_with("did you mean `param.username`?"), "{detail}");
    let (status, detail) = problem("account/state?client_ip=hunter2&param.username=hunter2").await;
    assert_eq!((status, &*detail), (400, "`client_ip` needs one IP address, without a prefix and without a port"));
    assert_eq!(problem("account/state?param.username=hunter2").await.0, 400);
    assert_eq!(problem("%ff/state").await.0, 400);
}

fn state() -> Arc<AdminState> {
    let limit = |name: &str, key: &[&str], rule: Rule| Limit {
        name: name.into(),
        key: KeySpec {
            parts: key
                .iter()
                .map(|part| KeyPart { selector: part.parse().unwrap(), spelling: Spelling::Usual })
                .collect(),
            ..KeySpec::default()
        },
        missing: Missing::Count,
        rule,
        count: Count::Requests,
        distinct: None,
        reset_on: None,
        then: Then::default(),
        shadow: false,
        unless: Vec::new(),
        unless_known: false,
        descriptors: DescriptorFilter::default(),
        headers: Detail::Full,
        on_failure: OnFailure::Local,
        leases: true,
    };
    let rates = |text: &str| Rule::Rates {
        algorithm: Algorithm::SlidingWindowLog,
        rates: text.parse().unwrap(),
        cost: NonZeroU32::MIN,
    };
    let policy = Policy {
        lists: Vec::new(),
        access: Access::default(),
        client_prefix: Prefix::default(),
        limits: vec![
            limit("pace", &["client_ip"], rates("2/minute")),
            limit("account", &["client_ip", "param.username"], rates("10/hour")),
            limit("in flight", &[], Rule::Concurrent(NonZeroU32::MIN)),
        ],
        everywhere: vec![LimitId(0), LimitId(1), LimitId(2)],
        routes: RouteTable::default(),
        upstream: UpstreamId(0),
        deny_response: DenyResponse::default(),
        channels: Vec::new(),
        session_carriers: SessionCarriers::default(),
    };
    let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
    let sources = AdminSources {
        metrics: Arc::new(Metrics::new()),
        gauges: Box::new(|| Gauges { store: "memory", store_up: true, store_keys: 7, ..Gauges::default() }),
        policy: Box::new(Constant(policy)),
        store: Arc::new(AnyStore::Memory(Arc::new(MovableStore::from(MemoryStore::new(
            &memory::MemorySettings { max_keys: 100, max_sessions: 1000, snapshot: None },
            Clock::Manual(clock),
        ))))),
        event_bus: Arc::clone(Sinks::discard().event_bus()),
        config: LoadedConfig {
            yaml: "listen: 127.0.0.1:8080\n".to_owned(),
            json: "{\"listen\": \"127.0.0.1:8080\"}".to_owned(),
            source: "portcullis.yaml".to_owned(),
            loaded: Timestamp::EPOCH,
            warnings: Vec::new(),
            waiting: None,
        },
        // Its other end is gone, as in a gateway that ends.
        reload_requests: mpsc::channel(1).0,
        identity: GatewayIdentity::new(Arc::default(), Timestamp::EPOCH),
        kept_requests: Arc::default(),
        key_tables: Arc::default(),
        advisor: Arc::default(),
        attacks: Arc::default(),
    };
    AdminState::new(sources, AdminRules { token: None, on_failure: OnFailure::Local })
}

async fn json_of(router: &Router, method: &str, path: &str) -> Value {
    let (status, content_type, body) = ask(router, method, path).await;
    assert_eq!((status, &*content_type), (StatusCode::OK, "application/json"), "{body}");
    serde_json::from_str(&body).unwrap()
}

async fn ask(router: &Router, method: &str, path: &str) -> (StatusCode, String, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1:9090")
        .extension(auth::PeerAddress([127, 0, 0, 1].into()));
    let Ok(response) = router.clone().oneshot(request.body(Body::empty()).unwrap()).await;
    let status = response.status();
    let content_type = response.headers().get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap()).to_owned();
    if content_type == "text/event-stream" {
        // It does not end by itself.
        return (status, content_type, String::new());
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, content_type, String::from_utf8(body.to_vec()).unwrap())
}
