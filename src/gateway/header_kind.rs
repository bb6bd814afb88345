//! Kinds of headers: end-to-end, hop-by-hop, forwarding, and misleading ones.

use crate::rules::client::TrustedProxies;
use crate::rules::decision::Policy;
use crate::rules::key::Selector;
use crate::wire::head::{FieldName, KnownName, Name, NameSet};

/// Without dashes.
const WITHOUT_DASHES: [&str; 21] = [
    "cfconnectingip",
    "contentlength",
    "keepalive",
    "proxyauthorization",
    "proxyconnection",
    "transferencoding",
    "trueclientip",
    "xclientip",
    "xforwardedby",
    "xforwardedfor",
    "xforwardedhost",
    "xforwardedport",
    "xforwardedproto",
    "xforwardedprotocol",
    "xforwardedscheme",
    "xforwardedserver",
    "xforwardedssl",
    "xoriginalurl",
    "xrealip",
    "xrequestid",
    "xrewriteurl",
];

/// The characters of a name in lower case that every application reads alike.
const PROPER: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        byte += 1;
    }
    table
};

/// Hop-by-hop even if `Connection` does not name them.
pub const HOPS: NameSet = NameSet::of(&[
    KnownName::CONNECTION,
    KnownName::CONTENT_LENGTH,
    KnownName::EXPECT,
    KnownName::HTTP2_SETTINGS,
    KnownName::KEEP_ALIVE,
    KnownName::PROXY_AUTHENTICATE,
    KnownName::PROXY_AUTHENTICATION_INFO,
    KnownName::PROXY_AUTHORIZATION,
    KnownName::PROXY_CONNECTION,
    KnownName::TE,
    KnownName::TRANSFER_ENCODING,
    KnownName::UPGRADE,
]);

/// How a gateway treats a header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeaderKind {
    /// Passed on.
    EndToEnd,
    /// Only for the next hop, or written anew on each hop.
    HopByHop,
    /// Describes the client and its connection. Only trusted proxies may send it.
    Forwarding,
    /// Might make the application see another request than the rules see.
    Misleading,
}

impl HeaderKind {
    /// The kind of a header by its name.
    pub fn of(name: Name<'_>) -> Self {
        match name {
            // No known name has unusual characters, or misleads.
            Name::Known(known) if NameSet::FORWARDING.has(known) => Self::Forwarding,
            Name::Known(known) if HOPS.has(known) => Self::HopByHop,
            Name::Known(_) => Self::EndToEnd,
            Name::Other(name) => match dashed(name) {
                None => Self::of_proper(name),
                // An application behind CGI, WSGI or Rack reads `X_Forwarded_For` as `X-Forwarded-For`.
                Some(meant) if Self::of_proper(&meant) != Self::EndToEnd || is_decisive(&meant) => Self::Misleading,
                Some(_) => Self::EndToEnd,
            },
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
            Some(b'c' | b't' | b'k' | b'p') if is_known_without_dashes(name) => Self::Misleading,
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
            _ if is_known_without_dashes(name) => Self::Misleading,
            _ => Self::EndToEnd,
        }
    }

    /// Whether a header may be a trailer. Headers that frame, route, authorise or describe the message may not: the
    /// rules could not read them in time.
    pub fn may_trail(name: &str) -> bool {
        if Self::of(Name::of(name)) != Self::EndToEnd {
            return false;
        }
        match name {
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

/// Whether a name is the name of a framing or forwarding header without its dashes (`TransferEncoding`): some servers
/// ignore dashes in names.
fn is_known_without_dashes(name: &str) -> bool {
    let letters = name.bytes().filter(|byte| *byte != b'-');
    // Called for every header that is not known: most differ in their last letter.
    WITHOUT_DASHES
        .iter()
        .any(|known| known.as_bytes().last() == name.as_bytes().last() && letters.clone().eq(known.bytes()))
}

/// The name that some application reads instead of a name with unusual characters; `None` for a name without any.
pub(super) fn dashed(name: &str) -> Option<String> {
    let is_proper = |byte: u8| PROPER[usize::from(byte)];
    // Called for every header: a table without an early exit costs a quarter less than comparing.
    if name.bytes().fold(true, |all, byte| all & is_proper(byte)) {
        return None;
    }
    Some(name.bytes().map(|byte| char::from(if is_proper(byte) { byte } else { b'-' })).collect())
}

/// Headers that decide what a request is. A second one under a similar name would bypass the checks. gunicorn reads
/// `SCRIPT_NAME` from peers that it trusts, and removes it from the path.
pub(super) fn is_decisive(name: &str) -> bool {
    ["host", "authorization", "cookie", "expect", "trailer", "origin", "referer", "user-agent", "range"].contains(&name)
        || ["script-name", "path-info", "path-translated", "request-uri", "request-method", "query-string"]
            .contains(&name)
        || ["content-", "if-", "x-http-method", "x-method-override"].iter().any(|start| name.starts_with(start))
}

fn is_hop(name: &str) -> bool {
    KnownName::of(name.as_bytes()).is_some_and(|known| HOPS.has(known))
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

// The headers that change how a request or an answer is handled.

/// The headers that the rules and `client_ip` of a configuration read, and the headers that matter in every request.
#[derive(Clone, Debug, Default)]
pub struct SignificantHeaders {
    /// In requests: the configured name, and the name that an application may read instead.
    names: Vec<(FieldName, Option<String>)>,
    /// In answers: the headers of outcome rules.
    answers: Vec<FieldName>,
    /// The header in which a trusted proxy names the client, if the configuration sets a single one.
    forwarding: Option<FieldName>,
}

impl SignificantHeaders {
    pub fn new(policy: &Policy, clients: &TrustedProxies) -> Self {
        let forwarding = clients.single_header().cloned();
        let routes = policy.routes.all();
        let conditions = routes.iter().flat_map(|route| &route.condition.headers).map(|(name, _)| name);
        let parts = policy.limits.iter().flat_map(|limit| limit.key.parts.iter().chain(&limit.distinct));
        let parts = parts.chain(policy.lists.iter().filter_map(|list| list.of.as_ref()));
        let parts = parts
            .chain(routes.iter().filter_map(|route| route.known_clients.as_ref()).flat_map(|known| &known.of.parts));
        let selected = parts.flat_map(|part| part.selector.choices()).filter_map(Selector::header);
        let names = conditions.chain(selected).chain(&forwarding);
        let names = names.map(|name| (name.clone(), dashed(name.as_str()))).collect();
        let outcomes = routes.iter().filter_map(|route| route.outcome.as_ref());
        let sides = outcomes.flat_map(|rule| rule.success.iter().chain(&rule.failure));
        let answers = sides.flat_map(|side| &side.headers).map(|(name, _)| name.clone()).collect();
        Self { names, answers, forwarding }
    }

    /// The rules read this header too.
    pub fn add(&mut self, name: &FieldName) {
        self.names.push((name.clone(), dashed(name.as_str())));
    }

    /// Whether the gateway or the application may decide a request by this header.
    pub fn in_requests(&self, name: Name<'_>) -> bool {
        HeaderKind::of(name) != HeaderKind::EndToEnd
            || is_decisive(name.as_str())
            || self.names.iter().any(|(known, _)| name == known.into())
    }

    /// Whether the gateway or the client may read the meaning of an answer from this header.
    pub fn in_answers(&self, name: Name<'_>) -> bool {
        name == KnownName::SET_COOKIE.into()
            || name == KnownName::LOCATION.into()
            || is_decisive(name.as_str())
            || self.answers.iter().any(|known| name == known.into())
    }

    /// The header in which a trusted proxy names the client, if the configuration sets a single one.
    pub fn client_name(&self) -> Option<&FieldName> {
        self.forwarding.as_ref()
    }

    /// Whether a trusted proxy names the client in this header. No other peer may send it.
    pub fn names_the_client(&self, name: Name<'_>) -> bool {
        self.forwarding.as_ref().is_some_and(|forwarding| name == forwarding.into())
    }

    /// Whether an application may read this header as one that the rules read, though its name differs.
    pub fn is_lookalike(&self, name: Name<'_>) -> bool {
        if self.names.is_empty() {
            return false;
        }
        // No known name has unusual characters.
        let Name::Other(other) = name else { return false };
        let Some(meant) = dashed(other) else { return false };
        let is_itself = |(known, _): &(FieldName, Option<String>)| name == known.into();
        let is_meant = |(known, dashed): &(FieldName, Option<String>)| {
            dashed.as_deref().unwrap_or_else(|| known.as_str()) == meant
        };
        self.names.iter().any(is_meant) && !self.names.iter().any(is_itself)
    }
}

// By which header a peer that is no trusted proxy names its client. It may be an attacker, or a proxy that is missing in the
// configuration, whose clients then all count as one: advice says so.

/// The headers in which proxies name their client, the most frequent first.
const USUAL: [&str; 9] = [
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "x-envoy-external-address",
];

/// A header that names a client. The one that is read from a trusted proxy is the first, then the usual ones.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::gateway) enum ClientHeader {
    Configured,
    Usual(usize),
}

impl ClientHeader {
    /// `None`: the header names no client.
    pub(in crate::gateway) fn of(name: Name<'_>, significant_headers: &SignificantHeaders) -> Option<Self> {
        if significant_headers.names_the_client(name) {
            return Some(Self::Configured);
        }
        USUAL.iter().position(|usual| *usual == name.as_str()).map(Self::Usual)
    }

    pub(in crate::gateway) fn name(self, significant_headers: &SignificantHeaders) -> &str {
        match self {
            Self::Configured => significant_headers.client_name().map_or("", FieldName::as_str),
            Self::Usual(position) => USUAL[position],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_the_rules_read_has_one_name() {
        let significant_headers = |names: &[&str]| SignificantHeaders {
            names: names.iter().map(|name| (name.parse().unwrap(), dashed(name))).collect(),
            ..SignificantHeaders::default()
        };
        assert!(significant_headers(&["x-tenant"]).is_lookalike(Name::of("x_tenant")));
        assert!(!significant_headers(&["x-tenant"]).is_lookalike(Name::of("x-tenant")));
        assert!(!significant_headers(&["x-tenant"]).is_lookalike(Name::of("x_other")));
        assert!(!significant_headers(&["x_tenant"]).is_lookalike(Name::of("x_tenant")));
        assert!(significant_headers(&["x_tenant"]).is_lookalike(Name::of("x.tenant")));
    }

    #[track_caller]
    fn check(name: &str, expected: HeaderKind) {
        assert_eq!(HeaderKind::of(Name::of(&name.to_lowercase())), expected, "{name}");
    }

    #[test]
    fn hop_by_hop_headers_are_known() {
        for name in [
            "Connection",
            "Keep-Alive",
            "TE",
            "Transfer-Encoding",
            "Upgrade",
            "HTTP2-Settings",
            "Proxy-Authenticate",
            "Proxy-Authorization",
        ] {
            check(name, HeaderKind::HopByHop);
        }
    }

    #[test]
    fn forwarding_headers_are_known() {
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
    fn misleading_headers_are_known() {
        for name in [
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-Forwarded-Uri",
            "Proxy",
            "X_Forwarded_For",
            "Content_Length",
            "SCRIPT_NAME",
            "Path_Info",
            "REQUEST_URI",
            "X-Script-Name",
            "X.Real.IP",
            "TransferEncoding",
            "Content-Len-gth",
            "XForwardedFor",
            "CF-ConnectingIP",
        ] {
            check(name, HeaderKind::Misleading);
        }
    }

    #[test]
    fn all_other_headers_are_end_to_end() {
        for name in
            ["Host", "Cookie", "session_token", "X-Api-Key", "X-HTTP-Method-Override", "Trailer", "Via", "Content-Type"]
        {
            check(name, HeaderKind::EndToEnd);
        }
    }

    #[test]
    fn the_sets_have_all_known_names_of_their_kinds() {
        for known in KnownName::all() {
            let kind = match (NameSet::FORWARDING.has(known), HOPS.has(known)) {
                (true, _) => HeaderKind::Forwarding,
                (_, true) => HeaderKind::HopByHop,
                _ => HeaderKind::EndToEnd,
            };
            assert_eq!(HeaderKind::of_proper(known.as_str()), kind, "{known:?}");
        }
    }

    #[test]
    fn no_known_name_has_unusual_characters() {
        for known in KnownName::all() {
            assert_eq!(dashed(known.as_str()), None, "{known:?}");
        }
    }

    #[test]
    fn what_frames_routes_or_authorises_may_not_trail() {
        let may_trail = |name: &str| HeaderKind::may_trail(&name.to_lowercase());
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
