use std::net::IpAddr;
use std::time::Duration;

use http::{Method, StatusCode, Version};

use crate::record::access_log::{LineContext, write};
use crate::record::metrics::LimitMetrics;
use crate::record::{AppliedLimit, DecisionLabel, LogFormat, MaskedKey, RequestRecord, TraceId, UpstreamRecord};
use crate::rules::client::{ClientIp, Identity};
use crate::rules::decision::{FoundKey, LimitReport};
use crate::rules::key::KeyHash;
use crate::rules::limit::{ActionSeverity, LimitId};
use crate::rules::route::UpstreamId;
use crate::wire::head::{Fields, KnownName};
use crate::words::clock::Timestamp;

#[test]
fn a_denied_request_is_one_json_line_with_every_key_in_order() {
    let limits = [report(0, false), report(1, true)];
    let applied = applied_limit();
    let request = RequestRecord { limits: &limits, applied_limit: Some(&applied), ..denied() };
    assert_eq!(
        line(LogFormat::Json, &request),
        "{\"time\":\"2026-11-21T07:58:52.045Z\",\"request_id\":\"01J\",\"trace_id\":null,\"client\":\"198.51.100.7\",\
         \"peer\":\"10.0.0.1\",\"scheme\":\"https\",\"protocol\":\"h2\",\"method\":\"POST\",\"host\":\"example.com\",\
         \"path\":\"/login\",\"user_agent\":\"curl/8\",\"route\":\"login\",\"decision\":\"denied\",\
         \"limit\":\"login-pace\",\"key\":\"0000000000000000000000000000abcd\",\
         \"key_masked\":\"client_ip=198.51.*.* param.user=a***1f3c\",\"ban\":null,\"retry_after\":4,\
         \"shadow\":[\"login-new\"],\"status\":429,\
         \"upstream\":null,\"server\":null,\"duration_ms\":1.045,\"bytes_in\":27,\"bytes_out\":512}\n"
    );
}

#[test]
fn the_hashes_of_keys_with_a_login_name_stand_beside_the_names_of_their_limits() {
    let keys = [(LimitId(0), KeyHash(0xab)), (LimitId(1), KeyHash(0xcd))];
    let request = RequestRecord { keys: &keys, ..denied() };
    let expected = "000000000000000000000000000000ab login-pace\n000000000000000000000000000000cd login-new";
    for (format, pointer) in [(LogFormat::Json, "/keys"), (LogFormat::Ecs, "/portcullis.keys")] {
        let fields: serde_json::Value = serde_json::from_str(&line(format, &request)).unwrap();
        assert_eq!(fields.pointer(pointer).and_then(serde_json::Value::as_str), Some(expected));
    }
    let record: serde_json::Value = serde_json::from_str(&line(LogFormat::Otel, &request)).unwrap();
    let mut attributes = record["attributes"].as_array().unwrap().iter();
    let keys = attributes.find(|one| one["key"] == "portcullis.keys").unwrap();
    assert_eq!(keys["value"]["stringValue"], expected);
}

#[test]
fn unknown_fields_are_null_and_an_error_says_why() {
    let forwarded = UpstreamRecord {
        id: UpstreamId(0),
        server: Some("10.0.1.5:8000"),
        failure: Some("connect"),
        request_id: None,
        previous_attempts: &[],
    };
    let request = RequestRecord {
        decision: DecisionLabel::Error,
        limit: None,
        status: None,
        outcome: None,
        upstream: Some(forwarded),
        error: Some("connection refused"),
        ..denied()
    };
    let fields: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, &request)).unwrap();
    assert_eq!(fields["limit"], serde_json::Value::Null);
    assert_eq!(fields["status"], serde_json::Value::Null);
    assert_eq!(fields["shadow"], serde_json::json!([]));
    assert_eq!(fields["upstream"], "app");
    assert_eq!(fields["server"], "10.0.1.5:8000");
    assert_eq!(fields["error"], "connection refused");
}

#[test]
fn no_text_of_a_client_begins_another_line_or_field() {
    let request =
        RequestRecord { path: "/a\"b\\c\nd\u{7f}", host: "x\r\ny", user_agent: Some(b"\",\"a\":\"\xff\t"), ..denied() };
    for format in [LogFormat::Json, LogFormat::Ecs, LogFormat::Otel] {
        let json = line(format, &request);
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
        assert_eq!((json.matches('\n').count(), json.matches('\r').count()), (1, 0));
    }
    let json = line(LogFormat::Json, &request);
    let fields: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(fields["path"], "/a\"b\\c\nd\u{7f}");
    assert_eq!((json.matches('\n').count(), json.matches('\r').count()), (1, 0));

    let human = line(LogFormat::Human, &request);
    assert_eq!((human.matches('\n').count(), human.matches('\r').count()), (1, 0), "{human}");
}

#[test]
fn a_human_line_has_the_same_facts_in_fewer_words() {
    assert_eq!(
        line(LogFormat::Human, &denied()),
        "2026-11-21T07:58:52.045Z 198.51.100.7 POST example.com/login 429 denied limit=login-pace retry_after=4 route=login \
         1.045ms id=01J\n"
    );
}

#[test]
fn the_query_is_logged_only_where_it_is_configured() {
    let request = denied();
    for format in [LogFormat::Json, LogFormat::Ecs, LogFormat::Otel, LogFormat::Human] {
        assert!(!line(format, &request).contains("next=/a"));
        assert!(line_with(format, &request, request.query).contains("next=/a"));
    }
}

#[test]
fn ecs_lines_have_the_fields_of_the_elastic_schema() {
    let (limits, applied) = ([report(1, true)], applied_limit());
    let trace = traced();
    let request =
        RequestRecord { limits: &limits, applied_limit: Some(&applied), trace, host: "[::1]:8443", ..denied() };
    let fields: serde_json::Value = serde_json::from_str(&line(LogFormat::Ecs, &request)).unwrap();
    let expected = serde_json::json!({
        "@timestamp": "2026-11-21T07:58:52.045Z", "log.level": "info", "message": "POST [::1]:8443/login 429 denied",
        "ecs.version": "8.17.0", "service.name": "portcullis", "event.dataset": "portcullis.requests",
        "event.kind": "event", "event.category": ["web"], "event.type": ["access", "denied"], "event.outcome": "failure",
        "http.request.id": "01J", "trace.id": "4bf92f3577b34da6a3ce929d0e0e4736", "client.ip": "198.51.100.7",
        "source.ip": "10.0.0.1", "url.scheme": "https", "http.version": "2", "http.request.method": "POST",
        "url.domain": "[::1]", "url.port": 8443, "url.path": "/login", "user_agent.original": "curl/8",
        "portcullis.route": "login", "event.action": "denied", "rule.name": "login-pace",
        "portcullis.key": "0000000000000000000000000000abcd",
        "portcullis.key_masked": "client_ip=198.51.*.* param.user=a***1f3c", "portcullis.retry_after": 4,
        "portcullis.shadow": ["login-new"], "http.response.status_code": 429, "event.duration": 1_045_000,
        "http.request.body.bytes": 27, "http.response.body.bytes": 512,
    });
    assert_eq!(fields, expected);
}

#[test]
fn otel_lines_are_log_records_of_opentelemetry() {
    let limits = [report(1, true)];
    let request = RequestRecord { limits: &limits, trace: traced(), host: "example.com:80", ..denied() };
    let record: serde_json::Value = serde_json::from_str(&line(LogFormat::Otel, &request)).unwrap();
    assert_eq!((&record["timeUnixNano"], &record["severityText"]), (&"1795247932045678000".into(), &"INFO".into()));
    assert_eq!(
        (&record["severityNumber"], &record["traceId"]),
        (&9.into(), &"4bf92f3577b34da6a3ce929d0e0e4736".into())
    );
    assert_eq!(record["body"], serde_json::json!({"stringValue": "POST example.com:80/login 429 denied"}));
    let attributes = record["attributes"].as_array().unwrap();
    let of = |name: &str| attributes.iter().find(|one| one["key"] == name).map(|one| one["value"].to_string());
    for (name, value) in [
        ("http.request.method", r#"{"stringValue":"POST"}"#),
        ("http.response.status_code", r#"{"intValue":"429"}"#),
        ("network.protocol.name", r#"{"stringValue":"http"}"#),
        ("network.protocol.version", r#"{"stringValue":"2"}"#),
        ("client.address", r#"{"stringValue":"198.51.100.7"}"#),
        ("server.address", r#"{"stringValue":"example.com"}"#),
        ("server.port", r#"{"intValue":"80"}"#),
        ("url.path", r#"{"stringValue":"/login"}"#),
        ("user_agent.original", r#"{"stringValue":"curl/8"}"#),
        ("portcullis.decision", r#"{"stringValue":"denied"}"#),
        ("portcullis.shadow", r#"{"arrayValue":{"values":[{"stringValue":"login-new"}]}}"#),
        ("portcullis.duration_ms", r#"{"doubleValue":1.045}"#),
    ] {
        assert_eq!(of(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(of("portcullis.ban"), None);
}

fn traced() -> Option<TraceId> {
    let value = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    TraceId::of(&Fields::from_iter([(KnownName::TRACEPARENT, value)]))
}

fn applied_limit() -> AppliedLimit {
    let parts = vec![("client_ip".into(), "198.51.*.*".into()), ("param.user".into(), "a***1f3c".into())];
    let masked_key = MaskedKey { hash: KeyHash(0xabcd), parts };
    AppliedLimit {
        limit: LimitId(0),
        key: None,
        masked_key: Some(masked_key),
        span: None,
        is_ban: false,
        is_suspect: false,
    }
}

fn line(format: LogFormat, request: &RequestRecord<'_>) -> String {
    line_with(format, request, None)
}

fn line_with(format: LogFormat, request: &RequestRecord<'_>, query: Option<&str>) -> String {
    let limits = [LimitMetrics::new(&"login-pace".into()), LimitMetrics::new(&"login-new".into())];
    let upstream = request.upstream.map(|_| "app");
    let context = LineContext { route: Some("login"), upstream, query, gateway: None, limits: &limits };
    let mut line = Vec::new();
    write(&mut line, format, Timestamp::from_micros(1_795_247_932_045_678), request, &context);
    String::from_utf8(line).unwrap()
}

fn denied() -> RequestRecord<'static> {
    let peer = ClientIp::new(IpAddr::from([10, 0, 0, 1]));
    let client = ClientIp::new(IpAddr::from([198, 51, 100, 7]));
    RequestRecord {
        request_id: "01J",
        identity: Identity { peer, peer_is_trusted: true, client },
        method: &Method::POST,
        host: "example.com",
        path: "/login",
        query: Some("next=/a"),
        version: Some(Version::HTTP_2),
        scheme: "https",
        user_agent: Some(b"curl/8"),
        trace: None,
        route: None,
        decision: DecisionLabel::Denied,
        limit: Some("login-pace"),
        list: None,
        ban: None,
        limits: &[],
        unread: None,
        retry_after: Some(4),
        status: Some(StatusCode::TOO_MANY_REQUESTS),
        outcome: None,
        upstream: None,
        error: None,
        duration: Duration::from_micros(1045),
        decision_duration: None,
        bytes_in: 27,
        bytes_out: 512,
        applied_limit: None,
        keys: &[],
        sign_in: None,
    }
}

fn report(limit: u16, shadow: bool) -> LimitReport {
    LimitReport {
        limit: LimitId(limit),
        shadow,
        applied: Some(ActionSeverity::Deny),
        is_shown: false,
        found: FoundKey::Whole,
    }
}
