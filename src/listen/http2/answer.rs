//! The head of an answer as HTTP/2 has it.

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

/// Makes a head of what it says: what is between neighbours goes, and what every answer has comes.
pub(super) fn head(parts: Parts, body: &impl Body) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = match parts.status {
        // What opens a tunnel (RFC 8441, section 5).
        StatusCode::SWITCHING_PROTOCOLS => StatusCode::OK,
        status => status,
    };
    *head.headers_mut() = parts.headers;
    let fields = head.headers_mut();
    let foreign: SmallVec<[HeaderName; 4]> = fields.keys().filter(|name| is_of_http1(name)).cloned().collect();
    for name in foreign {
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

/// The whole answer to a head that was no request.
pub(super) fn refusal(status: StatusCode) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = status;
    head.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    head.headers_mut().insert(DATE, date::value());
    head
}

fn is_of_http1(name: &HeaderName) -> bool {
    match *name {
        CONNECTION | TRANSFER_ENCODING | UPGRADE | TE => true,
        _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
    }
}
