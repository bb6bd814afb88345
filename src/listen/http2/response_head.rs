//! The heads of responses over HTTP/2.

use http::Response;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http::header::DATE;
use http_body::Body;

use crate::head::KnownName;
use crate::head::ResponseHead;
use crate::listen::Refusal;
use crate::listen::date;

/// Makes the head of a response: removes the fields of HTTP/1.1 connections, adds date and length.
pub(super) fn response_head(mut head: ResponseHead, body: &impl Body) -> Response<()> {
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        // The status that opens a tunnel (RFC 8441, section 5).
        head.status = StatusCode::OK;
    }
    let mut response = without_connection_fields(head);
    let fields = response.headers_mut();
    if !fields.contains_key(DATE) {
        fields.insert(DATE, date::value());
    }
    if let Some(length) = body.size_hint().exact().filter(|_| !body.is_end_stream())
        && !fields.contains_key(CONTENT_LENGTH)
    {
        fields.insert(CONTENT_LENGTH, length.into());
    }
    response
}

/// The head of an interim response.
pub(super) fn interim(head: ResponseHead) -> Response<()> {
    without_connection_fields(head)
}

/// The head of the response to an invalid head.
pub(super) fn refusal(status: StatusCode, Refusal { fields, body }: &Refusal) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = status;
    *head.headers_mut() = fields.to_header_map();
    head.headers_mut().insert(CONTENT_LENGTH, body.len().into());
    head.headers_mut().insert(DATE, date::value());
    head
}

fn without_connection_fields(mut head: ResponseHead) -> Response<()> {
    for name in CONNECTION_FIELDS {
        head.fields.remove(name);
    }
    let mut response = Response::new(());
    *response.status_mut() = head.status;
    *response.headers_mut() = head.fields.to_header_map();
    response
}

const CONNECTION_FIELDS: [KnownName; 6] = [
    KnownName::CONNECTION,
    KnownName::KEEP_ALIVE,
    KnownName::PROXY_CONNECTION,
    KnownName::TE,
    KnownName::TRANSFER_ENCODING,
    KnownName::UPGRADE,
];
