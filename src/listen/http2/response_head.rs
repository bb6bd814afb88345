//! The heads of responses over HTTP/2.

use http::HeaderName;
use http::HeaderValue;
use http::Response;
use http::StatusCode;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::DATE;
use http::header::TE;
use http::header::TRANSFER_ENCODING;
use http::header::UPGRADE;
use http::response::Parts;
use http_body::Body;
use smallvec::SmallVec;

use crate::listen::date;

/// Makes the head of a response: removes the fields of HTTP/1.1 connections, adds date and length.
pub(super) fn response_head(parts: Parts, body: &impl Body) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = match parts.status {
        // The status that opens a tunnel (RFC 8441, section 5).
        StatusCode::SWITCHING_PROTOCOLS => StatusCode::OK,
        status => status,
    };
    *head.headers_mut() = parts.headers;
    let fields = head.headers_mut();
    let connection_fields: SmallVec<[HeaderName; 4]> =
        fields.keys().filter(|name| is_connection_field(name)).cloned().collect();
    for name in connection_fields {
        fields.remove(name);
    }
    if !fields.contains_key(DATE) {
        fields.insert(DATE, date::value());
    }
    if let Some(length) = body.size_hint().exact().filter(|_| !body.is_end_stream())
        && !fields.contains_key(CONTENT_LENGTH)
    {
        fields.insert(CONTENT_LENGTH, length.into());
    }
    head
}

/// The whole response to an invalid head.
pub(super) fn refusal(status: StatusCode) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = status;
    head.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    head.headers_mut().insert(DATE, date::value());
    head
}

fn is_connection_field(name: &HeaderName) -> bool {
    match *name {
        CONNECTION | TRANSFER_ENCODING | UPGRADE | TE => true,
        _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
    }
}
