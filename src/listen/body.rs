//! The body of an answer over HTTP/2 as hyper writes it: it tells its stream when the client does not take it. Where it
//! breaks off, the client gets what came before.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;

use super::streams::StreamProgress;

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Watched<B> {
    body: B,
    stream: Arc<StreamProgress>,
    /// It broke off, which hyper is told once it has written what it had.
    broken_off: Option<Fault>,
}

/// Why a body broke off.
type Fault = Box<dyn Error + Send + Sync>;

impl<B> Watched<B> {
    pub(super) fn new(body: B, stream: Arc<StreamProgress>) -> Self {
        Self { body, stream, broken_off: None }
    }
}

impl<B> Body for Watched<B>
where
    B: Body<Data = Bytes, Error: Into<Fault>> + Unpin,
{
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        if let Some(fault) = self.broken_off.take() {
            return Poll::Ready(Some(Err(fault)));
        }
        let frame = match Pin::new(&mut self.body).poll_frame(cx).map_err(Into::into) {
            Poll::Ready(Some(Err(fault))) => {
                // At once hyper would drop a head with it that it has not written yet.
                self.broken_off = Some(fault);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            frame => frame,
        };
        self.stream.note_frame(frame.is_ready());
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
