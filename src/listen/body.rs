//! The body of an answer as hyper writes it: it tells the connection when the answer is complete, and its stream
//! when the client does not take it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;

use super::Connection;
use super::connection::Phase;
use super::streams::StreamProgress;

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Watched<B> {
    body: B,
    whose: Whose,
}

#[derive(Debug)]
pub(super) enum Whose {
    Connection(Arc<Connection>),
    Stream(Arc<StreamProgress>),
}

impl<B> Watched<B> {
    pub(super) fn new(body: B, whose: Whose) -> Self {
        Self { body, whose }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Watched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Whose::Connection(connection) = &self.whose
            && connection.progress.holds_back(cx)
        {
            return Poll::Pending;
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Whose::Stream(progress) = &self.whose {
            progress.note_frame(frame.is_ready());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Watched<B> {
    /// hyper drops a body once its last part is in the buffer.
    fn drop(&mut self) {
        if let Whose::Connection(connection) = &self.whose
            && connection.progress.phase() == Phase::Busy
        {
            connection.progress.enter(Phase::Flushing);
        }
    }
}
