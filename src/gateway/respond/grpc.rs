//! A denial or an error as a gRPC status: an answer with only a head, which clients in every language turn into an
//! exception.

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::StatusCode;

use super::refusal::Refusal;

/// Writes the headers that end a call.
pub fn write(headers: &mut HeaderMap, refusal: &Refusal<'_>, status: StatusCode) {
    headers.insert(GRPC_STATUS, HeaderValue::from_static(code(refusal, status)));
    let mut text = Vec::with_capacity(64);
    refusal.explain(&mut text);
    if let Ok(message) = HeaderValue::from_bytes(&percent_encoded(&text)) {
        headers.insert(GRPC_MESSAGE, message);
    }
    if let Refusal::Limited { wait: Some(wait), .. } = refusal {
        let milliseconds = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).max(1);
        headers.insert(GRPC_RETRY_PUSHBACK, HeaderValue::from(milliseconds));
    }
}

/// The gRPC status for an HTTP status. Libraries map HTTP statuses in the same way, except for denials by a limit.
fn code(refusal: &Refusal<'_>, status: StatusCode) -> &'static str {
    match (refusal, status) {
        (Refusal::Limited { .. }, _) => RESOURCE_EXHAUSTED,
        (Refusal::Forbidden, _) => PERMISSION_DENIED,
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

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// How long a client waits before it retries automatically.
const GRPC_RETRY_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

const DEADLINE_EXCEEDED: &str = "4";
const PERMISSION_DENIED: &str = "7";
const RESOURCE_EXHAUSTED: &str = "8";
const UNIMPLEMENTED: &str = "12";
const INTERNAL: &str = "13";
const UNAVAILABLE: &str = "14";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(refusal: &Refusal<'_>, status: StatusCode, expected: &[(&str, &str)]) {
        let mut headers = HeaderMap::new();
        write(&mut headers, refusal, status);
        let written: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(written, expected);
    }

    #[test]
    fn a_limit_a_list_and_an_error_have_different_statuses() {
        check(
            &Refusal::Limited { limits: &[], wait: Some(Duration::from_millis(1500)) },
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
}
