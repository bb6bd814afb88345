//! A request's body on its way to a server. It knows whether it waits for the server or for the client, for the timeout
//! of the server.

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
    progress: Instant,
    state: UploadState,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UploadState {
    /// The server takes no more for now.
    WaitsForServer,
    /// The client has not sent the next part.
    WaitsForClient,
    /// All is sent, or the server wants no more.
    Complete,
}

impl<B: ReplayBody> Upload<B> {
    pub(super) fn new(mut body: B, stream: SendStream<Bytes>) -> Self {
        body.keep();
        Self { body: CoalescingBody::new(body), stream, progress: Instant::now(), state: UploadState::WaitsForServer }
    }

    /// Since when the server is to move. `None`: the client is.
    pub(super) fn server_is_due_since(&self) -> Option<Instant> {
        (self.state != UploadState::WaitsForClient).then_some(self.progress)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state == UploadState::Complete
    }

    /// The body from its beginning. `None`: more of it was sent than it keeps.
    pub(super) fn take_back(self) -> Option<B> {
        let mut body = self.body.into_inner();
        body.replay().then_some(body)
    }

    /// The body is not needed a second time.
    pub(super) fn stop_keeping(&mut self) {
        self.body.get_mut().stop_keeping();
    }
}

impl<B> Upload<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Ready when all is sent, or when the server wants no more. Fails if the body fails.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        while self.state != UploadState::Complete {
            if self.stream.poll_reset(cx).is_ready() {
                self.end();
                break;
            }
            self.state = UploadState::WaitsForServer;
            // One byte only: capacity that one stream reserves is missing to the others.
            self.stream.reserve_capacity(1);
            ready!(poll_room(&mut self.stream, cx));
            self.state = UploadState::WaitsForClient;
            let part = ready!(Pin::new(&mut self.body).poll_frame(cx));
            self.progress = Instant::now();
            // If the server wants no more, its answer says so.
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
        (self.state, self.progress) = (UploadState::Complete, Instant::now());
    }
}
