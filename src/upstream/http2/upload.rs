//! A request's body on its way to a server. What passes is noted, so that waiting for the server can be told from waiting
//! for the client.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use h2::Reason;
use h2::SendStream;
use http_body::Body;
use tokio::time::Instant;

use crate::coalesce::CoalescingBody;
use crate::http2::poll_room;
use crate::upstream::error::BoxError;
use crate::upstream::replay::ReplayBody;

/// A body that is not empty, and that the server may refuse unread.
#[derive(Debug)]
pub(super) struct Upload<B> {
    body: CoalescingBody<B>,
    stream: SendStream<Bytes>,
    /// When the request, or a part of its body, last went out.
    moved: Instant,
    at: At,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    /// The server takes no more for now.
    Room,
    /// The next part has not come yet.
    Body,
    /// All is sent, or no more is wanted.
    End,
}

impl<B: ReplayBody> Upload<B> {
    pub(super) fn new(mut body: B, stream: SendStream<Bytes>) -> Self {
        body.keep();
        Self { body: CoalescingBody::new(body), stream, moved: Instant::now(), at: At::Room }
    }

    /// Since when it is the server's turn; `None`: it is the client's.
    pub(super) fn server_is_due_since(&self) -> Option<Instant> {
        (self.at != At::Body).then_some(self.moved)
    }

    pub(super) fn is_through(&self) -> bool {
        self.at == At::End
    }

    /// The body from its beginning. `None`: too much of it was sent.
    pub(super) fn take_back(self) -> Option<B> {
        let mut body = self.body.into_inner();
        body.replay().then_some(body)
    }

    /// It will not be asked for its body again.
    pub(super) fn forget(&mut self) {
        self.body.get_mut().forget();
    }
}

impl<B> Upload<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Ready when all is sent, or the server wants no more; fails where the body does.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        while self.at != At::End {
            if self.stream.poll_reset(cx).is_ready() {
                self.end();
                break;
            }
            self.at = At::Room;
            // Not all of it: what one stream was promised, others do not get.
            self.stream.reserve_capacity(1);
            ready!(poll_room(&mut self.stream, cx));
            self.at = At::Body;
            let part = ready!(Pin::new(&mut self.body).poll_frame(cx));
            self.moved = Instant::now();
            // That the server wants no more shows in its answer.
            match part.map(|part| part.map(http_body::Frame::into_data)) {
                Some(Ok(Ok(data))) => {
                    let is_last = self.body.is_end_stream();
                    if self.stream.send_data(data, is_last).is_err() || is_last {
                        self.end();
                    }
                }
                Some(Ok(Err(frame))) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        drop(self.stream.send_trailers(trailers));
                        self.end();
                    }
                }
                Some(Err(error)) => {
                    self.end();
                    self.stream.send_reset(Reason::INTERNAL_ERROR);
                    return Poll::Ready(Err(error));
                }
                None => {
                    drop(self.stream.send_data(Bytes::new(), true));
                    self.end();
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self) {
        (self.at, self.moved) = (At::End, Instant::now());
    }
}
