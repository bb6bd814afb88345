//! Lines as the programs write them.

mod proxies;

use std::time::Duration;

use super::format::ReadState;
use super::{LineFormat, LogFormat, LogLine};
use crate::record::ObservedOutcome;
use crate::replay::{AnsweredBy, LoggedRequest, LoggedValue};
use crate::rules::outcome::Outcome;

/// The format that tells itself apart, and the request of the line.
#[track_caller]
fn request(line: &str) -> (LineFormat, LoggedRequest) {
    let read = LogFormat::Auto
        .candidates()
        .iter()
        .find_map(|format| Some((*format, format.read(line.as_bytes(), &mut ReadState::default())?)));
    match read {
        Some((format, LogLine::Request(request))) => (format, request),
        other => panic!("{other:?} of {line}"),
    }
}

/// `198.51.100.7 POST example.com /login?a 401 2026-11-21T07:58:52.000Z 12ms`, with `-` for what the log does not hold.
#[track_caller]
fn check(line: &str, format: LineFormat, expected: &str) -> LoggedRequest {
    let (found, request) = request(line);
    assert_eq!(found, format, "{line}");
    let host = request.host.as_deref().unwrap_or("-");
    let status = request.status.map_or("-".to_owned(), |status| status.as_str().to_owned());
    let duration = request.duration.map_or("-".to_owned(), |duration| format!("{duration:?}"));
    let LoggedRequest { client, method, started, .. } = &request;
    let target = request.path_and_query();
    assert_eq!(format!("{client} {method} {host} {target} {status} {started} {duration}"), expected, "{line}");
    request
}

#[track_caller]
fn check_without_request(line: &str, format: LineFormat) {
    assert_eq!(format.read(line.as_bytes(), &mut ReadState::default()), Some(LogLine::NoRequest), "{line}");
}

fn header<'r>(request: &'r LoggedRequest, name: &str) -> Option<&'r LoggedValue> {
    request.headers.iter().find(|header| header.name.as_str() == name).map(|header| &header.value)
}

fn sent(value: &str) -> LoggedValue {
    LoggedValue::Sent(value.as_bytes().into())
}

#[test]
fn nginx_and_apache_in_the_combined_format() {
    let line = r#"198.51.100.7 - - [21/Nov/2026:08:58:52 +0100] "GET /a?b=c HTTP/1.1" 200 612 "-" "Mozilla/5.0 (X11)""#;
    let read = check(line, LineFormat::Combined, "198.51.100.7 GET - /a?b=c 200 2026-11-21T07:58:52.000Z -");
    assert_eq!(header(&read, "user-agent"), Some(&sent("Mozilla/5.0 (X11)")));
    assert_eq!(header(&read, "referer"), Some(&LoggedValue::NotSent));
    // Debian's nginx adds no field, others do; Apache has a name and an address of IPv6.
    let line = r#"2001:db8::7 - al ice [21/Nov/2026:07:58:52 +0000] "POST /login HTTP/2.0" 302 - "https://example.com/" "a \"b\" \x22" "203.0.113.9" 0.003"#;
    let read = check(line, LineFormat::Combined, "2001:db8::7 POST - /login 302 2026-11-21T07:58:52.000Z -");
    assert_eq!(header(&read, "user-agent"), Some(&sent("a \"b\" \"")));
}

#[test]
fn the_common_format_has_no_headers() {
    let line = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
    let read = check(line, LineFormat::Combined, "127.0.0.1 GET - /apache_pb.gif 200 2000-10-10T20:55:36.000Z -");
    assert!(read.headers.is_empty());
}

#[test]
fn apache_with_its_virtual_host() {
    let line = r#"example.com:443 198.51.100.7 - - [21/Nov/2026:07:58:52 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8""#;
    check(line, LineFormat::Combined, "198.51.100.7 GET example.com:443 / 200 2026-11-21T07:58:52.000Z -");
}

#[test]
fn what_is_no_request_is_a_line_without_one() {
    let start = "198.51.100.7 - - [21/Nov/2026:07:58:52 +0000]";
    check_without_request(&format!(r#"{start} "\x16\x03\x01\x02" 400 157 "-" "-""#), LineFormat::Combined);
    check_without_request(&format!(r#"{start} "" 408 0 "-" "-""#), LineFormat::Combined);
    check_without_request(&format!(r#"{start} "-" 408 - "-" "-""#), LineFormat::Combined);
    check_without_request(&format!(r#"{start} "GET /old" 400 0 "-" "-""#), LineFormat::Combined);
}

#[test]
fn a_client_of_nginx_that_left_has_no_answer() {
    let line = r#"198.51.100.7 - - [21/Nov/2026:07:58:52 +0000] "POST /login HTTP/1.1" 499 0 "-" "-""#;
    assert_eq!(request(line).1.answered_by, AnsweredBy::Unknown);
}

#[test]
fn caddy() {
    let line = r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"203.0.113.9","proto":"HTTP/2.0","method":"GET","host":"localhost:2015","uri":"/a?b=c","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"],"Cookie":["REDACTED"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},"bytes_read":0,"user_id":"","duration":0.25,"size":10900,"status":302,"resp_headers":{"Server":["Caddy"],"Location":["/account"]}}"#;
    let read =
        check(line, LineFormat::Caddy, "203.0.113.9 GET localhost:2015 /a?b=c 302 2022-03-09T21:30:01.274Z 250ms");
    assert!(read.has_all_headers);
    assert_eq!(header(&read, "cookie"), Some(&LoggedValue::Hidden));
    assert_eq!(read.answer_headers.len(), 2);
    // With `time_format rfc3339_nano` and `duration_format string`, and the address of Caddy before 2.5.
    let line = r#"{"ts":"2022-03-09T21:30:01.5Z","logger":"http.log.access.log0","request":{"remote_addr":"[2001:db8::1]:41342","method":"GET","host":"localhost","uri":"/"},"duration":"1.5ms","status":200}"#;
    check(line, LineFormat::Caddy, "2001:db8::1 GET localhost / 200 2022-03-09T21:30:01.498Z 1.5ms");
    // A moment that has no exact number in binary, in every unit.
    for time in ["1795262401.014", "1795262401014.0", "1795262401014000000"] {
        let line = format!(
            r#"{{"ts":{time},"request":{{"remote_ip":"::1","method":"GET","host":"a","uri":"/"}},"duration":0.014,"status":200}}"#
        );
        check(&line, LineFormat::Caddy, "::1 GET a / 200 2026-11-21T12:00:01.000Z 14ms");
    }
    // Every `time_format` that Caddy knows.
    for (time, seconds) in [
        ("1646861401524.5", "01.524"),
        ("1646861401524500000", "01.524"),
        (r#""2022-03-09T21:30:01Z""#, "01.000"),
        (r#""2022-03-09T22:30:01.524+01:00""#, "01.524"),
        (r#""2022-03-09T21:30:01.524Z""#, "01.524"),
        (r#""2022-03-09T22:30:01.524+0100""#, "01.524"),
        (r#""2022/03/09 21:30:01""#, "01.000"),
        (r#""2022/03/09 21:30:01.524""#, "01.524"),
        (r#""2022/03/09 21:30:01.524123456""#, "01.524"),
        (r#""09/Mar/2022:22:30:01 +0100""#, "01.000"),
    ] {
        let line = format!(
            r#"{{"ts":{time},"logger":"http.log.access","request":{{"remote_ip":"127.0.0.1","method":"GET","host":"a","uri":"/"}},"status":200}}"#
        );
        check(&line, LineFormat::Caddy, &format!("127.0.0.1 GET a / 200 2022-03-09T21:30:{seconds}Z -"));
    }
    check_without_request(
        r#"{"level":"info","ts":1646861401.5,"logger":"tls","msg":"cleaning storage unit"}"#,
        LineFormat::Caddy,
    );
    // Beside the line of the access log.
    check_without_request(
        r#"{"level":"error","ts":1646861401.5,"logger":"http.log.error","msg":"dial tcp 127.0.0.1:1: connect: connection refused","request":{"remote_ip":"127.0.0.1","method":"POST","host":"a","uri":"/login"},"duration":0.001,"status":502,"err_id":"x"}"#,
        LineFormat::Caddy,
    );
}

#[test]
fn an_address_loses_its_port_its_brackets_and_its_zone() {
    for (written, address) in [
        ("fe80::1%eth0", "fe80::1"),
        ("[fe80::1%eth0]:443", "fe80::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("198.51.100.7:4711", "198.51.100.7"),
    ] {
        let moment = "[21/Nov/2026:07:58:52 +0000]";
        for (host, format, line) in [
            ("-", LineFormat::Combined, format!(r#"{written} - - {moment} "GET / HTTP/1.1" 200 1"#)),
            ("a:80", LineFormat::Combined, format!(r#"a:80 {written} - - {moment} "GET / HTTP/1.1" 200 1"#)),
            ("[::1]:80", LineFormat::Combined, format!(r#"[::1]:80 {written} - - {moment} "GET / HTTP/1.1" 200 1"#)),
            ("-", LineFormat::Combined, format!(r#"- {written} - - {moment} "GET / HTTP/1.1" 200 1"#)),
            (
                "a",
                LineFormat::Caddy,
                format!(
                    r#"{{"ts":1795247932,"request":{{"client_ip":"{written}","method":"GET","host":"a","uri":"/"}},"status":200}}"#
                ),
            ),
            (
                "a",
                LineFormat::Traefik,
                format!(
                    r#"{{"ClientHost":"{written}","StartUTC":"2026-11-21T07:58:52Z","RequestMethod":"GET","RequestPath":"/","RequestHost":"a","DownstreamStatus":200}}"#
                ),
            ),
            (
                "a",
                LineFormat::PortcullisHuman,
                format!("2026-11-21T07:58:52.000Z {written} GET a/ 200 allowed upstream=app"),
            ),
        ] {
            check(&line, format, &format!("{address} GET {host} / 200 2026-11-21T07:58:52.000Z -"));
        }
    }
    let line = r#"fe80::1%eth0:33318 [21/Nov/2026:07:58:52.000] fe be/s 0/0/0/0/5 200 217 - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
    check(line, LineFormat::Haproxy, "fe80::1 GET - / 200 2026-11-21T07:58:52.000Z 5ms");
}

#[test]
fn traefik_in_json() {
    let line = r#"{"ClientAddr":"10.0.2.100:58390","ClientHost":"10.0.2.100","ClientPort":"58390","ClientUsername":"-","DownstreamContentSize":12,"DownstreamStatus":200,"Duration":1234567,"OriginContentSize":12,"OriginDuration":1000000,"OriginStatus":200,"Overhead":234567,"RequestAddr":"whoami.example","RequestContentSize":0,"RequestCount":7,"RequestHost":"whoami.example","RequestMethod":"GET","RequestPath":"/who?x=1","RequestPort":"-","RequestProtocol":"HTTP/1.1","RequestScheme":"https","RetryAttempts":0,"RouterName":"whoami@docker","ServiceName":"whoami@docker","StartLocal":"2026-11-21T08:58:52.083456789+01:00","StartUTC":"2026-11-21T07:58:52.083456789Z","entryPointName":"websecure","level":"info","msg":"","request_User-Agent":"curl/8.5.0","request_Authorization":"REDACTED","time":"2026-11-21T07:58:52Z"}"#;
    let expected = "10.0.2.100 GET whoami.example /who?x=1 200 2026-11-21T07:58:52.083Z 1.234567ms";
    let read = check(line, LineFormat::Traefik, expected);
    assert_eq!(header(&read, "user-agent"), Some(&sent("curl/8.5.0")));
    assert_eq!(header(&read, "authorization"), Some(&LoggedValue::Hidden));
}

#[test]
fn traefik_in_its_common_format() {
    let line = r#"10.0.2.100 - - [21/Nov/2026:07:58:52 +0000] "GET / HTTP/1.1" 200 12 "-" "-" 17 "web@docker" "http://10.0.0.5:80" 3ms"#;
    let read = check(line, LineFormat::TraefikCommon, "10.0.2.100 GET - / 200 2026-11-21T07:58:52.000Z 3ms");
    assert!(read.headers.is_empty(), "Traefik writes `-` for headers that it does not log");
    // It escapes nothing, and a request that met no router or no server has a bare `-` there.
    for (user_agent, router, server) in [
        ("a \"quoted\" agent", "\"web@docker\"", "\"http://10.0.0.5:80\""),
        ("\"", "-", "-"),
        ("a\" \"b", "\"web@docker\"", "-"),
        ("curl/8.5.0", "\"web \"", "-"),
    ] {
        let line = format!(
            r#"10.0.2.100 - - [21/Nov/2026:07:58:52 +0000] "POST /login HTTP/1.1" 404 12 "-" "{user_agent}" 17 {router} {server} 3ms"#
        );
        let read = check(&line, LineFormat::TraefikCommon, "10.0.2.100 POST - /login 404 2026-11-21T07:58:52.000Z 3ms");
        assert_eq!(header(&read, "user-agent"), Some(&sent(user_agent)), "{line}");
    }
    check_without_request(
        r#"10.0.2.100 - - [21/Nov/2026:07:58:52 +0000] "" 400 12 "-" "-" 17 - - 0ms"#,
        LineFormat::TraefikCommon,
    );
}

#[test]
fn haproxy_with_the_prefix_of_syslog_and_without() {
    let line = r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1""#;
    let expected = "10.0.1.2 GET - /index.html 200 2009-02-06T12:14:14.655Z 109ms";
    check(line, LineFormat::Haproxy, expected);
    check(&format!("Feb  6 12:14:14 localhost haproxy[14389]: {line}"), LineFormat::Haproxy, expected);
    check(&format!("<134>1 2009-02-06T12:14:14+00:00 lb haproxy 14389 - - {line}"), LineFormat::Haproxy, expected);
    // HTTP/2 has an absolute URL; `option httpslog` adds fields; an address of IPv6 has no brackets.
    let line = r#"::1:33318 [06/Feb/2009:12:14:14.655] fe~ be/<NOSRV> 0/-1/-1/-1/+5 503 217 - - SC-- 1/1/0/0/0 0/0 "GET https://example.com/a#22b HTTP/2.0" 0/0000000000000000/0/0/0 -/TLSv1.3/TLS_AES_128_GCM_SHA256"#;
    check(line, LineFormat::Haproxy, "::1 GET example.com /a\"b 503 2009-02-06T12:14:14.655Z 5ms");
    let line = r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in http-in/<NOSRV> -1/-1/-1/-1/0 400 0 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>""#;
    check_without_request(line, LineFormat::Haproxy);
}

#[test]
fn our_own_formats_hold_the_same() {
    let json = r#"{"time":"2026-11-21T07:58:52.123Z","request_id":"4f","trace_id":null,"client":"198.51.100.7","peer":"10.0.0.1","scheme":"https","protocol":"h2","method":"POST","host":"example.com:8443","path":"/login","query":"a=b","user_agent":"curl/8","route":"login","decision":"allowed","limit":null,"key":null,"key_masked":null,"ban":null,"retry_after":null,"shadow":[],"status":401,"outcome":"failure","upstream":"app","server":"127.0.0.1:8000","duration_ms":12.000,"bytes_in":10,"bytes_out":6}"#;
    let ecs = r#"{"@timestamp":"2026-11-21T07:58:52.123Z","log.level":"info","message":"x","ecs.version":"8.17.0","event.type":["access","allowed"],"event.outcome":"failure","http.request.id":"4f","client.ip":"198.51.100.7","source.ip":"10.0.0.1","http.request.method":"POST","url.domain":"example.com","url.port":8443,"url.path":"/login","url.query":"a=b","user_agent.original":"curl/8","portcullis.route":"login","event.action":"allowed","http.response.status_code":401,"portcullis.outcome":"failure","portcullis.upstream":"app","event.duration":12000000}"#;
    let otel = r#"{"timeUnixNano":"1795247932123000000","severityNumber":9,"severityText":"INFO","body":{"stringValue":"x"},"attributes":[{"key":"network.protocol.name","value":{"stringValue":"http"}},{"key":"client.address","value":{"stringValue":"198.51.100.7"}},{"key":"http.request.method","value":{"stringValue":"POST"}},{"key":"server.address","value":{"stringValue":"example.com"}},{"key":"server.port","value":{"intValue":"8443"}},{"key":"url.path","value":{"stringValue":"/login"}},{"key":"url.query","value":{"stringValue":"a=b"}},{"key":"user_agent.original","value":{"stringValue":"curl/8"}},{"key":"portcullis.decision","value":{"stringValue":"allowed"}},{"key":"http.response.status_code","value":{"intValue":"401"}},{"key":"portcullis.outcome","value":{"stringValue":"failure"}},{"key":"portcullis.upstream","value":{"stringValue":"app"}},{"key":"portcullis.duration_ms","value":{"doubleValue":12.000}}]}"#;
    let human = r"2026-11-21T07:58:52.123Z 198.51.100.7 POST example.com:8443/login?a=b 401 allowed outcome=failure route=login upstream=app server=127.0.0.1:8000 12.000ms id=4f";
    let expected = "198.51.100.7 POST example.com:8443 /login?a=b 401 2026-11-21T07:58:52.111Z 12ms";
    let read = check(json, LineFormat::Portcullis, expected);
    assert_eq!(read.outcome, Some(ObservedOutcome::Known(Outcome::Failure)));
    assert_eq!(read.answered_by, AnsweredBy::Application);
    assert_eq!(check(ecs, LineFormat::Portcullis, expected), read);
    assert_eq!(check(otel, LineFormat::PortcullisOtel, expected), read);
    // Lines for people have no headers.
    let read = LoggedRequest { headers: Vec::new(), ..read };
    assert_eq!(check(human, LineFormat::PortcullisHuman, expected), read);
}

#[test]
fn a_call_about_descriptors_is_none_about_a_request_in_each_of_our_formats() {
    let json = r#"{"time":"2026-11-21T07:58:52.123Z","client":"10.0.0.5","protocol":"http/2","method":"POST","host":"d","path":"","decision":"denied","status":429,"upstream":null,"duration_ms":0.2}"#;
    let ecs = r#"{"@timestamp":"2026-11-21T07:58:52.123Z","client.ip":"10.0.0.5","http.version":"2","http.request.method":"POST","url.domain":"d","url.path":"","event.action":"denied","http.response.status_code":429}"#;
    let otel = r#"{"timeUnixNano":"1795247932123000000","attributes":[{"key":"client.address","value":{"stringValue":"10.0.0.5"}},{"key":"network.protocol.version","value":{"stringValue":"2"}},{"key":"http.request.method","value":{"stringValue":"POST"}},{"key":"server.address","value":{"stringValue":"d"}},{"key":"url.path","value":{"stringValue":""}},{"key":"portcullis.decision","value":{"stringValue":"denied"}}]}"#;
    let human = "2026-11-21T07:58:52.123Z 10.0.0.5 POST d 429 denied limit=users route=d 0.200ms id=4f";
    let lines = [
        (json, LineFormat::Portcullis),
        (ecs, LineFormat::Portcullis),
        (otel, LineFormat::PortcullisOtel),
        (human, LineFormat::PortcullisHuman),
    ];
    for (line, format) in lines {
        assert_eq!(format.read(line.as_bytes(), &mut ReadState::default()), Some(LogLine::DescriptorCall), "{line}");
        let failed = line.replace("denied", "error");
        // Lines for people do not tell a call that failed from a head that was malformed.
        let expected = if line == human { LogLine::NoRequest } else { LogLine::DescriptorCall };
        assert_eq!(format.read(failed.as_bytes(), &mut ReadState::default()), Some(expected), "{failed}");
    }
    check_without_request(&json.replace("denied", "error").replace("\"http/2\"", "null"), LineFormat::Portcullis);
}

#[test]
fn what_the_gateway_denied_or_did_not_forward_has_no_answer_of_the_application() {
    let line = |decision: &str, status: u16, upstream: &str| {
        format!(
            r#"{{"time":"2026-11-21T07:58:52.123Z","client":"198.51.100.7","method":"GET","host":"a","path":"/","decision":"{decision}","status":{status},"upstream":{upstream},"duration_ms":1.0}}"#
        )
    };
    let answered_by = |decision, status, upstream| request(&line(decision, status, upstream)).1.answered_by;
    assert_eq!(answered_by("allowed", 200, r#""app""#), AnsweredBy::Application);
    assert_eq!(answered_by("allowed", 200, "null"), AnsweredBy::Unknown);
    assert_eq!(answered_by("allowed", 302, r#"null,"outcome":"success""#), AnsweredBy::Application);
    assert_eq!(answered_by("denied", 429, "null"), AnsweredBy::Unknown);
    assert_eq!(answered_by("error", 502, r#""app""#), AnsweredBy::NoApplication);
    assert_eq!(answered_by("error", 504, r#""app""#), AnsweredBy::Unknown);
    check_without_request(&line("error", 400, "null"), LineFormat::Portcullis);
}

#[test]
fn durations_as_go_writes_them_may_have_several_units() {
    let line = r#"{"ts":100.0,"logger":"a","request":{"remote_ip":"::1","method":"GET","host":"a","uri":"/"},"duration":"1m2.5s","status":200}"#;
    assert_eq!(request(line).1.duration, Some(Duration::from_millis(62_500)));
}
