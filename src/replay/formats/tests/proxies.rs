//! Lines of further proxies, and within what syslog and containers write around them.

use std::borrow::Cow;

use super::*;
use crate::replay::formats::MAX_LINE;
use crate::replay::{FieldNames, LineContent, LineReader};

/// The request of the last line, with all lines read in their order, as `GET example.com /a 200`.
#[track_caller]
fn check_lines(fields: &str, lines: &[&str], format: LineFormat, expected: &str) {
    let fields = if fields.is_empty() { FieldNames::default() } else { FieldNames::parse(fields).unwrap() };
    let mut reader = LineReader::new(LogFormat::Auto, &fields);
    let read = lines.iter().map(|line| reader.read(line.as_bytes())).last();
    let Some(LineContent::Line(LogLine::Request(request))) = read else { panic!("{read:?} of {lines:?}") };
    assert_eq!(reader.format, Some(format), "{lines:?}");
    let status = request.status.map_or(0, |status| status.as_u16());
    let (host, target) = (request.host.as_deref().unwrap_or("-"), request.path_and_query());
    let LoggedRequest { client, method, started, .. } = &request;
    assert_eq!(format!("{client} {method} {host} {target} {status} {started}"), expected, "{lines:?}");
}

#[test]
fn json_of_nginx_with_its_usual_names_and_with_others() {
    let line = r#"{"time_iso8601":"2026-11-21T08:58:52+01:00","remote_addr":"198.51.100.7","request":"POST /login?a=b HTTP/1.1","status":401,"request_time":"0.250","http_host":"example.com","http_user_agent":"a \"b\" c","http_referer":""}"#;
    let expected = "198.51.100.7 POST example.com /login?a=b 401 2026-11-21T07:58:51.750Z 250ms";
    let read = check(line, LineFormat::Json, expected);
    assert_eq!(header(&read, "user-agent"), Some(&sent("a \"b\" c")));
    assert_eq!(header(&read, "referer"), Some(&LoggedValue::NotSent));
    // Without `escape=json` it is no JSON.
    let read = check(&line.replace("\\\"", r"\x22"), LineFormat::Json, expected);
    assert_eq!(header(&read, "user-agent"), Some(&sent("a \"b\" c")));
    let line = r#"{"msec":"1795247932.125","remote_addr":"2001:db8::7","request_method":"GET","uri":"/a","args":"b","status":"499","request_time":"-"}"#;
    let read = check(line, LineFormat::Json, "2001:db8::7 GET - /a?b 499 2026-11-21T07:58:52.125Z -");
    assert_eq!(read.answered_by, AnsweredBy::Unknown);
    check_without_request(&line.replace("\"GET\"", "\"\""), LineFormat::Json);
    let line = r#"{"ts":"21/Nov/2026:07:58:52 +0000","http":{"ip":"198.51.100.7","verb":"PUT"},"url":"/x","code":"204","request":"x"}"#;
    let fields = "time=ts,client=http.ip,method=http.verb,path=url,status=code";
    check_lines(fields, &[line], LineFormat::Json, "198.51.100.7 PUT - /x 204 2026-11-21T07:58:52.000Z");
}

#[test]
fn haproxy_in_its_common_format() {
    let line = r#"198.51.100.7 - - [21/Nov/2026:07:58:52 +0000] "GET /a#22b HTTP/1.1" 200 612 "" "" 33317 123 "fe" "be" "s1" 0 0 1 4 5 "----" 1 1 0 0 0 0 0 "" "" "" "agent \"x\"""#;
    let read = check(line, LineFormat::HaproxyClf, "198.51.100.7 GET - /a\"b 200 2026-11-21T07:58:52.123Z 5ms");
    assert!(read.headers.is_empty(), "HAProxy writes no headers there");
    let left = line.replace(" 200 612", " -1 0").replace(" 4 5 ", " -1 +7 ");
    check(&left, LineFormat::HaproxyClf, "198.51.100.7 GET - /a\"b - 2026-11-21T07:58:52.123Z 7ms");
    check_without_request(&line.replace("GET /a#22b HTTP/1.1", "<BADREQ>"), LineFormat::HaproxyClf);
}

#[test]
fn envoy_in_its_default_format() {
    let line = r#"[2026-11-21T07:58:52.123Z] "POST /login?a HTTP/2" 401 - 10 154 12 11 "203.0.113.9, 198.51.100.7" "a "quoted" "agent" x" "4f-2" "example.com" "10.0.0.5:80""#;
    let read =
        check(line, LineFormat::Envoy, "198.51.100.7 POST example.com /login?a 401 2026-11-21T07:58:52.123Z 12ms");
    assert_eq!(header(&read, "user-agent"), Some(&sent("a \"quoted\" \"agent\" x")));
    let line = r#"[2026-11-21T07:58:52.123Z] "GET / HTTP/1.1" 503 UF 0 91 3 - "198.51.100.7" "-" "4f" "-" "-""#;
    let read = check(line, LineFormat::Envoy, "198.51.100.7 GET - / 503 2026-11-21T07:58:52.123Z 3ms");
    assert_eq!(read.answered_by, AnsweredBy::NoApplication);
    assert_eq!(header(&read, "user-agent"), Some(&LoggedValue::NotSent));
    check_without_request(&line.replace("GET / HTTP/1.1", "- - -"), LineFormat::Envoy);
}

#[test]
fn the_load_balancer_of_aws() {
    let line = r#"https 2026-11-21T07:58:52.123456Z app/web/50dc 198.51.100.7:2817 10.0.0.1:80 0.001 0.010 0.000 302 302 34 366 "POST https://example.com/login HTTP/2.0" "a \x22b\x22" ECDHE TLSv1.2 arn:x "Root=1-2" "example.com" "arn:y" 0 2026-11-21T07:58:52.112000Z "forward" "-" "-" "10.0.0.1:80" "302" "-" "-""#;
    let read = check(line, LineFormat::Alb, "198.51.100.7 POST example.com /login 302 2026-11-21T07:58:52.112Z 11ms");
    assert_eq!(header(&read, "user-agent"), Some(&sent("a \"b\"")));
    let line = r#"http 2026-11-21T07:58:52.123456Z app/web/50dc [2001:db8::7]:2817 - -1 -1 -1 503 - 34 366 "GET http://example.com:80/ HTTP/1.1" "-" - - - "Root=1-2""#;
    let read = check(line, LineFormat::Alb, "2001:db8::7 GET example.com:80 / 503 2026-11-21T07:58:52.123Z -");
    assert_eq!(read.answered_by, AnsweredBy::NoApplication);
    check_without_request(&line.replace("GET http://example.com:80/ HTTP/1.1", "- http://a:80- -"), LineFormat::Alb);
}

#[test]
fn iis_names_its_columns_anew_in_the_middle_of_a_file() {
    let fields =
        "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port c-ip cs(User-Agent) sc-status time-taken";
    let row = "2026-11-21 07:58:52 10.0.0.1 GET /a b=c 443 198.51.100.7 a+\"b\" 200 12";
    let before = ["#Software: Microsoft Internet Information Services 10.0", fields, row];
    check_lines("", &before, LineFormat::Iis, "198.51.100.7 GET - /a?b=c 200 2026-11-21T07:58:51.988Z");
    let fewer = ["#Date: 2026-11-22 00:00:00", "#Fields: time c-ip cs-method cs-uri-stem cs-host sc-status"];
    let rows = [&before[..], &fewer, &["00:00:07 198.51.100.7 POST /login example.com 401"]].concat();
    check_lines("", &rows, LineFormat::Iis, "198.51.100.7 POST example.com /login 401 2026-11-22T00:00:07.000Z");
    let query_missing = [fields, &row.replace("b=c", "-")];
    check_lines("", &query_missing, LineFormat::Iis, "198.51.100.7 GET - /a 200 2026-11-21T07:58:51.988Z");
    let mut reader = LineReader::new(LogFormat::Iis, &FieldNames::default());
    let unreadable = |line: &'static str| LineContent::Unreadable(Cow::Borrowed(line.as_bytes()));
    assert_eq!(reader.read(row.as_bytes()), unreadable(row), "without columns");
    assert_eq!(reader.read(fields.as_bytes()), LineContent::Line(LogLine::Directive));
    let cut = "2026-11-21 07:58:52 10.0.0.1 GET";
    assert_eq!(reader.read(cut.as_bytes()), unreadable(cut), "a line that was cut");
}

#[test]
fn nginx_proxy_manager() {
    let line = r#"[21/Nov/2026:07:58:52 +0000] - 502, 200 200 - GET https example.com "/a?b=c" [Client 198.51.100.7] [Length 612] [Gzip -] [Sent-to 10.0.0.5] "a \x22b\x22" "-""#;
    let read = check(
        line,
        LineFormat::NginxProxyManager,
        "198.51.100.7 GET example.com /a?b=c 200 2026-11-21T07:58:52.000Z -",
    );
    assert_eq!(header(&read, "user-agent"), Some(&sent("a \"b\"")));
    assert_eq!(header(&read, "referer"), Some(&LoggedValue::NotSent));
    let line =
        r#"[21/Nov/2026:07:58:52 +0000] 404 - GET http _ "/" [Client 2001:db8::7] [Length 150] [Gzip -] "-" "-""#;
    check(line, LineFormat::NginxProxyManager, "2001:db8::7 GET _ / 404 2026-11-21T07:58:52.000Z -");
}

#[test]
fn a_line_is_read_within_syslog_and_containers() {
    let line = r#"198.51.100.7 - - [21/Nov/2026:07:58:52 +0000] "GET / HTTP/1.1" 200 1 "-" "a \x22b\x22""#;
    let log = serde_json::Value::from(format!("{line}\n"));
    let docker = format!(r#"{{"log":{log},"stream":"stdout","time":"2026-11-21T07:58:53Z"}}"#);
    for wrapped in [
        format!("<190>Nov 21 07:58:52 web nginx: {line}"),
        format!("<190>1 2026-11-21T07:58:52Z web nginx 812 - [m seq=\"1\"] {line}"),
        format!("2026-11-21T07:58:52.5Z stdout F {line}"),
        format!("2026-11-21T07:58:52.5Z stdout F <190>Nov 21 07:58:52 web nginx: {line}"),
        docker,
    ] {
        let expected = "198.51.100.7 GET - / 200 2026-11-21T07:58:52.000Z";
        check_lines("", &[&wrapped], LineFormat::Combined, expected);
    }
}

/// A line of Docker's json-file.
fn docker(log: &str, stream: &str) -> String {
    let (log, stream) = (serde_json::Value::from(log), serde_json::Value::from(stream));
    format!(r#"{{"log":{log},"stream":{stream},"time":"2026-11-21T07:58:53Z"}}"#)
}

#[test]
fn the_pieces_of_a_line_are_joined_although_another_stream_writes_between_them() {
    let line = format!("198.51.100.7 - - [21/Nov/2026:07:58:52 +0000] \"GET /{} HTTP/1.1\" 200 1", "a".repeat(40_000));
    let expected = format!("198.51.100.7 GET - /{} 200 2026-11-21T07:58:52.000Z", "a".repeat(40_000));
    let (first, rest) = line.split_at(16_384);
    let (second, third) = rest.split_at(16_384);
    let cri = |tag: &str, text: &str| format!("2026-11-21T07:58:52.5Z stdout {tag} {text}");
    let pieces_of_docker = [
        docker(first, "stdout"),
        docker("error\n", "stderr"),
        docker(second, "stdout"),
        docker(&format!("{third}\n"), "stdout"),
    ];
    let of_cri =
        [cri("P", first), "2026-11-21T07:58:52.5Z stderr F error".to_owned(), cri("P", second), cri("F", third)];
    for pieces in [pieces_of_docker, of_cri] {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        check_lines("", &pieces, LineFormat::Combined, &expected);
    }
}

#[test]
fn the_last_line_of_a_container_may_lack_its_end_and_no_line_grows_without_bound() {
    let line = r#"198.51.100.7 - - [21/Nov/2026:07:58:52 +0000] "GET / HTTP/1.1" 200 1"#;
    let mut reader = LineReader::new(LogFormat::Auto, &FieldNames::default());
    assert_eq!(reader.read(docker(line, "stdout").as_bytes()), LineContent::Piece);
    assert!(matches!(reader.rest(), Some(LineContent::Line(LogLine::Request(_)))), "nothing more came");
    assert_eq!(reader.rest(), None);
    let piece = docker(&"x".repeat(16_384), "stderr");
    for _ in 0..=MAX_LINE / 16_384 {
        assert_eq!(reader.read(piece.as_bytes()), LineContent::Piece);
    }
    let end = docker("x\n", "stderr");
    let LineContent::Unreadable(text) = reader.read(end.as_bytes()) else { panic!("it is too long") };
    assert_eq!(text.len(), MAX_LINE + 1);
    let whole = docker(&format!("{line}\n"), "stderr");
    assert!(matches!(reader.read(whole.as_bytes()), LineContent::Line(LogLine::Request(_))), "the next line is read");
}
