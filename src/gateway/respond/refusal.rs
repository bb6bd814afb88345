//! The reason that a client gets for a denial or an error, before it is written as a page, a problem document or a gRPC
//! status.

use std::borrow::Cow;
use std::time::Duration;

use http::StatusCode;

use crate::gateway::languages::{Language, MAX_QUALITY, Message, quality};
use crate::gateway::stages::RequestId;
use crate::wire::head::{Fields, KnownName};
use crate::words::pool::Buffer;
use crate::words::units::whole_seconds;

/// A denial or an error, with the details that the client may know.
#[derive(Clone, Copy, Debug)]
pub enum Refusal<'a> {
    /// `wait` is `None` when it would say too much, or when waiting does not help.
    Limited {
        limits: &'a [&'a str],
        wait: Option<Duration>,
        attempts: Attempts,
    },
    Forbidden,
    /// Access is denied until the client has met a challenge.
    Challenged,
    TooManyValues,
    /// The store is down, and a limit denies during the outage.
    Unavailable,
    /// The request was malformed, or the application failed. `words` begin in lower case and have no dot.
    Failed {
        words: &'a str,
    },
}

/// What a limit has counted too many of, as far as the client knows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Attempts {
    Any,
    /// Sign-ins of this client to this account that failed.
    WrongPasswords,
}

impl Refusal<'_> {
    /// What a page says.
    pub fn message(&self, status: StatusCode) -> Message {
        match self {
            Self::Limited { attempts: Attempts::WrongPasswords, .. } => Message::WrongPasswords,
            Self::Limited { attempts: Attempts::Any, .. } => Message::TooManyAttempts,
            Self::Forbidden | Self::Challenged => Message::AccessDenied,
            Self::TooManyValues => Message::NotUnderstood,
            Self::Unavailable => Message::Unavailable,
            Self::Failed { .. } => failure(status),
        }
    }

    /// Writes one or two sentences of plain ASCII without quotes, for every format.
    pub fn explain(&self, text: &mut Vec<u8>) {
        match self {
            Self::Limited { wait: Some(wait), .. } => {
                text.extend_from_slice(b"Too many requests. ");
                Language::English.write_wait(whole_seconds(*wait).max(1), text);
            }
            Self::Limited { wait: None, .. } => text.extend_from_slice(b"Too many requests. Try again later."),
            Self::Forbidden | Self::Challenged => text.extend_from_slice(b"Access is denied."),
            Self::TooManyValues => text.extend_from_slice(b"A field was sent too many times."),
            Self::Unavailable => {
                text.extend_from_slice(b"The service is temporarily unavailable. Try again in a moment.");
            }
            Self::Failed { words } => {
                let start = text.len();
                text.extend_from_slice(words.as_bytes());
                text[start..].iter_mut().take(1).for_each(u8::make_ascii_uppercase);
                text.push(b'.');
            }
        }
    }
}

/// What happened to a request that was malformed, or whose application failed.
fn failure(status: StatusCode) -> Message {
    match status {
        StatusCode::FORBIDDEN => Message::AccessDenied,
        StatusCode::NOT_FOUND => Message::NotFound,
        StatusCode::REQUEST_TIMEOUT => Message::TookTooLong,
        StatusCode::PAYLOAD_TOO_LARGE => Message::TooLarge,
        StatusCode::URI_TOO_LONG => Message::AddressTooLong,
        StatusCode::MISDIRECTED_REQUEST => Message::WrongConnection,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Message::TooMuchSentAlong,
        StatusCode::SERVICE_UNAVAILABLE => Message::Unavailable,
        StatusCode::GATEWAY_TIMEOUT => Message::TooSlow,
        // What the client asked for is not there, and the application has nothing to do with it.
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => Message::NotUnderstood,
        status if status.is_server_error() => Message::NoAnswer,
        _ => Message::NotUnderstood,
    }
}

// A denial or an error as a gRPC status: an answer with only a head, which clients in every language turn into an
// exception.

const DEADLINE_EXCEEDED: &str = "4";

const PERMISSION_DENIED: &str = "7";

const RESOURCE_EXHAUSTED: &str = "8";

const UNIMPLEMENTED: &str = "12";

const INTERNAL: &str = "13";

const UNAVAILABLE: &str = "14";

/// Writes the headers that end a call.
pub fn write(fields: &mut Fields, refusal: &Refusal<'_>, status: StatusCode) {
    fields.append(KnownName::GRPC_STATUS, code(refusal, status).as_bytes());
    let mut text = Vec::with_capacity(64);
    refusal.explain(&mut text);
    fields.append(KnownName::GRPC_MESSAGE, &percent_encoded(&text));
    if let Refusal::Limited { wait: Some(wait), .. } = refusal {
        let milliseconds = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).max(1);
        // How long a client waits before it retries automatically.
        fields.append(KnownName::GRPC_RETRY_PUSHBACK_MS, itoa::Buffer::new().format(milliseconds).as_bytes());
    }
}

/// The gRPC status for an HTTP status. Libraries map HTTP statuses in the same way, except for denials by a limit.
fn code(refusal: &Refusal<'_>, status: StatusCode) -> &'static str {
    match (refusal, status) {
        (Refusal::Limited { .. }, _) => RESOURCE_EXHAUSTED,
        (Refusal::Forbidden | Refusal::Challenged, _) => PERMISSION_DENIED,
        (_, StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND) => UNIMPLEMENTED,
        (_, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE) => RESOURCE_EXHAUSTED,
        (_, StatusCode::REQUEST_TIMEOUT) => DEADLINE_EXCEEDED,
        (_, status) if status.is_server_error() => UNAVAILABLE,
        _ => INTERNAL,
    }
}

/// Percent-encodes the percent sign and all bytes except visible ASCII and spaces.
fn percent_encoded(text: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'%' | 0..=0x1f | 0x7f.. => encoded.extend(format!("%{byte:02X}").into_bytes()),
            byte => encoded.push(*byte),
        }
    }
    encoded
}

// A denial or an error as a problem document (RFC 9457), for programs.

/// The document. It is written piece by piece for speed, because every denied request gets one.
pub fn document(refusal: &Refusal<'_>, status: StatusCode, request_id: &RequestId) -> Buffer {
    let mut json = Buffer::take();
    json.reserve(384);
    json.extend_from_slice(b"{\"type\":\"");
    // Neither the type nor the title needs escaping.
    json.extend_from_slice(type_uri(refusal).as_bytes());
    json.extend_from_slice(b"\",\"title\":\"");
    json.extend_from_slice(title(status).as_bytes());
    json.extend_from_slice(b"\",\"status\":");
    json.extend_from_slice(status.as_str().as_bytes());
    json.extend_from_slice(b",\"detail\":\"");
    refusal.explain(&mut json);
    json.push(b'"');
    if let Refusal::Limited { limits, .. } = refusal {
        json.extend_from_slice(b",\"violated-policies\":[");
        for (position, limit) in limits.iter().enumerate() {
            json.extend_from_slice(if position == 0 { b"\"" } else { b",\"" });
            escape(&mut json, limit.as_bytes());
            json.push(b'"');
        }
        json.push(b']');
    }
    json.extend_from_slice(b",\"request_id\":\"");
    json.extend_from_slice(request_id.as_bytes());
    json.extend_from_slice(b"\"}\n");
    json
}

/// The URI of the problem's type.
fn type_uri(refusal: &Refusal<'_>) -> &'static str {
    match refusal {
        Refusal::Limited { .. } => "https://iana.org/assignments/http-problem-types#quota-exceeded",
        Refusal::Forbidden
        | Refusal::Challenged
        | Refusal::TooManyValues
        | Refusal::Unavailable
        | Refusal::Failed { .. } => "about:blank",
    }
}

pub fn title(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Denied")
}

/// Writes the inside of a JSON string.
fn escape(json: &mut Vec<u8>, text: &[u8]) {
    if text.iter().all(|byte| *byte >= b' ' && !matches!(byte, b'"' | b'\\')) {
        return json.extend_from_slice(text);
    }
    for byte in text {
        match byte {
            b'"' | b'\\' => json.extend([b'\\', *byte]),
            0..=0x1f => json.extend(format!("\\u{byte:04x}").into_bytes()),
            _ => json.push(*byte),
        }
    }
}

// Chooses the format of an answer: for a browser, a gRPC library, or another program.

const GRPC: &str = "application/grpc";

const GRPC_WEB: &str = "application/grpc-web";

/// The format of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReplyFormat {
    /// A page.
    Html,
    /// A problem document.
    Problem,
    /// A gRPC status with this `Content-Type`.
    Grpc(&'static str),
}

/// The format that a request with these fields asks for.
pub fn reply_format(fields: &Fields) -> ReplyFormat {
    if let Some(content_type) = fields.get(KnownName::CONTENT_TYPE).filter(|content_type| is_grpc(content_type)) {
        return ReplyFormat::Grpc(if is_web(content_type) { GRPC_WEB } else { GRPC });
    }
    let Some(accept) = accept_list(fields) else { return ReplyFormat::Problem };
    match preferred_format(&accept) {
        PreferredFormat::Html => ReplyFormat::Html,
        PreferredFormat::Problem => ReplyFormat::Problem,
    }
}

/// The whole list of `Accept`. Several lines are one list (RFC 9110, section 5.3). One line, as nearly all clients send,
/// is not copied.
fn accept_list(fields: &Fields) -> Option<Cow<'_, [u8]>> {
    let mut lines = fields.get_all(KnownName::ACCEPT);
    let (first, second) = (lines.next()?, lines.next());
    if second.is_none() {
        return Some(Cow::Borrowed(first));
    }
    let lines: Vec<_> = [first].into_iter().chain(second).chain(lines).collect();
    Some(Cow::Owned(lines.join(&b","[..])))
}

/// `application/grpc` and all types that begin with it: with the encoding of the messages, and gRPC-Web.
fn is_grpc(content_type: &[u8]) -> bool {
    starts_with(content_type, "application/grpc")
}

fn is_web(content_type: &[u8]) -> bool {
    starts_with(content_type, "application/grpc-web")
}

fn starts_with(value: &[u8], start: &str) -> bool {
    value.get(..start.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(start.as_bytes()))
}

// Reads `Accept`: whether a client prefers a page over a problem document.

/// The format that a client prefers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PreferredFormat {
    /// A page.
    Html,
    /// A problem document.
    Problem,
}

/// HTML if the client names it and wants it at least as much as JSON. Browsers do; programs that accept anything do not.
/// Reads the list once, and of a browser's list only the first range.
pub fn preferred_format(accept: &[u8]) -> PreferredFormat {
    let [mut html, mut json, mut application, mut any] = [None; 4];
    for range in accept.split(|byte| *byte == b',') {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let named = parts.next().unwrap_or_default();
        let is = |name: &[u8]| named.eq_ignore_ascii_case(name);
        let most = match named.len() {
            3 if is(b"*/*") => &mut any,
            9 if is(b"text/html") => &mut html,
            13 if is(b"application/*") => &mut application,
            16 if is(b"application/json") => &mut json,
            24 if is(b"application/problem+json") => &mut json,
            _ => continue,
        };
        *most = (*most).max(Some(parts.find_map(weight).unwrap_or(MAX_QUALITY)));
        if html == Some(MAX_QUALITY) {
            // No weight is higher.
            return PreferredFormat::Html;
        }
    }
    // The most specific range that includes JSON gives its weight.
    let json = json.or(application).or(any).unwrap_or(0);
    match html {
        Some(html) if html > 0 && html >= json => PreferredFormat::Html,
        _ => PreferredFormat::Problem,
    }
}

/// The `q` of a range in thousandths; `None` for any other parameter. A malformed weight counts as zero.
fn weight(parameter: &[u8]) -> Option<u16> {
    let (name, value) = parameter.split_at_checked(2)?;
    if !name.eq_ignore_ascii_case(b"q=") {
        return None;
    }
    Some(quality(value).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(refusal: &Refusal<'_>, status: StatusCode, expected: &[(&str, &str)]) {
        let mut fields = Fields::default();
        write(&mut fields, refusal, status);
        let written: Vec<_> =
            fields.iter().map(|field| (field.name.as_str(), str::from_utf8(field.value).unwrap())).collect();
        assert_eq!(written, expected);
    }

    #[test]
    fn a_limit_a_list_and_an_error_have_different_statuses() {
        check(
            &Refusal::Limited { limits: &[], wait: Some(Duration::from_millis(1500)), attempts: Attempts::Any },
            StatusCode::TOO_MANY_REQUESTS,
            &[
                ("grpc-status", "8"),
                ("grpc-message", "Too many requests. Try again in 2 seconds."),
                ("grpc-retry-pushback-ms", "1500"),
            ],
        );
        let forbidden = [("grpc-status", "7"), ("grpc-message", "Access is denied.")];
        check(&Refusal::Forbidden, StatusCode::FORBIDDEN, &forbidden);
        let failed = [("grpc-status", "14"), ("grpc-message", "100%25 of %C3%A9.")];
        check(&Refusal::Failed { words: "100% of é" }, StatusCode::BAD_GATEWAY, &failed);
        let malformed = [("grpc-status", "13"), ("grpc-message", "There is no Host.")];
        check(&Refusal::Failed { words: "there is no Host" }, StatusCode::BAD_REQUEST, &malformed);
    }

    #[test]
    fn a_limit_that_denies_is_named() {
        let refusal = Refusal::Limited {
            limits: &["login-pace", "a\"b\u{1}"],
            wait: Some(Duration::from_millis(41_500)),
            attempts: Attempts::WrongPasswords,
        };
        let id = RequestId::random();
        let json = document(&refusal, StatusCode::TOO_MANY_REQUESTS, &id);
        let parsed: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        let expected = serde_json::json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Too Many Requests",
            "status": 429,
            "detail": "Too many requests. Try again in 42 seconds.",
            "violated-policies": ["login-pace", "a\"b\u{1}"],
            "request_id": id.as_str(),
        });
        assert_eq!(parsed, expected);
    }

    #[test]
    fn a_request_that_cannot_be_decided_names_no_limit() {
        let id = RequestId::random();
        let json = document(&Refusal::Unavailable, StatusCode::SERVICE_UNAVAILABLE, &id);
        let parsed: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        let expected = serde_json::json!({
            "type": "about:blank",
            "title": "Service Unavailable",
            "status": 503,
            "detail": "The service is temporarily unavailable. Try again in a moment.",
            "request_id": id.as_str(),
        });
        assert_eq!(parsed, expected);
    }

    #[test]
    fn a_denial_by_a_list_gives_no_details() {
        let id = RequestId::random();
        let json = document(&Refusal::Forbidden, StatusCode::FORBIDDEN, &id);
        let parsed: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        let expected = serde_json::json!({
            "type": "about:blank",
            "title": "Forbidden",
            "status": 403,
            "detail": "Access is denied.",
            "request_id": id.as_str(),
        });
        assert_eq!(parsed, expected);
    }

    #[test]
    fn a_person_is_told_what_happened_and_no_more_than_they_may_know() {
        let limited = |attempts| Refusal::Limited { limits: &["a"], wait: None, attempts };
        let status = StatusCode::TOO_MANY_REQUESTS;
        assert_eq!(limited(Attempts::Any).message(status), Message::TooManyAttempts);
        assert_eq!(limited(Attempts::WrongPasswords).message(status), Message::WrongPasswords);
        assert_eq!(Refusal::Forbidden.message(StatusCode::FORBIDDEN), Message::AccessDenied);
        assert_eq!(Refusal::Unavailable.message(StatusCode::SERVICE_UNAVAILABLE), Message::Unavailable);
        for (status, expected) in [
            (400, Message::NotUnderstood),
            (404, Message::NotFound),
            (405, Message::NotUnderstood),
            (408, Message::TookTooLong),
            (413, Message::TooLarge),
            (414, Message::AddressTooLong),
            (417, Message::NotUnderstood),
            (421, Message::WrongConnection),
            (431, Message::TooMuchSentAlong),
            (501, Message::NotUnderstood),
            (502, Message::NoAnswer),
            (503, Message::Unavailable),
            (504, Message::TooSlow),
            (505, Message::NotUnderstood),
            (508, Message::NoAnswer),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(Refusal::Failed { words: "x" }.message(status), expected, "{status}");
        }
    }

    #[track_caller]
    fn check_wait(millis: u64, expected: &str) {
        let mut text = Vec::new();
        let wait = Some(Duration::from_millis(millis));
        Refusal::Limited { limits: &[], wait, attempts: Attempts::Any }.explain(&mut text);
        assert_eq!(String::from_utf8_lossy(&text), format!("Too many requests. Try again in {expected}."));
    }

    #[test]
    fn a_wait_is_written_in_the_unit_that_fits() {
        check_wait(0, "1 second");
        check_wait(1, "1 second");
        check_wait(41_001, "42 seconds");
        check_wait(120_000, "120 seconds");
        check_wait(120_001, "3 minutes");
        check_wait(7_200_001, "3 hours");
        check_wait(200_000_000, "3 days");
    }

    #[track_caller]
    fn check_format(accept: &str, expected: PreferredFormat) {
        assert_eq!(preferred_format(accept.as_bytes()), expected, "{accept}");
    }

    #[test]
    fn browsers_get_a_page() {
        check_format(
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
            PreferredFormat::Html,
        );
        check_format("text/html, */*", PreferredFormat::Html);
        check_format("TEXT/HTML", PreferredFormat::Html);
        check_format("application/json, text/html", PreferredFormat::Html);
    }

    #[test]
    fn programs_get_a_problem_document() {
        check_format("*/*", PreferredFormat::Problem);
        check_format("application/json", PreferredFormat::Problem);
        check_format("application/json, text/plain, */*", PreferredFormat::Problem);
        check_format("text/html;q=0.5, application/json", PreferredFormat::Problem);
        check_format("text/html;q=0.5, */*", PreferredFormat::Problem);
        check_format("text/html;q=0", PreferredFormat::Problem);
        check_format("text/html;q=x", PreferredFormat::Problem);
        check_format("text/*", PreferredFormat::Problem);
        check_format("", PreferredFormat::Problem);
    }

    #[test]
    fn the_most_specific_range_counts() {
        check_format("text/html;q=0.5, application/json;q=0.4, */*", PreferredFormat::Html);
        check_format("text/html;q=0.5, application/*;q=0.6, */*;q=0.1", PreferredFormat::Problem);
    }

    #[test]
    fn weights_are_thousandths() {
        assert_eq!(weight(b"q=0.8"), Some(800));
        assert_eq!(weight(b"Q=1.000"), Some(1000));
        assert_eq!(weight(b"q=0.8000"), Some(0));
        assert_eq!(weight(b"level=1"), None);
    }

    proptest! {
        #[test]
        fn any_list_is_read(accept in "(text/html|\\*/\\*|application/json|[;,q=.0-9 ]){0,12}") {
            prop_assert!(preferred_format(accept.as_bytes()) == PreferredFormat::Problem || accept.contains("text/html"));
        }

        #[test]
        fn a_weight_is_at_most_one(parameter in prop::collection::vec(any::<u8>(), 0..10)) {
            prop_assert!(weight(&parameter).is_none_or(|weight| weight <= 1000));
        }
    }

    #[track_caller]
    fn check_preference(accept: &[&str], expected: ReplyFormat) {
        let fields: Fields = accept.iter().map(|line| (KnownName::ACCEPT, *line)).collect();
        assert_eq!(reply_format(&fields), expected, "{accept:?}");
    }

    #[test]
    fn all_lines_of_accept_are_one_list() {
        check_preference(&[], ReplyFormat::Problem);
        check_preference(&["text/html"], ReplyFormat::Html);
        check_preference(&["text/html;q=0.8", "application/json;q=0.9"], ReplyFormat::Problem);
        check_preference(&["application/json;q=0.5", "text/html"], ReplyFormat::Html);
        check_preference(&["image/png", "image/avif", "text/html"], ReplyFormat::Html);
    }
}
