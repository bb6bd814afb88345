//! Who may use the API: whoever has the token; without one, programs of this machine, and no page in its browsers.

use std::fmt;
use std::hash::Hasher;
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
use siphasher::sip128::Hasher128;
use siphasher::sip128::SipHasher24;

use super::AdminState;
use super::problem::Problem;

/// The token of the API. Only a hash of it is kept, under a secret of this process: comparing takes the same time
/// whatever is compared, and there is nothing to print.
#[derive(Clone, Eq, PartialEq)]
pub struct Token {
    secret: [u8; 16],
    hash: u128,
}

impl Token {
    /// The token without the white space around it; `None`: nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        static SECRET: std::sync::OnceLock<[u8; 16]> = std::sync::OnceLock::new();
        let secret = *SECRET.get_or_init(|| {
            let mut secret = [0; 16];
            getrandom::fill(&mut secret).expect("the system has random bytes");
            secret
        });
        let text = text.trim();
        (!text.is_empty()).then(|| Self { secret, hash: hash(&secret, text.as_bytes()) })
    }

    fn is(&self, presented: &[u8]) -> bool {
        hash(&self.secret, presented) == self.hash
    }
}

fn hash(secret: &[u8; 16], text: &[u8]) -> u128 {
    let mut hasher = SipHasher24::new_with_key(secret);
    hasher.write(text);
    hasher.finish128().as_u128()
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// Who connected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub IpAddr);

/// Lets through who may ask. What probes and scrapers ask needs no token.
pub(super) async fn guard(State(state): State<Arc<AdminState>>, request: Request<Body>, next: Next) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let allowed = match &state.rules.load().token {
        Some(token) => presented(request.headers()).is_some_and(|presented| token.is(presented)),
        None if is_of_this_machine(&request) => true,
        None => return Problem::new(StatusCode::FORBIDDEN, FOREIGN).into_response(),
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

/// For whoever watches over the process.
pub(super) const OPEN: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

const NO_TOKEN: &str = "the API needs the token of `admin.token_file`: `Authorization: Bearer TOKEN`";

const FOREIGN: &str = "the API has no token, so it answers programs of this machine only: ask by its address or as \
                       localhost, and not from a page of another site";

/// The token of the one Authorization line.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let line = line.as_bytes().trim_ascii();
    let (scheme, token) = line.split_at(line.iter().position(u8::is_ascii_whitespace)?);
    scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii())
}

/// Whether this was not sent by a page in a browser that happens to run here: such a page says where it is from, and
/// one that had its own name point here asks under that name.
fn is_of_this_machine(request: &Request<Body>) -> bool {
    let header = |name| request.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
    let of_target = request.uri().authority().map(Authority::as_str);
    let Some(host) = of_target.or_else(|| header(HOST.as_str())) else { return false };
    let is_here = request.extensions().get::<Peer>().is_some_and(|Peer(peer)| peer.to_canonical().is_loopback());
    let site = header("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
    let origin = header(ORIGIN.as_str()).is_none_or(|origin| origin.strip_prefix("http://") == Some(host));
    is_here && is_local_name(host) && site && origin
}

/// An address, or a name that no name server answers for.
fn is_local_name(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_compared_whole_and_never_shown() {
        let token = Token::new(" s3cret\n").unwrap();
        assert!(token.is(b"s3cret"));
        assert!(!token.is(b"s3cre") && !token.is(b"s3crets") && !token.is(b""));
        assert_eq!(token, Token::new("s3cret").unwrap());
        assert_ne!(token, Token::new("s3cret2").unwrap());
        assert_eq!(Token::new(" \n"), None);
        assert_eq!(format!("{token:?}"), "Token(***)");
    }

    #[test]
    fn a_token_is_presented_once_under_the_scheme_bearer() {
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
            is_of_this_machine(&request.extension(Peer([127, 0, 0, 1].into())).body(Body::empty()).unwrap())
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
        let elsewhere = Request::builder().header("host", "127.0.0.1:9090").extension(Peer([10, 0, 0, 1].into()));
        assert!(!is_of_this_machine(&elsewhere.body(Body::empty()).unwrap()));
        assert!(!ask(&[("host", "evil.example:9090")]));
        assert!(!ask(&[("host", "localhost.evil.example")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("origin", "https://evil.example")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("origin", "null")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("origin", "http://127.0.0.1:8080")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("sec-fetch-site", "cross-site")]));
        assert!(!ask(&[("host", "127.0.0.1:9090"), ("sec-fetch-site", "same-site")]));
    }
}
