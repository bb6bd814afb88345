//! OpenTelemetry spans, as a collector gets them over OTLP/HTTP.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use prost::Message;

use crate::support::{Answer, Gateway, Origin, Request, eventually};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn traced(origin: &Origin, collector: &Origin, sample: &str) -> String {
    format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: app\nupstreams: {{app: {{servers: [{}]}}}}\n\
         tracing: {{otlp: \"{}\", sample: {sample}}}\nroutes:\n  - name: login\n    match: /login\n    \
         limits: [{{name: pace, key: client_ip, rate: 1/hour}}]\n",
        origin.url(),
        collector.url()
    )
}

fn collector() -> Origin {
    Origin::answering(|_| Answer::new(200, &[("Content-Type", "application/x-protobuf")], ""))
}

/// All spans that came, and the resources that they came from.
fn received(collector: &Origin) -> (Vec<Span>, Vec<KeyValue>) {
    let (mut spans, mut resources) = (Vec::new(), Vec::new());
    for request in collector.requests() {
        assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/v1/traces"));
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        let decoded = ExportTraceServiceRequest::decode(&request.body[..]).expect("OTLP");
        for resource in decoded.resource_spans {
            resources.extend(resource.resource.expect("a resource").attributes);
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    (spans, resources)
}

/// The spans of the collector once there are so many.
#[track_caller]
fn spans(collector: &Origin, count: usize) -> Vec<Span> {
    eventually("the spans come", || received(collector).0.len() >= count);
    let spans = received(collector).0;
    assert_eq!(spans.len(), count, "{spans:?}");
    spans
}

fn of_kind(spans: &[Span], kind: SpanKind) -> &Span {
    spans.iter().find(|span| span.kind() == kind).unwrap_or_else(|| panic!("{kind:?} in {spans:?}"))
}

fn attributes(list: &[KeyValue]) -> BTreeMap<&str, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    };
    list.iter().map(|attribute| (attribute.key.as_str(), text(attribute))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The trace, the span and the flags of the `traceparent` that the application got last.
fn continued(origin: &Origin) -> (String, String, String) {
    let field = origin.last().header("traceparent").expect("a trace").to_owned();
    let parts: Vec<&str> = field.split('-').collect();
    (parts[1].to_owned(), parts[2].to_owned(), parts[3].to_owned())
}

#[test]
fn a_request_its_decision_and_its_exchange_with_the_application_are_spans() {
    let (origin, collector) = (Origin::start(), collector());
    let gateway = Gateway::start(traced(&origin, &collector, "1"));
    let ask = gateway.post("/login?token=hunter2").host("app.example:8080").header("User-Agent", "curl/8");
    assert_eq!(ask.header("Authorization", "Bearer hunter2").form("password=hunter2").status(), 200);
    let (trace, sent, flags) = continued(&origin);
    let spans = spans(&collector, 3);
    let request = of_kind(&spans, SpanKind::Server);
    let (decision, upstream) = (of_kind(&spans, SpanKind::Internal), of_kind(&spans, SpanKind::Client));

    assert_eq!(
        (request.name.as_str(), decision.name.as_str(), upstream.name.as_str()),
        ("POST login", "decide", "POST")
    );
    assert!(spans.iter().all(|span| hex(&span.trace_id) == trace), "{spans:?}");
    assert_eq!((request.parent_span_id.as_slice(), flags.as_str()), (&[][..], "01"));
    assert_eq!((&decision.parent_span_id, &upstream.parent_span_id), (&request.span_id, &request.span_id));
    assert_eq!(hex(&upstream.span_id), sent, "the application continues below the span that was sent to it");
    for span in &spans {
        assert!(request.start_time_unix_nano <= span.start_time_unix_nano, "{spans:?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{spans:?}");
        assert!(span.end_time_unix_nano <= request.end_time_unix_nano, "{spans:?}");
    }
    assert!(decision.end_time_unix_nano <= upstream.start_time_unix_nano, "{spans:?}");

    let (of_request, of_upstream) = (attributes(&request.attributes), attributes(&upstream.attributes));
    for (name, value) in [
        ("http.request.method", "POST"),
        ("url.path", "/login"),
        ("url.scheme", "http"),
        ("server.address", "app.example"),
        ("server.port", "8080"),
        ("client.address", "127.0.0.1"),
        ("network.protocol.version", "1.1"),
        ("user_agent.original", "curl/8"),
        ("http.response.status_code", "200"),
        ("portcullis.route", "login"),
        ("portcullis.decision", "allowed"),
    ] {
        assert_eq!(of_request.get(name).map(String::as_str), Some(value), "{name} in {of_request:?}");
    }
    assert_eq!(of_upstream["url.full"], format!("{}/login", origin.url()));
    assert_eq!(of_upstream["server.port"], origin.address().port().to_string());
    assert_eq!((&*of_upstream["portcullis.upstream"], &*of_upstream["http.response.status_code"]), ("app", "200"));
    assert_eq!(attributes(&decision.attributes)["portcullis.limits"], "1");
    assert_eq!(attributes(&received(&collector).1)["service.name"], "portcullis");
    let line = gateway.log_line("/login");
    assert_eq!(line["trace_id"], trace);
    assert_eq!(line["request_id"], of_request["portcullis.request_id"]);
    for request in collector.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains("hunter2"), "a secret was sent");
    }
}

#[test]
fn a_denied_request_has_no_span_of_an_application() {
    let (origin, collector) = (Origin::start(), collector());
    let gateway = Gateway::start(traced(&origin, &collector, "1"));
    assert_eq!((gateway.get("/login").status(), gateway.get("/login").status()), (200, 429));
    let spans = spans(&collector, 5);
    let denied: Vec<_> = spans.iter().map(|span| attributes(&span.attributes)).collect();
    let denied = denied.iter().filter(|it| it.get("portcullis.decision").is_some_and(|it| it == "denied"));
    let denied: Vec<_> = denied.collect();
    assert_eq!(denied.len(), 2, "{spans:?}");
    assert!(denied.iter().any(|it| it.get("http.response.status_code").is_some_and(|status| status == "429")));
    assert!(denied.iter().any(|it| it.get("portcullis.limit").is_some_and(|limit| limit == "pace")));
}

#[test]
fn an_application_that_does_not_answer_is_an_error() {
    let (origin, collector) = (Origin::answering(|_| Answer::silence().closing()), collector());
    let gateway = Gateway::start(traced(&origin, &collector, "1"));
    assert_eq!(gateway.post("/other").status(), 502);
    let spans = spans(&collector, 3);
    for kind in [SpanKind::Server, SpanKind::Client] {
        let span = of_kind(&spans, kind);
        assert_eq!(span.status.as_ref().map(Status::code), Some(StatusCode::Error), "{span:?}");
        let attributes = attributes(&span.attributes);
        assert_eq!(attributes["error.type"] == "502", kind == SpanKind::Server, "{attributes:?}");
    }
}

#[test]
fn the_flag_of_the_client_decides_and_the_trace_goes_on() {
    let (origin, collector) = (Origin::start(), collector());
    let gateway = Gateway::start(traced(&origin, &collector, "0"));
    let ask = |flags: &str| {
        let field = format!("00-{TRACE}-{PARENT}-{flags}");
        let asked = gateway.get("/a").header("traceparent", &field).header("tracestate", "vendor=1");
        assert_eq!(asked.status(), 200);
        field
    };
    let field = ask("00");
    assert_eq!(origin.last().header("traceparent"), Some(&*field), "passed on as it came");
    assert_eq!(gateway.get("/b").status(), 200);
    assert_eq!(origin.last().header("traceparent"), None, "no trace is begun");

    ask("01");
    let (trace, sent, flags) = continued(&origin);
    assert_eq!((&*trace, &*flags, origin.last().header("tracestate")), (TRACE, "01", Some("vendor=1")));
    let spans = spans(&collector, 3);
    let request = of_kind(&spans, SpanKind::Server);
    assert_eq!((hex(&request.trace_id), hex(&request.parent_span_id)), (TRACE.to_owned(), PARENT.to_owned()));
    assert_eq!(hex(&of_kind(&spans, SpanKind::Client).span_id), sent);
}

#[test]
fn spans_that_wait_are_sent_when_the_gateway_stops() {
    let (origin, collector) = (Origin::start(), collector());
    let mut gateway = Gateway::start(traced(&origin, &collector, "1"));
    for _ in 0..20 {
        assert_eq!(gateway.get("/a").status(), 200);
    }
    gateway.signal("TERM");
    assert!(gateway.ended().success());
    assert_eq!(received(&collector).0.len(), 60);
}

#[test]
fn spans_that_no_collector_takes_are_counted_and_no_request_waits() {
    let (origin, refusing) = (Origin::start(), Origin::answering(|_| Answer::new(400, &[], "no")));
    let gateway = Gateway::start(traced(&origin, &refusing, "1"));
    assert_eq!(gateway.get("/a").status(), 200);
    eventually("the spans are counted", || {
        let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
        metrics.contains("portcullis_trace_spans_total{result=\"failed\"} 3\n")
    });
    let said =
        || gateway.log_messages().iter().filter(|line| line.starts_with("the collector of spans takes none")).count();
    // The log is written beside the metrics.
    eventually("the log says it", || said() > 0);
    assert_eq!(said(), 1);
}

#[test]
fn a_reload_switches_spans_on_and_off() {
    let (origin, collector) = (Origin::start(), collector());
    let plain = format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n", origin.url());
    let gateway = Gateway::start(&plain);
    assert_eq!(gateway.get("/a").status(), 200);
    assert_eq!(origin.last().header("traceparent"), None);
    gateway.reload(traced(&origin, &collector, "1"));
    assert_eq!(gateway.get("/b").status(), 200);
    gateway.reload(&plain);
    assert_eq!(gateway.get("/c").status(), 200);
    assert_eq!(origin.last().header("traceparent"), None);
    let spans = spans(&collector, 3);
    assert_eq!(attributes(&of_kind(&spans, SpanKind::Server).attributes)["url.path"], "/b");
}
