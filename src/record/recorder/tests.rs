use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use http::{Method, StatusCode, Version};

use super::*;
use crate::record::metrics::Exposition;
use crate::record::{Gauges, ObservedOutcome, UpstreamRecord};
use crate::rules::client::{ClientIp, Identity, Prefix};
use crate::rules::decision::policy::Access;
use crate::rules::decision::{FoundKey, LimitReport};
use crate::rules::key::KeySpec;
use crate::rules::limit::{
    ActionSeverity, Count, DenyResponse, DescriptorFilter, Detail, Limit, LimitId, Missing, Rule, Then,
};
use crate::rules::route::{Condition, Route, RouteTable, SessionCarriers};

#[test]
fn a_request_is_counted_under_the_names_of_the_configuration() {
    let sinks = Sinks::discard();
    let recorder = recorder(&sinks);
    let limits = [report(false, true), report(true, true), report(true, false)];
    let denied =
        RequestRecord { route: Some(RouteId(0)), decision: DecisionLabel::Denied, limits: &limits, ..request() };
    recorder.record(&RequestRecord { status: Some(StatusCode::TOO_MANY_REQUESTS), ..denied });
    recorder.record(&request());

    let text = exposition(&sinks);
    has(&text, "portcullis_requests_total{route=\"login\",decision=\"denied\",status=\"4xx\"} 1");
    has(&text, "portcullis_requests_total{route=\"none\",decision=\"allowed\",status=\"2xx\"} 1");
    has(&text, "portcullis_limit_decisions_total{limit=\"login-pace\",decision=\"denied\"} 1");
    has(&text, "portcullis_limit_decisions_total{limit=\"login-pace\",decision=\"shadow_denied\"} 1");
    has(&text, "portcullis_limit_decisions_total{limit=\"login-pace\",decision=\"shadow_allowed\"} 1");
    has(&text, "portcullis_request_duration_seconds_count{route=\"login\"} 1");
    has(&text, "portcullis_decision_duration_seconds_count{route=\"login\"} 0");
}

#[test]
fn a_server_that_did_not_answer_is_counted_by_cause() {
    let sinks = Sinks::discard();
    let sent = UpstreamRecord {
        id: UpstreamId(0),
        server: Some("10.0.1.5:8000"),
        failure: None,
        request_id: None,
        previous_attempts: &[],
    };
    let recorder = recorder(&sinks);
    recorder.record(&RequestRecord { upstream: Some(sent), ..request() });
    recorder
        .record(&RequestRecord { upstream: Some(UpstreamRecord { failure: Some("timeout"), ..sent }), ..request() });
    let previous_attempts = [("10.0.1.6:8000".into(), "connect")];
    recorder.record(&RequestRecord {
        upstream: Some(UpstreamRecord { previous_attempts: &previous_attempts, ..sent }),
        ..request()
    });

    let text = exposition(&sinks);
    has(&text, "portcullis_upstream_requests_total{upstream=\"app\",server=\"10.0.1.5:8000\"} 3");
    has(&text, "portcullis_upstream_errors_total{upstream=\"app\",server=\"10.0.1.5:8000\",cause=\"timeout\"} 1");
    has(&text, "portcullis_upstream_errors_total{upstream=\"app\",server=\"10.0.1.6:8000\",cause=\"connect\"} 1");
}

#[test]
fn counters_go_on_after_a_reload() {
    let sinks = Sinks::discard();
    recorder(&sinks).record(&request());
    recorder(&sinks).record(&request());
    has(&exposition(&sinks), "portcullis_requests_total{route=\"none\",decision=\"allowed\",status=\"2xx\"} 2");
}

#[test]
fn a_client_that_left_before_the_answer_has_no_status() {
    let sinks = Sinks::discard();
    recorder(&sinks).record(&RequestRecord { status: None, ..request() });
    has(&exposition(&sinks), "portcullis_requests_total{route=\"none\",decision=\"allowed\",status=\"none\"} 1");
}

#[test]
fn routes_beyond_the_bound_are_counted_together() {
    let sinks = Sinks::discard();
    let [all, first, none] = [RouteSeries::All, RouteSeries::First(1), RouteSeries::First(0)].map(|series| {
        let policy = policy(&["login", "search", "feed"]);
        Recorder::new(&sinks, &LogSettings::default(), &policy, []).with_route_series(&policy, series)
    });
    let outcome = Some(ObservedOutcome::Unknown);
    let record = |recorder: &Recorder| {
        for route in [None, Some(RouteId(0)), Some(RouteId(1)), Some(RouteId(2))] {
            recorder.record(&RequestRecord { route, outcome, ..request() });
        }
        let gauges = Gauges { routes: Arc::clone(recorder.shown_routes()), ..Gauges::default() };
        sinks.metrics().expose(gauges, Exposition::Prometheus)
    };
    let requests = |route: &str, count: u32| {
        format!("portcullis_requests_total{{route=\"{route}\",decision=\"allowed\",status=\"2xx\"}} {count}")
    };
    let text = record(&first);
    for line in [
        requests("none", 1),
        requests("login", 1),
        requests("other", 2),
        "portcullis_outcomes_total{route=\"other\",outcome=\"unknown\"} 2".into(),
        "portcullis_request_duration_seconds_count{route=\"other\"} 2".into(),
    ] {
        has(&text, &line);
    }
    assert!(!text.contains("search") && !text.contains("feed"), "{text}");
    // The history and advice know each route all the same, and a reload shows what was counted meanwhile.
    let text = record(&all);
    has(&text, &requests("search", 2));
    has(&text, &requests("other", 2));
    let text = record(&none);
    has(&text, &requests("none", 3));
    has(&text, &requests("other", 5));
    assert!(!text.contains("login") && !text.contains("search"), "{text}");
    assert_eq!(sinks.metrics().history().totals().passed, 12);
    assert_eq!(sinks.metrics().history().totals().route("search"), 3);
    assert_eq!(sinks.metrics().outcomes_so_far("search", "unknown"), 3);
}

#[test]
fn a_route_that_nobody_asks_for_has_no_series() {
    let sinks = Sinks::discard();
    let policy = policy(&["login", "search"]);
    let recorder = Recorder::new(&sinks, &LogSettings::default(), &policy, []);
    recorder.record(&RequestRecord { route: Some(RouteId(1)), ..request() });
    let text = exposition(&sinks);
    assert!(text.contains("search") && !text.contains("login"), "{text}");
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|found| found == line), "no line `{line}` in\n{text}");
}

fn exposition(sinks: &Sinks) -> String {
    sinks.metrics().expose(Gauges { store: "memory", ..Gauges::default() }, Exposition::Prometheus)
}

fn recorder(sinks: &Sinks) -> Recorder {
    let limit = Limit {
        name: "login-pace".into(),
        key: KeySpec::default(),
        missing: Missing::Count,
        rule: Rule::Concurrent(NonZeroU32::MIN),
        count: Count::Requests,
        distinct: None,
        reset_on: None,
        then: Then::default(),
        shadow: false,
        unless: Vec::new(),
        unless_known: false,
        descriptors: DescriptorFilter::default(),
        headers: Detail::Full,
        on_failure: crate::rules::limit::OnFailure::Local,
        leases: true,
    };
    let mut policy = policy(&["login"]);
    policy.limits.push(limit);
    let names = ServerNames { upstream: "app".into(), servers: vec!["10.0.1.5:8000".into()] };
    Recorder::new(sinks, &LogSettings::default(), &policy, [names])
}

/// Routes of these names.
fn policy(names: &[&str]) -> Policy {
    let route = |name: &&str| Route {
        name: Arc::from(*name),
        condition: Condition::default(),
        domain: None,
        upstream: UpstreamId(0),
        only: None,
        limits: Vec::new(),
        outcome: None,
        known_clients: None,
        sessions: None,
        deny_response: None,
        denied: Vec::new(),
    };
    Policy {
        lists: Vec::new(),
        access: Access::default(),
        client_prefix: Prefix::default(),
        limits: Vec::new(),
        everywhere: Vec::new(),
        routes: RouteTable::new(names.iter().map(route).collect()),
        upstream: UpstreamId(0),
        deny_response: DenyResponse::default(),
        channels: Vec::new(),
        session_carriers: SessionCarriers::default(),
    }
}

fn request() -> RequestRecord<'static> {
    let client = ClientIp::new(IpAddr::from([198, 51, 100, 7]));
    RequestRecord {
        request_id: "01J",
        identity: Identity { peer: client, peer_is_trusted: false, client },
        method: &Method::GET,
        host: "example.com",
        path: "/",
        query: None,
        version: Some(Version::HTTP_11),
        scheme: "https",
        user_agent: None,
        trace: None,
        route: None,
        decision: DecisionLabel::Allowed,
        limit: None,
        list: None,
        ban: None,
        limits: &[],
        unread: None,
        retry_after: None,
        status: Some(StatusCode::OK),
        outcome: None,
        upstream: None,
        error: None,
        duration: Duration::from_millis(1),
        decision_duration: None,
        bytes_in: 0,
        bytes_out: 0,
        applied_limit: None,
        keys: &[],
        sign_in: None,
    }
}

fn report(shadow: bool, denied: bool) -> LimitReport {
    LimitReport {
        limit: LimitId(0),
        shadow,
        applied: denied.then_some(ActionSeverity::Deny),
        is_shown: false,
        found: FoundKey::Whole,
    }
}
