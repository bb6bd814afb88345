use proptest::prelude::*;

use super::*;
use crate::head::Name;

fn head(method: &str, target: &str, version: Version, lines: &[(&str, &str)]) -> RequestHead {
    try_head(method, target, version, lines).expect("a request")
}

fn try_head(method: &str, target: &str, version: Version, lines: &[(&str, &str)]) -> Option<RequestHead> {
    let mut head = RequestHead::to(Method::from_bytes(method.as_bytes()).ok()?, target).ok()?;
    head.version = version;
    for (name, value) in lines {
        head.fields.append(Name::of(name), value.as_bytes());
    }
    Some(head)
}

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8080))
}

#[track_caller]
fn check_http1(target: &str, lines: &[(&str, &str)], expected: Result<&str, BadRequest>) {
    let mut head = head("POST", target, Version::HTTP_11, lines);
    let result = check(&mut head, local());
    assert_eq!(result.map(|()| head.host()), expected, "{target} {lines:?}");
    let host = head.fields.get(KnownName::HOST);
    assert!(result.is_err() || host == Some(head.host().as_bytes()), "{target} {lines:?}");
}

#[track_caller]
fn check_host(host: &str, expected: bool) {
    assert_eq!(is_host(host.as_bytes()), expected, "{host}");
}

#[test]
fn a_host_is_a_name_or_an_address_and_a_port() {
    for host in ["example.com", "EXAMPLE.com:80", "a_b", "example.com.", "127.0.0.1:65535", "[::1]", "[::1]:8080", "x:"]
    {
        check_host(host, true);
    }
    for host in [
        "",
        ".",
        "a..b",
        ".a",
        "a,b",
        "a b",
        "a\tb",
        "user@a",
        "a:65536",
        "a:123456",
        "a:b",
        "a:1:2",
        "::1",
        "[::1",
        "[::1]x",
        "[::1%eth0]",
        "[x]",
        "a/b",
        "a?b",
        "a#b",
        "a\\b",
        "a%41",
        "höst",
        "a\0",
        "a:+1",
        "[]",
        ":80",
    ] {
        check_host(host, false);
    }
}

#[test]
fn one_host_line_is_needed_and_enough() {
    check_http1("/", &[("host", "a")], Ok("a"));
    check_http1("/", &[], Err(BadRequest::NoHost));
    check_http1("/", &[("host", "a"), ("host", "a")], Err(BadRequest::SeveralHosts));
    check_http1("/", &[("host", "a, b")], Err(BadRequest::Host));
}

#[test]
fn the_authority_of_an_absolute_target_is_the_host() {
    check_http1("http://a.example/x", &[("host", "A.example")], Ok("a.example"));
    check_http1("http://a.example/x", &[("host", "a.example:80")], Ok("a.example"));
    check_http1("http://a.example:8080/x", &[("host", "a.example")], Err(BadRequest::HostMismatch));
    check_http1("http://a.example/x", &[("host", "b.example")], Err(BadRequest::HostMismatch));
    check_http1("http://a.example:80/x", &[("host", "A.Example.")], Ok("a.example:80"));
    check_http1("http://a.example/x", &[], Err(BadRequest::NoHost));
    check_http1("http://user@a.example/x", &[("host", "a.example")], Ok("a.example"));
}

#[test]
fn only_http_and_https_targets_are_accepted() {
    check_http1("ftp://a/x", &[("host", "a")], Err(BadRequest::Scheme));
    check_http1("a:80", &[("host", "a")], Err(BadRequest::Target));
    check_http1("*", &[("host", "a")], Err(BadRequest::Target));
    check_http1("/caf\u{e9}", &[("host", "a")], Err(BadRequest::Target));
    check_http1("/?q=\u{e9}", &[("host", "a")], Err(BadRequest::Target));
}

#[test]
fn options_may_ask_about_the_server_as_a_whole() {
    let mut head = head("OPTIONS", "*", Version::HTTP_11, &[("host", "a")]);
    assert!(check(&mut head, local()).is_ok());
}

#[test]
fn connect_and_trace_are_not_served() {
    for (method, target) in [("CONNECT", "a:80"), ("TRACE", "/")] {
        let mut head = head(method, target, Version::HTTP_11, &[("host", "a")]);
        assert_eq!(check(&mut head, local()), Err(BadRequest::Method));
    }
}

#[test]
fn extension_methods_pass() {
    let mut head = head("PROPFIND", "/", Version::HTTP_11, &[("host", "a")]);
    assert!(check(&mut head, local()).is_ok());
}

#[test]
fn a_request_of_http_1_0_without_a_host_is_for_the_address_it_came_to() {
    let mut head = head("GET", "/", Version::HTTP_10, &[]);
    assert_eq!(check(&mut head, local()).map(|()| head.host()), Ok("127.0.0.1:8080"));
    assert_eq!(head.fields.get(KnownName::HOST), Some(&b"127.0.0.1:8080"[..]));
}

#[test]
fn the_only_transfer_encoding_is_chunked() {
    check_http1("/", &[("host", "a"), ("transfer-encoding", "Chunked")], Ok("a"));
    for odd in ["cow, chunked", "chunked, chunked", "gzip", "", "chunked;x=1", "\"chunked\"", "identity"] {
        check_http1("/", &[("host", "a"), ("transfer-encoding", odd)], Err(BadRequest::TransferEncoding));
    }
    let twice = [("host", "a"), ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")];
    check_http1("/", &twice, Err(BadRequest::TransferEncoding));
    let mut old = head("POST", "/", Version::HTTP_10, &[("host", "a"), ("transfer-encoding", "chunked")]);
    assert_eq!(check(&mut old, local()), Err(BadRequest::TransferEncoding));
}

#[test]
fn a_length_is_stated_in_one_way() {
    let line = ("host", "a");
    check_http1("/", &[line, ("content-length", "5")], Ok("a"));
    check_http1("/", &[line, ("content-length", "5"), ("content-length", "5")], Ok("a"));
    check_http1("/", &[line, ("content-length", "5"), ("content-length", "6")], Err(BadRequest::ConflictingLengths));
    check_http1(
        "/",
        &[line, ("content-length", "5"), ("transfer-encoding", "chunked")],
        Err(BadRequest::ConflictingLengths),
    );
    check_http1("/", &[line, ("content-length", "+5")], Err(BadRequest::ConflictingLengths));
}

#[test]
fn http2_names_the_host_in_its_authority() {
    let mut two = head("GET", "http://a.example/x", Version::HTTP_2, &[]);
    assert_eq!(check(&mut two, local()).map(|()| two.host()), Ok("a.example"));
    assert_eq!(two.fields.get(KnownName::HOST), Some(&b"a.example"[..]));
    let mut two = head("GET", "http://a.example/x", Version::HTTP_2, &[("host", "b.example")]);
    assert_eq!(check(&mut two, local()), Err(BadRequest::HostMismatch));
}

#[test]
fn nothing_but_100_continue_may_be_expected() {
    check_http1("/", &[("host", "a"), ("expect", "100-Continue")], Ok("a"));
    check_http1("/", &[("host", "a"), ("expect", "200-maybe")], Err(BadRequest::Expectation));
    check_http1("/", &[("host", "a"), ("expect", "100-continue"), ("expect", "x")], Err(BadRequest::Expectation));
}

#[test]
fn a_client_let_in_by_its_certificate_speaks_to_the_host_it_asked_for() {
    #[track_caller]
    fn check(host: &str, server_name: Option<&str>, client_is_certified: bool, fits: bool) {
        let secured = TlsInfo { server_name: server_name.map(Into::into), client_is_certified };
        let expected = if fits { Ok(()) } else { Err(BadRequest::Misdirected) };
        assert_eq!(check_direction(|| host, Some(&secured)), expected, "{host:?} {server_name:?}");
    }
    check("a.test", Some("a.test"), true, true);
    check("A.test.:8443", Some("a.test"), true, true);
    check("b.test", Some("a.test"), true, false);
    check("127.0.0.1", Some("a.test"), true, false);
    check("127.0.0.1:8443", None, true, true);
    check("[2001:db8::1]", None, true, true);
    check("b.test", None, true, false);
    check("127.0.0.1.b.test", None, true, false);
    check("b.test", None, false, true);
    check("b.test", Some("a.test"), false, true);
    assert_eq!(check_direction(|| "a.test", None), Ok(()));
}

proptest! {
    #[test]
    fn an_admitted_request_has_one_host_one_framing_and_a_plain_target(
        target in "(https?://)?[a-z@:0-9]{0,4}[/*]?[ -~\u{e9}]{0,8}",
        hosts in prop::collection::vec("[a-z0-9.:,@/ \\[\\]_-]{0,8}", 0..3),
        lengths in prop::collection::vec("[0-9+, x]{0,3}", 0..3),
        encodings in prop::collection::vec("(chunked|gzip|,| ){0,2}", 0..2),
        version in prop::sample::select(vec![Version::HTTP_10, Version::HTTP_11, Version::HTTP_2]),
    ) {
        let named = [("host", &hosts), ("content-length", &lengths), ("transfer-encoding", &encodings)];
        let lines: Vec<(&str, &str)> =
            named.iter().flat_map(|(name, values)| values.iter().map(|value| (*name, value.trim()))).collect();
        let Some(mut head) = try_head("POST", &target, version, &lines) else { return Ok(()) };
        if check(&mut head, local()).is_err() {
            return Ok(());
        }
        let all = |name| head.fields.get_all(name).collect::<Vec<_>>();
        prop_assert_eq!(all(KnownName::HOST), [head.host().as_bytes()]);
        prop_assert!(is_host(head.host().as_bytes()));
        let (lengths, encodings) = (all(KnownName::CONTENT_LENGTH), all(KnownName::TRANSFER_ENCODING));
        prop_assert!(encodings.is_empty() || lengths.is_empty() && encodings.len() == 1);
        prop_assert!(lengths.iter().all(|length| *length == lengths[0] && length[0].is_ascii_digit()));
        let target = head.path_and_query();
        prop_assert!(target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'), "{}", target);
    }
}
