//! Which fields are whose: those between two hops, those that say who asked, those that would move a request.

use http::HeaderName;
use http::header::ACCEPT;
use http::header::ACCEPT_ENCODING;
use http::header::ACCEPT_LANGUAGE;
use http::header::AUTHORIZATION;
use http::header::CACHE_CONTROL;
use http::header::CONTENT_TYPE;
use http::header::COOKIE;
use http::header::HOST;
use http::header::LOCATION;
use http::header::ORIGIN;
use http::header::REFERER;
use http::header::SET_COOKIE;
use http::header::USER_AGENT;

use crate::client::TrustedProxies;
use crate::decision::Policy;
use crate::key::Selector;

/// What a field is to a gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeaderKind {
    /// From end to end.
    EndToEnd,
    /// Between two neighbours, or written anew on each hop.
    HopByHop,
    /// Says who asked, and how: believed from trusted proxies alone.
    Forwarding,
    /// Would make an application see another request than the rules saw.
    Misleading,
}

impl HeaderKind {
    /// The kind of a field by its name, which is in lower case as all names of a header map are.
    pub fn of(name: &HeaderName) -> Self {
        // Nearly all fields are among these, whose names need not be read.
        if matches!(*name, HOST | USER_AGENT | ACCEPT | ACCEPT_LANGUAGE | ACCEPT_ENCODING | COOKIE)
            || matches!(*name, REFERER | ORIGIN | CONTENT_TYPE | AUTHORIZATION | CACHE_CONTROL)
        {
            return Self::EndToEnd;
        }
        match dashed(name.as_str()) {
            None => Self::of_proper(name.as_str()),
            // `X_Forwarded_For` is `X-Forwarded-For` to an application behind CGI, WSGI or Rack.
            Some(meant) if Self::of_proper(&meant) != Self::EndToEnd || is_weighty(&meant) => Self::Misleading,
            Some(_) => Self::EndToEnd,
        }
    }

    fn of_proper(name: &str) -> Self {
        match name.as_bytes().first() {
            Some(b'x') => Self::of_x(name),
            Some(b'c' | b'e' | b'k' | b'p' | b't' | b'u' | b'h') if is_hop(name) => Self::HopByHop,
            Some(b'p') if name == "proxy" => Self::Misleading,
            Some(b'a' | b'c' | b'd' | b'f' | b'h' | b'i' | b'p' | b'r' | b't' | b'w') if is_vendor(name) => {
                Self::Forwarding
            }
            _ => Self::EndToEnd,
        }
    }

    fn of_x(name: &str) -> Self {
        match name {
            "x-original-url"
            | "x-original-uri"
            | "x-original-path"
            | "x-original-method"
            | "x-rewrite-url"
            | "x-rewrite-uri"
            | "x-rewrite-path"
            | "x-override-url"
            | "x-forwarded-uri"
            | "x-forwarded-url"
            | "x-forwarded-path"
            | "x-forwarded-method"
            | "x-envoy-original-path"
            | "x-envoy-original-method"
            | "x-waws-unencoded-url"
            | "x-script-name"
            | "x-path-info"
            | "x-http-destinationurl" => Self::Misleading,
            "x-real-ip"
            | "x-real-port"
            | "x-client-ip"
            | "x-clientip"
            | "x-client-addr"
            | "x-cluster-client-ip"
            | "x-true-client-ip"
            | "x-true-ip"
            | "x-originating-ip"
            | "x-original-forwarded-for"
            | "x-original-host"
            | "x-original-proto"
            | "x-original-for"
            | "x-original-remote-addr"
            | "x-host"
            | "x-http-host-override"
            | "x-host-override"
            | "x-proxyuser-ip"
            | "x-remote-ip"
            | "x-remote-addr"
            | "x-remote-host"
            | "x-coming-from"
            | "x-envoy-external-address"
            | "x-envoy-peer-address"
            | "x-azure-clientip"
            | "x-azure-socketip"
            | "x-appengine-user-ip"
            | "x-appengine-remote-addr"
            | "x-akamai-client-ip"
            | "x-nf-client-connection-ip"
            | "x-sucuri-clientip"
            | "x-vercel-forwarded-for"
            | "x-vercel-proxied-for"
            | "x-amzn-remapped-host"
            | "x-scheme"
            | "x-url-scheme"
            | "x-ssl"
            | "x-https"
            | "x-request-id" => Self::Forwarding,
            _ if name.starts_with("x-forward") || name.starts_with("x-proxied") => Self::Forwarding,
            _ => Self::EndToEnd,
        }
    }

    /// Whether a field may stand after a body: one that frames, routes, authorises or describes the message came too
    /// late to be looked at.
    pub fn may_trail(name: &HeaderName) -> bool {
        if Self::of(name) != Self::EndToEnd {
            return false;
        }
        match name.as_str() {
            "content-digest" | "content-md5" => true,
            "host"
            | "authorization"
            | "www-authenticate"
            | "authentication-info"
            | "cookie"
            | "set-cookie"
            | "expect"
            | "max-forwards"
            | "range"
            | "cache-control"
            | "pragma"
            | "expires"
            | "age"
            | "date"
            | "vary"
            | "location"
            | "retry-after"
            | "warning"
            | "trailer"
            | "accept"
            | "origin"
            | "referer"
            | "x-method-override" => false,
            name => !["content-", "if-", "accept-", "access-control-", "proxy-", "x-http-"]
                .iter()
                .any(|prefix| name.starts_with(prefix)),
        }
    }
}

/// The name that some application takes a name with odd characters for; `None` for a name without any.
fn dashed(name: &str) -> Option<String> {
    let is_proper = |byte: u8| PROPER[usize::from(byte)];
    // Asked of every field: a table without a way out in the middle costs a quarter less than comparing.
    if name.bytes().fold(true, |all, byte| all & is_proper(byte)) {
        return None;
    }
    Some(name.bytes().map(|byte| char::from(if is_proper(byte) { byte } else { b'-' })).collect())
}

/// The characters of a name that every application reads alike, once it is in lower case.
const PROPER: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        byte += 1;
    }
    table
};

/// Fields that decide what a request is, and must not come a second time under a name that nobody checked. gunicorn takes
/// `SCRIPT_NAME` from whoever it trusts, and that off the path.
fn is_weighty(name: &str) -> bool {
    ["host", "authorization", "cookie", "expect", "trailer", "origin", "referer", "user-agent", "range"].contains(&name)
        || ["script-name", "path-info", "path-translated", "request-uri", "request-method", "query-string"]
            .contains(&name)
        || ["content-", "if-", "x-http-method", "x-method-override"].iter().any(|start| name.starts_with(start))
}

/// The fields that a configuration looks at: its rules, and its `client_ip`.
#[derive(Clone, Debug, Default)]
pub struct SignificantHeaders {
    /// Of requests: as configured, and as an application may read it.
    names: Vec<(HeaderName, Option<String>)>,
    /// Of answers: those that outcomes name.
    answers: Vec<HeaderName>,
    /// In which a trusted proxy says who asks, when it is one of its own.
    forwarding: Option<HeaderName>,
}

impl SignificantHeaders {
    pub fn new(policy: &Policy, clients: &TrustedProxies) -> Self {
        let forwarding = clients.single_header().cloned();
        let routes = &policy.routes.routes;
        let conditions = routes.iter().flat_map(|route| &route.condition.headers).map(|(name, _)| name);
        let parts = policy.limits.iter().flat_map(|limit| limit.key.parts.iter().chain(&limit.distinct));
        let parts = parts.chain(policy.lists.iter().filter_map(|list| list.of.as_ref()));
        let parts = parts.chain(routes.iter().filter_map(|route| Some(&route.known_clients.as_ref()?.of)));
        let selected = parts.filter_map(|part| match &part.selector {
            Selector::Header(name) => Some(name),
            _ => None,
        });
        let names = conditions.chain(selected).chain(&forwarding);
        let names = names.map(|name| (name.clone(), dashed(name.as_str()))).collect();
        let outcomes = routes.iter().filter_map(|route| route.outcome.as_ref());
        let sides = outcomes.flat_map(|rule| rule.success.iter().chain(&rule.failure));
        let answers = sides.flat_map(|side| &side.headers).map(|(name, _)| name.clone()).collect();
        Self { names, answers, forwarding }
    }

    /// Whether what becomes of a request may depend on this field of it, here or at the application.
    pub fn in_requests(&self, name: &HeaderName) -> bool {
        HeaderKind::of(name) != HeaderKind::EndToEnd
            || is_weighty(name.as_str())
            || self.names.iter().any(|(known, _)| known == name)
    }

    /// Whether what an answer means, here or to the client, may depend on this field of it.
    pub fn in_answers(&self, name: &HeaderName) -> bool {
        *name == SET_COOKIE || *name == LOCATION || is_weighty(name.as_str()) || self.answers.contains(name)
    }

    /// Whether a field is the one in which a trusted proxy says who asks: nobody else may write it.
    pub fn says_who_asks(&self, name: &HeaderName) -> bool {
        self.forwarding.as_ref() == Some(name)
    }

    /// Whether an application may take a field for one that the rules look at, which they did not see under its name.
    pub fn is_mistaken_for_one(&self, name: &HeaderName) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let Some(meant) = dashed(name.as_str()) else { return false };
        let is_itself = |(significant_headers, _): &(HeaderName, Option<String>)| significant_headers == name;
        let is_meant = |(significant_headers, dashed): &(HeaderName, Option<String>)| {
            dashed.as_deref().unwrap_or_else(|| significant_headers.as_str()) == meant
        };
        self.names.iter().any(is_meant) && !self.names.iter().any(is_itself)
    }
}

/// Whether a field is for the next neighbour alone, whatever `Connection` names.
pub fn is_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "content-length"
            | "expect"
            | "http2-settings"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authentication-info"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "transfer-encoding"
            | "upgrade"
    )
}

fn is_vendor(name: &str) -> bool {
    matches!(
        name,
        "forwarded"
            | "forwarded-for"
            | "forwarded-for-ip"
            | "forwarded-proto"
            | "forwarded-host"
            | "front-end-https"
            | "true-client-ip"
            | "cf-connecting-ip"
            | "cf-connecting-ipv6"
            | "cf-pseudo-ipv4"
            | "cloudfront-viewer-address"
            | "cloudfront-forwarded-proto"
            | "fastly-client-ip"
            | "fastly-ssl"
            | "fly-client-ip"
            | "do-connecting-ip"
            | "ali-cdn-real-ip"
            | "cdn-src-ip"
            | "cdn-real-ip"
            | "incap-client-ip"
            | "wl-proxy-client-ip"
            | "wl-proxy-ssl"
            | "proxy-client-ip"
            | "http-client-ip"
            | "http-x-forwarded-for"
            | "client-ip"
            | "remote-addr"
            | "remote-ip"
            | "akamai-client-ip"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: HeaderKind) {
        let name = HeaderName::from_bytes(name.as_bytes()).expect(name);
        assert_eq!(HeaderKind::of(&name), expected, "{name}");
    }

    #[test]
    fn fields_between_neighbours_are_known() {
        for name in
            ["Connection", "Keep-Alive", "TE", "Transfer-Encoding", "Upgrade", "HTTP2-Settings", "Proxy-Authenticate"]
        {
            check(name, HeaderKind::HopByHop);
        }
    }

    #[test]
    fn fields_that_say_who_asked_are_known() {
        for name in [
            "X-Forwarded-For",
            "X-Forwarded-Prefix",
            "Forwarded",
            "X-Real-IP",
            "True-Client-IP",
            "CF-Connecting-IP",
            "Fly-Client-IP",
            "Fastly-Client-IP",
            "WL-Proxy-Client-IP",
            "Client-IP",
            "X-Request-Id",
            "Front-End-Https",
        ] {
            check(name, HeaderKind::Forwarding);
        }
    }

    #[test]
    fn fields_that_would_move_a_request_are_known() {
        for name in [
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-Forwarded-Uri",
            "Proxy",
            "X_Forwarded_For",
            "Content_Length",
            "SCRIPT_NAME",
            "Path_Info",
            "X-Script-Name",
            "X.Real.IP",
        ] {
            check(name, HeaderKind::Misleading);
        }
    }

    #[test]
    fn everything_else_is_left_alone() {
        for name in
            ["Host", "Cookie", "session_token", "X-Api-Key", "X-HTTP-Method-Override", "Trailer", "Via", "Content-Type"]
        {
            check(name, HeaderKind::EndToEnd);
        }
    }

    #[test]
    fn a_field_that_the_rules_look_at_has_one_name() {
        let significant_headers = |names: &[&'static str]| SignificantHeaders {
            names: names.iter().map(|name| (HeaderName::from_static(name), dashed(name))).collect(),
            ..SignificantHeaders::default()
        };
        let name = HeaderName::from_static;
        assert!(significant_headers(&["x-tenant"]).is_mistaken_for_one(&name("x_tenant")));
        assert!(!significant_headers(&["x-tenant"]).is_mistaken_for_one(&name("x-tenant")));
        assert!(!significant_headers(&["x-tenant"]).is_mistaken_for_one(&name("x_other")));
        assert!(!significant_headers(&["x_tenant"]).is_mistaken_for_one(&name("x_tenant")));
        assert!(significant_headers(&["x_tenant"]).is_mistaken_for_one(&name("x.tenant")));
    }

    #[test]
    fn what_frames_routes_or_authorises_may_not_trail() {
        let may_trail = |name: &str| HeaderKind::may_trail(&HeaderName::from_bytes(name.as_bytes()).expect(name));
        for name in
            ["Host", "Content-Length", "Content-Type", "Authorization", "X-Forwarded-For", "Cookie", "X_Real_IP"]
        {
            assert!(!may_trail(name), "{name}");
        }
        for name in ["X-Checksum", "Server-Timing", "ETag", "Content-Digest", "Grpc-Status"] {
            assert!(may_trail(name), "{name}");
        }
    }
}
