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
use hyper::body::Incoming;
use tokio::time::Instant;

use super::error::BodyError;
use super::error::Passed;
use super::link::Rest;
use super::server::InFlight;

/// What an application answered. Its body gives the connection back when it has ended.
#[derive(Debug)]
pub struct Answer {
    pub response: Response<AnswerBody>,
    /// The server that answered, as written in the configuration.
    pub server: Arc<str>,
    /// Those tried before it.
    pub passed: Passed,
}

/// The body of an answer. The request counts as under way until it has ended or is dropped: keep the body of a 101
/// as long as its tunnel.
#[derive(Debug)]
pub struct AnswerBody {
    incoming: Incoming,
    link: Option<Box<dyn Rest>>,
    in_flight: Option<InFlight>,
    /// How long the server may take for the next part.
    patience: Duration,
    /// Since when it is waited for.
    since: Option<Instant>,
}

impl AnswerBody {
    /// The answer as it may go on: its body has the length it has, whatever two framing headers said of it.
    pub(super) fn attach(
        mut response: Response<Incoming>,
        link: Box<dyn Rest>,
        in_flight: InFlight,
        patience: Duration,
    ) -> Response<Self> {
        if response.headers_mut().remove(TRANSFER_ENCODING).is_some() {
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        let switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        response.map(|incoming| {
            let link = Some(link).filter(|_| !switched);
            let mut body = Self { incoming, link, in_flight: Some(in_flight), patience, since: None };
            if body.incoming.is_end_stream() && !switched {
                body.end();
            }
            body
        })
    }

    fn end(&mut self) {
        self.in_flight = None;
        if let Some(link) = self.link.take() {
            link.rest();
        }
    }

    fn break_off(&mut self) {
        self.in_flight = None;
        self.link = None;
    }

    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(link) = &mut self.link else { return Poll::Pending };
        let since = *self.since.get_or_insert_with(Instant::now);
        link.patience().poll_at(since + self.patience, cx)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let frame = match Pin::new(&mut this.incoming).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                return this.poll_patience(cx).map(|()| {
                    this.break_off();
                    Some(Err(BodyError::Stalled))
                });
            }
        };
        this.since = None;
        match &frame {
            // Nobody may ask again after the last part, so the end is seen here.
            Some(Ok(frame)) if frame.is_trailers() || this.incoming.is_end_stream() => this.end(),
            Some(Ok(_)) => {}
            Some(Err(_)) => this.break_off(),
            None => this.end(),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
