use proptest::prelude::*;

use super::*;
use crate::wire::head::Name;

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

#[test]
fn the_authority_of_an_absolute_target_is_the_host() {
    check_http1("http://a.example/x", &[("host", "A.example")], Ok("a.example"));
    check_http1("http://a.example/x", &[("host", "a.example:80")], Ok("a.example"));
    check_http1("http://a.example:8080/x", &[("host", "a.example")], Err(BadRequest::HostMismatch));
    check_http1("http://a.example/x", &[("host", "b.example")], Err(BadRequest::HostMismatch));
    check_http1("http://a.example:80/x", &[("host", "A.Example.")], Ok("a.example:80"));
    check_http1("http://a.example/x", &[], Err(BadRequest::NoHost));
    assert!(try_head("POST", "http://user@a.example/x", Version::HTTP_11, &[("host", "a.example")]).is_none());
}

#[test]
fn a_request_of_http_1_0_without_a_host_is_for_the_address_it_came_to() {
    let mut head = head("GET", "/", Version::HTTP_10, &[]);
    assert_eq!(check(&mut head, local()).map(|()| head.host()), Ok("127.0.0.1:8080"));
    assert_eq!(head.fields.get(KnownName::HOST), Some(&b"127.0.0.1:8080"[..]));
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
