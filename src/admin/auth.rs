//! Who may use the API: holders of the token, or without a token programs of this machine, but no web page in a
//! browser.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use http::HeaderMap;
use http::HeaderValue;
use http::Request;
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::header::CACHE_CONTROL;
use http::header::HOST;
use http::header::ORIGIN;
use http::header::WWW_AUTHENTICATE;
use http::uri::Authority;

use super::AdminState;
use super::problem::Problem;

/// The address of the peer, as an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerAddress(pub IpAddr);

/// Answers 401 or 403 where the request may not use the API. Probes and scrapers need no token.
pub(super) async fn guard(State(state): State<Arc<AdminState>>, request: Request<Body>, next: Next) -> Response {
    if PUBLIC_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let allowed = match &state.rules.load().token {
        Some(token) => presented(request.headers()).is_some_and(|presented| token.matches(presented)),
        None if is_local_program(&request) => true,
        None => return Problem::new(StatusCode::FORBIDDEN, NOT_LOCAL).into_response(),
    };
    if allowed {
        let mut answer = next.run(request).await;
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        return answer;
    }
    let mut refusal = Problem::new(StatusCode::UNAUTHORIZED, NO_TOKEN).into_response();
    refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"portcullis\""));
    refusal
}

/// The paths of monitoring tools.
pub(super) const PUBLIC_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

const NO_TOKEN: &str = "the API needs the token of `admin.token_file`: `Authorization: Bearer TOKEN`";

const NOT_LOCAL: &str = "the API has no token, so it answers only programs of this machine: call it by its address or \
                         as localhost, not from a web page of another site";

/// The token of the Authorization field. `None`: there is none, or more than one.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let line = line.as_bytes().trim_ascii();
    let (scheme, token) = line.split_at(line.iter().position(u8::is_ascii_whitespace)?);
    scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii())
}

/// Whether a program of this machine sent the request, and not a web page in a browser here. A browser sends the page's
/// origin. A page whose host name was rebound to this address (DNS rebinding) sends that name as the host.
fn is_local_program(request: &Request<Body>) -> bool {
    let header = |name| request.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
    let of_target = request.uri().authority().map(Authority::as_str);
    let Some(host) = of_target.or_else(|| header(HOST.as_str())) else { return false };
    let is_loopback =
        request.extensions().get::<PeerAddress>().is_some_and(|PeerAddress(peer)| peer.to_canonical().is_loopback());
    let is_same_site = header("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
    let is_same_origin = header(ORIGIN.as_str()).is_none_or(|origin| origin.strip_prefix("http://") == Some(host));
    is_loopback && is_local_name(host) && is_same_site && is_same_origin
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
    fn a_token_is_sent_once_under_the_scheme_bearer() {
        let of = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(AUTHORIZATION, line.parse().unwrap());
            }
            presented(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(of(&["Bearer abc"]), Some(b"abc".to_vec()));
        assert_eq!(of(&["bearer   abc "]), Some(b"abc".to_vec()));
        for lines in [&["Basic abc"][..], &["Bearer"], &["abc"], &["Bearer a", "Bearer b"], &[]] {
            assert_eq!(of(lines), None, "{lines:?}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_told_from_programs() {
        let ask = |headers: &[(&str, &str)]| {
            let request =
                headers.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value));
            is_local_program(&request.extension(PeerAddress([127, 0, 0, 1].into())).body(Body::empty()).unwrap())
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
        assert!(!is_local_program(&elsewhere.body(Body::empty()).unwrap()));
        assert!(!ask(&[("host", "evil.example:9090")]));
        assert!(!ask(&[("host", "localhost.evil.example")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("origin", "https://evil.example")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("origin", "null")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("origin", "http://127.0.0.1:8080")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("sec-fetch-site", "cross-site")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("sec-fetch-site", "same-site")]));
    }
}
