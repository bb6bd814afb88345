//! Hands a call to its service, and the answer of the service to the connection.

use std::convert::Infallible;

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderValue;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tonic::Code;
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use super::call_body::CallBody;
use crate::gateway::ResponseBody;
use crate::head::Fields;
use crate::head::KnownName;
use crate::head::Name;
use crate::head::RequestHead;
use crate::head::ResponseHead;
use crate::listen::Response;

/// The call as services take it.
pub(super) fn request(head: &RequestHead, body: CallBody) -> http::Request<CallBody> {
    let mut request = http::Request::new(body);
    // A path that is none calls nothing.
    *request.uri_mut() = head.to_path_and_query().map(http::Uri::from).unwrap_or_default();
    let compression = head.fields.single(Name::of(GRPC_ENCODING)).map(HeaderValue::from_bytes);
    if let Some(Ok(compression)) = compression {
        request.headers_mut().insert(GRPC_ENCODING, compression);
    }
    request
}

/// Has the service answer the call. `None` as the status: it is in the trailers, because the service has read the message.
pub(super) async fn answer<S>(
    mut service: S,
    request: http::Request<CallBody>,
) -> (Response<ResponseBody>, Option<Status>)
where
    S: Service<http::Request<CallBody>, Response = http::Response<Body>, Error = Infallible>,
{
    match service.call(request).await {
        Ok(response) => {
            let status = Status::from_header_map(response.headers());
            (written(response), status)
        }
        Err(never) => match never {},
    }
}

/// The answer to a call that no service takes.
pub(super) fn refuse(status: Status) -> Response<ResponseBody> {
    written(status.into_http())
}

/// The status for a message that could not be read. tonic takes that for a fault of its own.
pub(super) fn unreadable(status: Status) -> Status {
    match status.code() {
        Code::Internal => Status::invalid_argument(status.message()),
        _ => status,
    }
}

fn written(response: http::Response<Body>) -> Response<ResponseBody> {
    let (parts, body) = response.into_parts();
    let head = ResponseHead::new(parts.status, fields(&parts.headers));
    Response { head, body: ResponseBody::Streamed(UnsyncBoxBody::<Bytes, _>::new(body.map_err(Into::into))) }
}

fn fields(headers: &HeaderMap) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in headers {
        fields.append(Name::of(name.as_str()), value.as_bytes());
    }
    // A status in the head is that of a call with one message, which could not be read: services answer no such status.
    if fields.get(KnownName::GRPC_STATUS) == Some(INTERNAL) {
        fields.insert(KnownName::GRPC_STATUS, INVALID_ARGUMENT);
    }
    fields
}

const GRPC_ENCODING: &str = "grpc-encoding";

const INTERNAL: &[u8] = b"13";
const INVALID_ARGUMENT: &[u8] = b"3";
