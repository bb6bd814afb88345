use std::net::IpAddr;

use http::Method;
use http::StatusCode;

use super::*;
use crate::client::ClientIp;
use crate::client::Identity;
use crate::decision::conclude::LimitReport;
use crate::limit::Action;
use crate::limit::LimitId;
use crate::limit::state::Standings;
use crate::record::Forwarded;
use crate::record::Ruling;
use crate::route::UpstreamId;

#[test]
fn a_denied_request_is_one_json_line_with_every_key_in_order() {
    let limits = [report(0, false), report(1, true)];
    let event = Event { limits: &limits, ..denied() };
    assert_eq!(
        line(LogFormat::Json, &event),
        "{\"time\":\"2026-11-21T07:58:52.045Z\",\"request_id\":\"01J\",\"client\":\"198.51.100.7\",\
         \"peer\":\"10.0.0.1\",\"method\":\"POST\",\"host\":\"example.com\",\"path\":\"/login\",\"route\":\"login\",\
         \"decision\":\"denied\",\"limit\":\"login-pace\",\"ban\":null,\"shadow\":[\"login-new\"],\"status\":429,\
         \"upstream\":null,\"server\":null,\"duration_ms\":1.045,\"bytes_in\":27,\"bytes_out\":512}\n"
    );
}

#[test]
fn what_is_not_there_is_null_and_an_error_says_why() {
    let forwarded =
        Forwarded { upstream: UpstreamId(0), server: Some("10.0.1.5:8000"), failure: Some("connect"), passed: &[] };
    let event = Event {
        decision: Ruling::Error,
        limit: None,
        status: None,
        meaning: None,
        forwarded: Some(forwarded),
        error: Some("connection refused"),
        ..denied()
    };
    let fields: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, &event)).unwrap();
    assert_eq!(fields["limit"], serde_json::Value::Null);
    assert_eq!(fields["status"], serde_json::Value::Null);
    assert_eq!(fields["shadow"], serde_json::json!([]));
    assert_eq!(fields["upstream"], "app");
    assert_eq!(fields["server"], "10.0.1.5:8000");
    assert_eq!(fields["error"], "connection refused");
}

#[test]
fn nothing_a_client_sends_begins_another_line_or_field() {
    let event = Event { path: "/a\"b\\c\nd\u{7f}", host: "x\r\ny", ..denied() };
    let json = line(LogFormat::Json, &event);
    let fields: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(fields["path"], "/a\"b\\c\nd\u{7f}");
    assert_eq!((json.matches('\n').count(), json.matches('\r').count()), (1, 0));

    let human = line(LogFormat::Human, &event);
    assert_eq!((human.matches('\n').count(), human.matches('\r').count()), (1, 0), "{human}");
}

#[test]
fn a_line_for_people_says_the_same_in_fewer_words() {
    assert_eq!(
        line(LogFormat::Human, &denied()),
        "2026-11-21T07:58:52.045Z 198.51.100.7 POST example.com/login 429 denied limit=login-pace route=login 1.045ms \
         id=01J\n"
    );
}

fn line(format: LogFormat, event: &Event<'_>) -> String {
    let limits = [
        LimitMeter::new(&"login-pace".into(), &Action::default()),
        LimitMeter::new(&"login-new".into(), &Action::default()),
    ];
    let upstream = event.forwarded.map(|_| "app");
    let named = Named { route: Some("login"), upstream, limits: &limits };
    let mut line = Vec::new();
    write(&mut line, format, Timestamp::from_micros(1_795_247_932_045_678), event, &named);
    String::from_utf8(line).unwrap()
}

fn denied() -> Event<'static> {
    let peer = ClientIp::new(IpAddr::from([10, 0, 0, 1]));
    let client = ClientIp::new(IpAddr::from([198, 51, 100, 7]));
    Event {
        request_id: "01J",
        identity: Identity { peer, peer_is_trusted: true, client },
        method: &Method::POST,
        host: "example.com",
        path: "/login",
        route: None,
        decision: Ruling::Denied,
        limit: Some("login-pace"),
        ban: None,
        limits: &[],
        status: Some(StatusCode::TOO_MANY_REQUESTS),
        meaning: None,
        forwarded: None,
        error: None,
        duration: Duration::from_micros(1045),
        deciding: None,
        bytes_in: 27,
        bytes_out: 512,
        subject: None,
    }
}

fn report(limit: u16, shadow: bool) -> LimitReport {
    LimitReport { limit: LimitId(limit), shadow, denied: true, standings: Standings::new() }
}
