//! A denial or an error as a gRPC status: an answer with only a head, which clients in every language turn into an
//! exception.

use http::StatusCode;

use super::refusal::Refusal;
use crate::head::Fields;
use crate::head::KnownName;

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
        let mut fields = Fields::default();
        write(&mut fields, refusal, status);
        let written: Vec<_> =
            fields.iter().map(|field| (field.name.as_str(), str::from_utf8(field.value).unwrap())).collect();
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
