//! The head of a request as rules see it.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;

use caseless::Caseless;
use http::Method;
use serde::de::IgnoredAny;
use smallvec::SmallVec;
use unicode_normalization::UnicodeNormalization;

use super::path::RequestPath;
use super::query::RequestQuery;
use crate::rules::client::{ClientIp, Reputation};
use crate::rules::request::fields::BodyFields;
use crate::rules::request::not_understood::NotUnderstood;
use crate::rules::request::strict::cookies;
use crate::rules::request::urlencoded::Escapes;
use crate::rules::request::{text, urlencoded};
use crate::wire::head;
use crate::wire::head::{Fields, KnownName, Name};
use crate::words::base64;

/// The head in the canonical form that rules compare. Borrows from the received head.
pub struct CanonicalHead<'r> {
    pub method: &'r Method,
    pub host: CanonicalHost<'r>,
    pub path: RequestPath<'r>,
    pub query: RequestQuery<'r>,
    pub fields: &'r Fields,
    pub client: ClientIp,
    /// The decisions about the client in lists that follow a source.
    pub reputation: Reputation,
}

impl<'r> CanonicalHead<'r> {
    /// Reads what rules need. Framing checks have settled the one host that the request is for (absolute target,
    /// `:authority` or `Host`).
    pub fn read(head: &'r head::RequestHead, client: ClientIp) -> Self {
        let (path, query) = head.target();
        Self {
            method: &head.method,
            host: CanonicalHost::new(head.host()),
            path: RequestPath::new(path),
            query: RequestQuery::new(path, query),
            fields: &head.fields,
            client,
            reputation: Reputation::default(),
        }
    }
}

/// Fields and queries hold tokens, so neither is shown.
impl fmt::Debug for CanonicalHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CanonicalHead")
            .field("method", self.method)
            .field("host", &self.host)
            .field("path", &self.path)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

// One canonical host for all its spellings.

/// The bytes of a host that is canonical as it comes.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        byte += 1;
    }
    table
};

/// A host in lower case, without port and final dot. An IPv6 address keeps its brackets and has one spelling.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CanonicalHost<'r>(Cow<'r, str>);

impl<'r> CanonicalHost<'r> {
    pub fn new(authority: &'r str) -> Self {
        // Nearly all hosts are canonical as they come.
        if authority.bytes().fold(true, |all, byte| all & PLAIN[usize::from(byte)]) && !authority.ends_with('.') {
            return Self(Cow::Borrowed(authority));
        }
        let host = authority.rsplit('@').next().unwrap_or_default().trim();
        let colons = host.bytes().filter(|byte| *byte == b':').count();
        if let Some(address) = if colons > 1 { ipv6(host) } else { None } {
            let canonical = format!("[{address}]");
            return Self(match host.get(..canonical.len()) {
                Some(sent) if sent == canonical => Cow::Borrowed(sent),
                _ => Cow::Owned(canonical),
            });
        }
        let host = host.split(':').next().unwrap_or_default();
        let host = host.trim_end_matches(|char: char| char == '.' || char.is_whitespace());
        if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Self(Cow::Owned(host.to_ascii_lowercase()))
        } else {
            Self(Cow::Borrowed(host))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The address of an IPv6 literal, with or without brackets and zone.
fn ipv6(host: &str) -> Option<Ipv6Addr> {
    let literal = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host,
    };
    literal.split('%').next().unwrap_or_default().parse().ok()
}

// Header values as text, and the credentials in them.

/// Every value of a header, as sent, without white space around it. Bytes that are not UTF-8 are read as Latin-1, so
/// that different values stay different. A NUL that an encoder wrote in two or more bytes is read as a NUL.
pub fn header_values<'h>(fields: &'h Fields, name: impl Into<Name<'h>>) -> impl Iterator<Item = Cow<'h, str>> {
    fields.get_all(name).flat_map(|value| readings(value.trim_ascii()))
}

/// The token of every `Authorization` header with the scheme Bearer. A signed token (JWT) is the text that is signed: its
/// signature can be spelled in many ways.
pub fn bearer_tokens(fields: &Fields) -> impl Iterator<Item = Cow<'_, str>> {
    credentials(fields, "bearer").map(|token| signed_text(token).unwrap_or(token)).flat_map(readings)
}

/// A token that an operator wrote, as [`bearer_tokens`] finds it in a request.
pub fn compared_token(token: &str) -> &str {
    signed_text(token.as_bytes()).and_then(|signed| str::from_utf8(signed).ok()).unwrap_or(token)
}

/// Whether [`bearer_tokens`] surely finds what every application reads.
pub fn judge_bearer(fields: &Fields) -> Result<(), NotUnderstood> {
    cookies::judge_bearer(fields)
}

/// The user name of every `Authorization` header with the scheme Basic: the text up to the first colon, as each decoder of
/// base64 reads it.
pub fn basic_users(fields: &Fields) -> impl Iterator<Item = String> {
    credentials(fields, "basic").flat_map(|encoded| {
        let mut users: SmallVec<[String; 2]> = SmallVec::new();
        for decoded in base64::readings(encoded) {
            let user = decoded.split(|&byte| byte == b':').next().unwrap_or_default();
            users.extend(readings(user).into_iter().map(Cow::into_owned));
            if str::from_utf8(user).is_err() {
                // Some applications drop what is not UTF-8.
                users.push(String::from_utf8_lossy(user).into_owned());
            }
        }
        users
    })
}

/// Whether [`basic_users`] surely finds what every application reads.
pub fn judge_basic(fields: &Fields) -> Result<(), NotUnderstood> {
    cookies::judge_basic(fields)
}

/// The first two of the three segments of a signed token. The first is a JSON object.
fn signed_text(token: &[u8]) -> Option<&[u8]> {
    let end = memchr::memrchr(b'.', token)?;
    let (header, payload) = token[..end].split_at(memchr::memchr(b'.', &token[..end])?);
    let header = base64::decode_url_strict(header)?;
    let is_object =
        serde_json::from_slice::<IgnoredAny>(&header).is_ok() && header.trim_ascii_start().starts_with(b"{");
    (is_object && base64::decode_url_strict(&payload[1..]).is_some()).then(|| &token[..end])
}

fn credentials<'h>(fields: &'h Fields, scheme: &'static str) -> impl Iterator<Item = &'h [u8]> {
    fields.get_all(KnownName::AUTHORIZATION).filter_map(move |line| {
        let line = line.trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (sent, rest) = line.split_at(end);
        sent.eq_ignore_ascii_case(scheme.as_bytes()).then(|| rest.trim_ascii())
    })
}

fn readings(bytes: &[u8]) -> SmallVec<[Cow<'_, str>; 2]> {
    text::readings(match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(latin1(bytes)),
    })
}

fn latin1(bytes: &[u8]) -> String {
    let text: String = bytes.iter().copied().map(char::from).collect();
    let nuls = ["\u{c0}\u{80}", "\u{e0}\u{80}\u{80}", "\u{f0}\u{80}\u{80}\u{80}"];
    nuls.iter().fold(text, |text, nul| text.replace(nul, "\0"))
}

// Method overrides: every method, other than the one that was sent, that an application may give to a request.

/// Headers whose method frameworks use instead of the one that was sent.
const OVERRIDE_HEADERS: [KnownName; 3] =
    [KnownName::X_HTTP_METHOD_OVERRIDE, KnownName::X_HTTP_METHOD, KnownName::X_METHOD_OVERRIDE];

/// The field of a query or a body whose method frameworks use instead of the one that was sent.
const OVERRIDE_FIELD: &str = "_method";

/// As many layers of escapes as paths are decoded.
const MAX_LAYERS: usize = 3;

/// Methods as they were written. One text has several methods when a proxy joined two header lines.
pub type Overrides<'a> = SmallVec<[Cow<'a, str>; 1]>;

/// The overrides in the head of a request.
pub fn head_overrides<'a>(head: &'a CanonicalHead<'_>) -> Overrides<'a> {
    let mut overrides = Overrides::new();
    for name in OVERRIDE_HEADERS {
        overrides.extend(header_values(head.fields, name));
    }
    if !head.query.is_empty() {
        overrides.extend(head.query.values(OVERRIDE_FIELD));
    }
    overrides
}

/// The overrides in the body of a request.
pub fn body_overrides(fields: &BodyFields) -> Overrides<'_> {
    if fields.is_empty() {
        return Overrides::new();
    }
    fields.form(OVERRIDE_FIELD).chain(fields.json(OVERRIDE_FIELD)).collect()
}

/// Whether a query may name a method that [`head_overrides`] does not find.
pub fn query_may_hide_a_method(query: &RequestQuery<'_>) -> bool {
    query.judge(OVERRIDE_FIELD).is_err() && query.readings().any(|query| may_spell_method(query.as_bytes()))
}

/// Whether a body may name a method that [`body_overrides`] does not find.
pub fn body_may_hide_a_method(head: &CanonicalHead<'_>, fields: &BodyFields) -> bool {
    let is_understood = fields.judge_form(OVERRIDE_FIELD).is_ok() && fields.judge_json(OVERRIDE_FIELD).is_ok();
    !is_understood && may_have_fields(head) && (!fields.has_text() || fields.texts().any(may_spell_method))
}

/// Frameworks look for the method field in forms and in JSON, some of them for every method. Other kinds of uploads are
/// neither.
fn may_have_fields(head: &CanonicalHead<'_>) -> bool {
    let mut kinds = header_values(head.fields, KnownName::CONTENT_TYPE).peekable();
    let is_one = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        ["form-urlencoded", "multipart", "json", "text/"].into_iter().any(|part| kind.contains(part))
    };
    kinds.peek().is_none() || kinds.any(|kind| is_one(&kind))
}

/// Whether a text contains the letters of an override field, in any spelling.
fn may_spell_method(text: &[u8]) -> bool {
    let mut text = Cow::Borrowed(text);
    for _ in 0..MAX_LAYERS {
        let Some(decoded) = urlencoded::decode(&text, Escapes { plus: false, code_units: true }) else { break };
        text = Cow::Owned(decoded);
    }
    // Escapes of JSON and of mail headers hide letters.
    if memchr::memchr(b'\\', &text).is_some() || memchr::memmem::find(&text, b"=?").is_some() {
        return true;
    }
    let text = urlencoded::text(text);
    let letters: String = if text.is_ascii() {
        text.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect()
    } else {
        text.nfkc().filter(|char| char.is_alphanumeric()).default_case_fold().collect()
    };
    letters.contains("method")
}

/// Each method in the overrides, as written.
pub fn methods_in<'o>(overrides: &'o [Cow<'_, str>]) -> impl Iterator<Item = &'o str> {
    overrides.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|method| !method.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(authority: &str, expected: &str) {
        assert_eq!(CanonicalHost::new(authority).as_str(), expected, "{authority:?}");
    }

    #[test]
    fn every_spelling_of_a_host_is_one_host() {
        check("example.com", "example.com");
        check("Example.COM", "example.com");
        check("example.com:8080", "example.com");
        check("example.com:", "example.com");
        check("example.com.", "example.com");
        check("EXAMPLE.com.:443", "example.com");
        check(" example.com ", "example.com");
        check("user@example.com:80", "example.com");
        check("127.0.0.1:80", "127.0.0.1");
        check("[::1]", "[::1]");
        check("[::1]:8080", "[::1]");
        check("::1", "[::1]");
        check("[2001:DB8:0::1]:80", "[2001:db8::1]");
        check("[fe80::1%25eth0]:80", "[fe80::1]");
        check("", "");
        check(":80", "");
    }

    #[test]
    fn a_canonical_host_is_borrowed() {
        for authority in ["example.com", "example.com:8080", "example.com.", "[::1]:80"] {
            assert!(matches!(CanonicalHost::new(authority), CanonicalHost(Cow::Borrowed(_))), "{authority:?}");
        }
    }

    proptest! {
        #[test]
        fn a_canonical_host_is_its_own_canonical_host(authority in "[a-zA-Z0-9:.@%\\[\\] -]{0,30}|.*") {
            let once = CanonicalHost::new(&authority);
            let twice = CanonicalHost::new(once.as_str());
            prop_assert_eq!(twice.as_str(), once.as_str());
        }
    }

    #[test]
    fn a_query_hides_a_method_only_where_its_letters_may_stand() {
        for query in
            ["_method[]=PUT", "?_method=PUT", "a=1;_m%65thod=PUT", "_%2565thod=%zz&_m%2565thod", "x[_method]=PUT"]
        {
            assert!(query_may_hide_a_method(&RequestQuery::new("/", Some(query))), "{query}");
        }
        for query in ["", "_method=PUT", "a=1;b=2", "%zz", "payment_method=card", "method=x&a[b]=c"] {
            assert!(!query_may_hide_a_method(&RequestQuery::new("/", Some(query))), "{query}");
        }
    }

    fn authorization(lines: &[&str]) -> Fields {
        lines.iter().map(|line| (KnownName::AUTHORIZATION, line)).collect()
    }

    #[track_caller]
    fn check_bearer(lines: &[&str], expected: &[&str]) {
        assert_eq!(bearer_tokens(&authorization(lines)).collect::<Vec<_>>(), expected);
    }

    #[track_caller]
    fn check_basic(line: &str, expected: &[&str]) {
        assert_eq!(basic_users(&authorization(&[line])).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_token_is_what_follows_the_scheme_in_any_case() {
        check_bearer(&["Bearer abc"], &["abc"]);
        check_bearer(&["bEARER   abc  "], &["abc"]);
        check_bearer(&["Bearer\tabc", "bearer def"], &["abc", "def"]);
        check_bearer(&["Basic YTpi", "abc", "Bearerabc"], &[]);
        check_bearer(&["Bearer"], &[""]);
    }

    #[test]
    fn the_user_is_read_as_every_decoder_reads_it() {
        check_basic("Basic YWxpY2U6c2VjcmV0", &["alice"]);
        check_basic("basic YWxpY2U6eA==", &["alice"]);
        check_basic("BASIC YWxpY2U6eA", &["alice"]);
        check_basic("Basic YWxp Y2U6 eA==", &["alice", "ali"]);
        check_basic("Basic YWxp=Y2U6eA==", &["alice", "ali"]);
        check_basic("Basic YTpiOmM=", &["a"]);
        check_basic("Basic YWxpY2U=", &["alice"]);
        check_basic("Basic !!", &[""]);
        check_basic("Basic 6Tp4", &["é", "\u{fffd}"]);
        let users = |line: &str| basic_users(&authorization(&[line])).collect::<Vec<_>>();
        assert!(users("Basic YWxp-Y2U6eA==").contains(&"alice".to_owned()));
        assert!(users("Basic YWxpY2U6eA==-").contains(&"alice".to_owned()));
    }

    #[test]
    fn a_signed_token_is_the_text_that_is_signed() {
        let signed = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9";
        for signature in ["", "c2ln", "c2lo", "other spelling", "%63"] {
            check_bearer(&[&format!("Bearer {signed}.{signature}")], &[signed]);
            assert_eq!(compared_token(&format!("{signed}.{signature}")), signed);
        }
        for token in ["a.b.c", "W10.e30.c2ln", "eyJh.b", "e30=.e30.x", "e30.e30", "e30.e30.x.y"] {
            check_bearer(&[&format!("Bearer {token}")], &[token]);
            assert_eq!(compared_token(token), token);
        }
    }

    #[test]
    fn header_lines_are_several_values_as_sent() {
        let name = Name::of("x-api-key");
        let fields = Fields::from_iter([(name, &b"One"[..]), (name, b"tw\xf6")]);
        assert_eq!(header_values(&fields, name).collect::<Vec<_>>(), ["One", "twö"]);
    }

    proptest! {
        #[test]
        fn any_authorization_is_read(line in "(Bearer|basic)?[ \t]{0,2}[ -~\u{e9}]{0,20}") {
            let fields = authorization(&[&line]);
            prop_assert!(bearer_tokens(&fields).all(|token| token.len() <= line.len() && token == token.trim_ascii()));
            prop_assert!(basic_users(&fields).all(|user| user.len() <= line.len() * 3 && !user.contains(':')));
        }
    }
}
