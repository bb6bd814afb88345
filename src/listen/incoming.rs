//! The body of a request, over HTTP/1 or HTTP/2.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;

use super::http1::Http1RequestBody;
use super::incoming_body_error::IncomingBodyError;
use crate::http2;

/// The body of a request. It is read when it is polled.
#[derive(Debug, Default)]
pub struct IncomingBody(Kind);

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Empty,
    Http1(Http1RequestBody),
    Http2(http2::Body),
}

impl From<Http1RequestBody> for IncomingBody {
    fn from(body: Http1RequestBody) -> Self {
        Self(Kind::Http1(body))
    }
}

impl From<http2::Body> for IncomingBody {
    fn from(body: http2::Body) -> Self {
        Self(Kind::Http2(body))
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = IncomingBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        match &mut self.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Http1(body) => body.poll_frame(cx),
            Kind::Http2(body) => body.poll_frame(cx).map_err(IncomingBodyError::Stream),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Http1(body) => body.is_complete(),
            Kind::Http2(body) => body.is_complete(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Http1(body) => body.remaining().map_or_else(SizeHint::new, SizeHint::with_exact),
            Kind::Http2(body) => body.size_hint(),
        }
    }
}
