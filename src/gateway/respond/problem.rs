//! A denial or an error as a problem document (RFC 9457), for programs.

use http::StatusCode;

use super::refusal::Refusal;
use crate::gateway::admit::request_id::RequestId;
use crate::pool::Buffer;

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_limit_that_denies_is_named() {
        let refusal =
            Refusal::Limited { limits: &["login-pace", "a\"b\u{1}"], wait: Some(Duration::from_millis(41_500)) };
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
}
