//! The body of a request on its way in, over either HTTP.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;

use super::http1;
use crate::http1::CutShort;
use crate::http1::Malformed;
use crate::http2;

/// A client's body. Nothing of it is read before it is asked for.
#[derive(Debug, Default)]
pub struct IncomingBody(Kind);

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Empty,
    Http1(http1::Body),
    Http2(http2::Body),
}

/// Why a body has no end.
#[derive(Debug, thiserror::Error)]
pub enum IncomingBodyError {
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("{0}")]
    CutShort(#[from] CutShort),
    #[error("{0}")]
    Stream(#[from] h2::Error),
}

impl From<http1::Body> for IncomingBody {
    fn from(body: http1::Body) -> Self {
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
            Kind::Http1(body) => body.is_through(),
            Kind::Http2(body) => body.is_through(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Http1(body) => body.left().map_or_else(SizeHint::new, SizeHint::with_exact),
            Kind::Http2(body) => body.size_hint(),
        }
    }
}
