//! What an application answered, its body as it comes in.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http::header::TRANSFER_ENCODING;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tokio::time::Instant;

use super::error::BodyError;
use super::error::BoxError;
use super::error::PreviousAttempts;
use super::http1;
use super::http2;
use super::server::InFlight;
use super::tunnel::Tunnel;
use crate::timer::LazyTimer;

/// What an application answered. Its body gives the connection back when it has ended.
#[derive(Debug)]
pub struct UpstreamResponse {
    pub response: Response<UpstreamBody>,
    /// The server that answered, as written in the configuration.
    pub server: Arc<str>,
    /// Those tried before it.
    pub previous_attempts: PreviousAttempts,
}

/// The body of an answer. The request counts as under way until it has ended or is dropped.
#[derive(Debug)]
pub struct UpstreamBody {
    /// `None`: it has ended.
    incoming: Option<ResponseBody>,
    in_flight: Option<InFlight>,
    /// How long the server may take for the next part.
    patience: Duration,
    /// Since when it is waited for.
    since: Option<Instant>,
}

/// Where a body comes from.
#[derive(Debug)]
pub(super) enum ResponseBody {
    Http1(http1::Http1ResponseBody),
    Http2(Box<http2::Http2ResponseBody>),
}

impl UpstreamBody {
    /// The answer as it may go on: its body has the length it has, whatever two framing headers said of it.
    pub(super) fn attach(
        mut response: Response<ResponseBody>,
        in_flight: InFlight,
        patience: Duration,
    ) -> Response<Self> {
        if response.headers_mut().remove(TRANSFER_ENCODING).is_some() {
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        let has_switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        response.map(|incoming| {
            let is_through = incoming.is_through() && !has_switched;
            let mut body = Self { incoming: Some(incoming), in_flight: Some(in_flight), patience, since: None };
            if is_through {
                body.end();
            }
            body
        })
    }

    /// The connection that a 101 came over, which counts as a request under way as long as it is kept.
    pub fn into_tunnel(self) -> Option<Tunnel> {
        match (self.incoming, self.in_flight) {
            (Some(ResponseBody::Http1(incoming)), Some(in_flight)) => Some(incoming.into_tunnel(in_flight)),
            _ => None,
        }
    }

    fn end(&mut self) {
        self.in_flight = None;
        match self.incoming.take() {
            Some(ResponseBody::Http1(incoming)) => incoming.rest(),
            Some(ResponseBody::Http2(incoming)) => incoming.rest(),
            None => {}
        }
    }

    fn break_off(&mut self) {
        self.in_flight = None;
        self.incoming = None;
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let Some(incoming) = &mut this.incoming else { return Poll::Ready(None) };
        let Poll::Ready(frame) = incoming.poll_frame(cx) else {
            let since = *this.since.get_or_insert_with(Instant::now);
            return incoming.patience().poll_at(since + this.patience, cx).map(|()| {
                this.break_off();
                Some(Err(BodyError::Stalled))
            });
        };
        this.since = None;
        match &frame {
            // Nobody may ask again after the last part, so the end is seen here.
            Some(Ok(frame)) if frame.is_trailers() || incoming.is_through() => this.end(),
            Some(Ok(_)) => {}
            Some(Err(_)) => this.break_off(),
            None => this.end(),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(ResponseBody::is_through)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), ResponseBody::size_hint)
    }
}

impl ResponseBody {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Http1(incoming) => incoming.poll_frame(cx),
            Self::Http2(incoming) => incoming.poll_frame(cx),
        }
    }

    fn is_through(&self) -> bool {
        match self {
            Self::Http1(incoming) => incoming.is_through(),
            Self::Http2(incoming) => incoming.is_through(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(incoming) => incoming.size_hint(),
            Self::Http2(incoming) => incoming.size_hint(),
        }
    }

    fn patience(&mut self) -> &mut LazyTimer {
        match self {
            Self::Http1(incoming) => incoming.patience(),
            Self::Http2(incoming) => incoming.patience(),
        }
    }
}
