//! Who may use the admin listener: holders of the token or of a session that it opened, or without a token programs of this
//! machine and the dashboard in a browser here, but no web page of another site.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hasher;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use parking_lot::Mutex;
use siphasher::sip128::{Hasher128, SipHasher24};
use smallvec::SmallVec;
use tokio::time::Instant;
use tracing::warn;

use super::AdminState;
use super::problem::Problem;
use super::session::{CSRF_HEADER, SessionPlace, peer, session_ids, too_many_attempts};

/// The paths of monitoring tools.
const PUBLIC_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

const NO_TOKEN: &str = "the API needs the token of `admin.token_file`: `Authorization: Bearer TOKEN`";

const NOT_LOCAL: &str = "the admin listener has no token, so it answers only programs and browsers of this machine: call it \
                         by its address or as localhost, not from a web page of another site";

const ANOTHER_SITE: &str = "a web page of another site sent this request";

const NO_CSRF_TOKEN: &str = "a change through a session needs its token in `X-CSRF-Token`";

/// What a request needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PathAccess {
    /// Nothing: probes and scrapers may ask from anywhere.
    Monitoring,
    /// No token: the files of the dashboard, and its form for the token.
    Page,
    /// The token or a session, where a token is configured.
    Api,
}

impl PathAccess {
    pub(super) fn of(method: &Method, path: &str) -> Self {
        if PUBLIC_PATHS.contains(&path) {
            Self::Monitoring
        } else if path == "/" || path.starts_with("/page/") || (path == "/session" && method != Method::DELETE) {
            Self::Page
        } else {
            Self::Api
        }
    }
}

/// Answers 400, 401 or 403 where the request may not use the listener.
pub(super) async fn guard(State(state): State<Arc<AdminState>>, request: Request<Body>, next: Next) -> Response {
    let access = PathAccess::of(request.method(), request.uri().path());
    if access == PathAccess::Monitoring {
        return next.run(request).await;
    }
    if let Err(refusal) =
        check_unambiguous(&request).map_err(Refusal::from).and_then(|()| admit(&state, access, &request))
    {
        return refusal.into_response();
    }
    let mut answer = next.run(request).await;
    answer.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Why a request may not use the listener.
#[derive(Debug)]
enum Refusal {
    Problem(Problem),
    /// Too many wrong tokens came from its address. So long it must wait.
    TooManyAttempts(Duration),
}

fn admit(state: &AdminState, access: PathAccess, request: &Request<Body>) -> Result<(), Refusal> {
    let rules = state.rules.load();
    let forbidden = |why| Err(Problem::new(StatusCode::FORBIDDEN, why).into());
    match (&rules.token, access) {
        (None, _) if is_local(request) => Ok(()),
        (None, _) => forbidden(NOT_LOCAL),
        // The files hold no secrets, and links from elsewhere lead to them.
        (Some(_), PathAccess::Page) if request.uri().path() != "/session" || is_same_site(request) => Ok(()),
        (Some(_), PathAccess::Page) => forbidden(ANOTHER_SITE),
        (Some(token), _) if request.headers().contains_key(AUTHORIZATION) => check_bearer(state, token, request),
        (Some(_), _) => {
            let ids = session_ids(request.headers());
            let csrf_token = state.sessions.csrf_token(&ids, &SessionPlace::of(request), Instant::now());
            let csrf_token = csrf_token.ok_or_else(unauthorized)?;
            let is_safe = request.method().is_safe();
            match request.headers().get(CSRF_HEADER) {
                _ if !is_same_site(request) => forbidden(ANOTHER_SITE),
                Some(sent) if csrf_token.matches(sent.as_bytes()) => Ok(()),
                None if is_safe => Ok(()),
                _ => forbidden(NO_CSRF_TOKEN),
            }
        }
    }
}

/// A token that is not the right one is a guess. After a few of them an address waits, whatever it sends: but not after the same
/// one again and again, as a program sends it whose token is old.
fn check_bearer(state: &AdminState, token: &Token, request: &Request<Body>) -> Result<(), Refusal> {
    let Some(presented) = presented(request.headers()) else { return Err(unauthorized().into()) };
    let (peer, now) = (peer(request), Instant::now());
    if let Some(wait) = state.failed_bearers.wait(peer, now) {
        return Err(Refusal::TooManyAttempts(wait));
    }
    if token.matches(presented) {
        return Ok(());
    }
    if state.failed_bearers.add(peer, token.hash_of(presented), now) {
        warn!(%peer, "a program sent a wrong token to the admin API");
    }
    Err(unauthorized().into())
}

fn unauthorized() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, NO_TOKEN)
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut refusal = match self {
            Self::Problem(problem) => problem.into_response(),
            Self::TooManyAttempts(wait) => too_many_attempts(wait),
        };
        if refusal.status() == StatusCode::UNAUTHORIZED {
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"portcullis\""));
        }
        refusal
    }
}

/// The token of the Authorization field. `None`: there is none, or more than one.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let line = line.as_bytes().trim_ascii();
    let (scheme, token) = line.split_at(line.iter().position(u8::is_ascii_whitespace)?);
    scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii())
}

// The token of the API.

/// Only a hash of it is kept, keyed with a secret of this process. So comparing two tokens takes
/// the same time whatever they are, and the token cannot be printed.
#[derive(Clone, Eq, PartialEq)]
pub struct Token {
    secret: [u8; 16],
    hash: u128,
}

impl Token {
    /// Trims white space. `None`: nothing is left.
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

    pub(super) fn matches(&self, presented: &[u8]) -> bool {
        self.hash_of(presented) == self.hash
    }

    /// Tells wrong tokens apart.
    pub(super) fn hash_of(&self, presented: &[u8]) -> u128 {
        hash(&self.secret, presented)
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

// Bounds how often an address may try a token.

/// So many different wrong tokens an address may send in one minute.
const MAX_GUESSES: usize = 5;

const WINDOW: Duration = Duration::from_secs(60);

const MAX_ADDRESSES: usize = 1024;

/// The wrong tokens of the last minute, by address. The address whose first one is the oldest makes room for another.
#[derive(Debug, Default)]
pub(in crate::admin) struct FailedAttempts {
    failed: Mutex<HashMap<IpAddr, WrongTokens>>,
}

#[derive(Debug)]
struct WrongTokens {
    /// Different ones.
    hashes: SmallVec<[u128; MAX_GUESSES]>,
    first: Instant,
}

impl FailedAttempts {
    /// How long this address must wait before it may try again. `None`: it may try now.
    pub(in crate::admin) fn wait(&self, peer: IpAddr, now: Instant) -> Option<Duration> {
        let failed = self.failed.lock();
        let wrong = failed.get(&network(peer)).filter(|wrong| wrong.hashes.len() >= MAX_GUESSES)?;
        WINDOW.checked_sub(now.duration_since(wrong.first)).filter(|wait| !wait.is_zero())
    }

    /// Returns whether it is another token than those before.
    pub(in crate::admin) fn add(&self, peer: IpAddr, token: u128, now: Instant) -> bool {
        let mut failed = self.failed.lock();
        failed.retain(|_, wrong| now.duration_since(wrong.first) < WINDOW);
        let peer = network(peer);
        if failed.len() >= MAX_ADDRESSES
            && !failed.contains_key(&peer)
            && let Some(oldest) = failed.iter().min_by_key(|(_, wrong)| wrong.first).map(|(peer, _)| *peer)
        {
            failed.remove(&oldest);
        }
        let wrong = failed.entry(peer).or_insert_with(|| WrongTokens { hashes: SmallVec::new(), first: now });
        let is_new = !wrong.hashes.contains(&token);
        if is_new {
            wrong.hashes.push(token);
        }
        is_new
    }
}

/// One client has a whole /64 of IPv6 addresses.
pub(super) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

// Where a request comes from: a program, a web page of this listener, or a web page of another site.

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
    fn a_token_is_compared_whole_and_never_shown() {
        let token = Token::new(" s3cret\n").unwrap();
        assert!(token.matches(b"s3cret"));
        assert!(!token.matches(b"s3cre") && !token.matches(b"s3crets") && !token.matches(b""));
        assert_eq!(token, Token::new("s3cret").unwrap());
        assert_ne!(token, Token::new("s3cret2").unwrap());
        assert_eq!(Token::new(" \n"), None);
        assert_eq!(format!("{token:?}"), "Token(***)");
    }

    #[test]
    fn an_address_that_failed_often_waits_for_the_rest_of_the_minute() {
        let (attempts, now) = (FailedAttempts::default(), Instant::now());
        let peer = |text: &str| text.parse::<IpAddr>().unwrap();
        let wait = |text: &str, second| attempts.wait(peer(text), now + Duration::from_secs(second));
        for second in 0..5 {
            assert_eq!(wait("2001:db8::1", second), None);
            for again in [false, true] {
                let is_new = attempts.add(peer("2001:db8::1"), second.into(), now + Duration::from_secs(second));
                assert_eq!(is_new, !again);
            }
        }
        assert_eq!(wait("2001:db8::2", 10), Some(Duration::from_secs(50)));
        assert_eq!(wait("2001:db8:0:1::1", 10), None);
        assert_eq!(wait("2001:db8::1", 60), None);
        assert!(attempts.add(peer("2001:db8::1"), 0, now + Duration::from_secs(61)));
        assert_eq!(wait("2001:db8::1", 61), None);
    }

    #[test]
    fn many_addresses_do_not_grow_the_table() {
        let (attempts, now) = (FailedAttempts::default(), Instant::now());
        for number in 0..2 * u32::try_from(MAX_ADDRESSES).unwrap() {
            attempts.add(std::net::Ipv4Addr::from_bits(number).into(), 0, now);
        }
        assert_eq!(attempts.failed.lock().len(), MAX_ADDRESSES);
    }

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
}
