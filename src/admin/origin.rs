//! Where a request comes from: a program, a web page of this listener, or a web page of another site.

use std::net::IpAddr;

use axum::body::Body;
use http::HeaderValue;
use http::Request;
use http::Version;
use http::header::HOST;
use http::header::ORIGIN;
use http::uri::Authority;

use super::problem::Problem;

/// The address of the peer, as an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerAddress(pub IpAddr);

/// An error says that the request names several hosts or origins, or no host: which of them is judged must not depend on
/// their order.
pub(super) fn check_unambiguous(request: &Request<Body>) -> Result<(), Problem> {
    let lines = |name| request.headers().get_all(name).iter().count();
    let needs_host = request.version() == Version::HTTP_11;
    match (lines(HOST), lines(ORIGIN)) {
        (0, _) if needs_host => Err(Problem::bad_request("the Host header is missing")),
        (2.., _) => Err(Problem::bad_request("there is more than one Host header")),
        (_, 2..) => Err(Problem::bad_request("there is more than one Origin header")),
        _ => Ok(()),
    }
}

/// Whether a program of this machine sent the request, or the page of this listener in a browser here. A page whose host
/// name was rebound to this address (DNS rebinding) sends that name as the host.
pub(super) fn is_local(request: &Request<Body>) -> bool {
    let is_loopback =
        request.extensions().get::<PeerAddress>().is_some_and(|PeerAddress(peer)| peer.to_canonical().is_loopback());
    is_loopback && host(request).is_some_and(is_local_name) && is_same_site(request)
}

/// Whether no web page of another site sent the request. A browser sends the origin of the page.
pub(super) fn is_same_site(request: &Request<Body>) -> bool {
    let is_same_site = header(request, "sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
    let is_same_origin = header(request, ORIGIN.as_str()).is_none_or(|origin| {
        // A proxy in front of the listener may speak TLS.
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.is_some() && authority == host(request)
    });
    is_same_site && is_same_origin
}

/// Whether a browser reached the listener by TLS, through a proxy: it says so in the origin of its page.
pub(super) fn is_secure(request: &Request<Body>) -> bool {
    header(request, ORIGIN.as_str()).is_some_and(|origin| origin.starts_with("https://"))
}

/// The host and port that the client asked for.
pub(super) fn host(request: &Request<Body>) -> Option<&str> {
    request.uri().authority().map(Authority::as_str).or_else(|| header(request, HOST.as_str()))
}

fn header<'r>(request: &'r Request<Body>, name: &str) -> Option<&'r str> {
    request.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default())
}

/// An address, or `localhost`, which no name server can point elsewhere.
fn is_local_name(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_are_told_from_programs() {
        let ask = |headers: &[(&str, &str)]| {
            let request =
                headers.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value));
            is_local(&request.extension(PeerAddress([127, 0, 0, 1].into())).body(Body::empty()).unwrap())
        };
        for host in ["127.0.0.1:9090", "[::1]:9090", "localhost", "LOCALHOST:9090"] {
            assert!(ask(&[("host", host)]), "{host}");
        }
        assert!(ask(&[
            ("host", "localhost:9090"),
            ("origin", "http://localhost:9090"),
            ("sec-fetch-site", "same-origin")
        ]));
        assert!(!ask(&[]));
        let elsewhere =
            Request::builder().header("host", "127.0.0.1:9090").extension(PeerAddress([10, 0, 0, 1].into()));
        assert!(!is_local(&elsewhere.body(Body::empty()).unwrap()));
        assert!(!ask(&[("host", "evil.example:9090")]));
        assert!(!ask(&[("host", "localhost.evil.example")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("origin", "https://evil.example")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("origin", "null")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("origin", "http://127.0.0.1:8080")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("sec-fetch-site", "cross-site")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("sec-fetch-site", "same-site")]));
    }

    #[test]
    fn a_page_behind_a_proxy_with_tls_is_the_same_site() {
        let ask = |origin: &str| {
            let request = Request::builder().header("host", "admin.example").header("origin", origin);
            let request = request.body(Body::empty()).unwrap();
            (is_same_site(&request), is_secure(&request))
        };
        assert_eq!(ask("https://admin.example"), (true, true));
        assert_eq!(ask("http://admin.example"), (true, false));
        assert_eq!(ask("https://shop.example"), (false, true));
    }
}
