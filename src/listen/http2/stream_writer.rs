//! Writes the body of a response to a stream, as its window allows.

use std::error::Error;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use h2::Reason;
use h2::SendStream;
use http_body::Body;
use http_body::Frame;

use super::write_backlog::WriteBacklog;
use crate::coalesce::CoalescingBody;
use crate::http2::poll_room;
use crate::listen::Settings;
use crate::timer::ProgressTimeout;

/// Why a body broke off.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Debug)]
pub(super) struct StreamWriter<B> {
    body: CoalescingBody<B>,
    stream: SendStream<Bytes>,
    /// The part that has no room in the window yet, and whether it is the last.
    part: Option<(Bytes, bool)>,
    /// The body broke off. The client gets the parts before.
    has_broken_off: bool,
    /// For a client that does not read.
    timeout: ProgressTimeout,
    backlog: WriteBacklog,
}

impl<B> StreamWriter<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    pub(super) fn new(body: B, stream: SendStream<Bytes>, settings: &Settings, backlog: WriteBacklog) -> Self {
        let timeout = ProgressTimeout::new(settings.body_idle, settings.body_rate);
        Self { body: CoalescingBody::new(body), stream, part: None, has_broken_off: false, timeout, backlog }
    }

    /// Ready when everything is sent, when the client has gone, and when it reads nothing, or too little, for too long.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.has_broken_off {
                self.stream.send_reset(Reason::INTERNAL_ERROR);
                return Poll::Ready(());
            }
            if self.stream.poll_reset(cx).is_ready() {
                return Poll::Ready(());
            }
            if let Some((part, is_last)) = self.part.take() {
                if poll_room(&mut self.stream, cx).is_pending() {
                    self.part = Some((part, is_last));
                    return self.timeout.poll_expired(cx);
                }
                self.timeout.moved(part.len());
                self.backlog.add(part.len());
                if self.stream.send_data(part, is_last).is_err() || is_last {
                    return Poll::Ready(());
                }
            }
            ready!(self.backlog.poll_room(cx));
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if self.take(frame) {
                        return Poll::Ready(());
                    }
                }
                Some(Err(_)) => {
                    // In the next poll: a reset in this one would drop the parts that h2 has not written yet.
                    self.has_broken_off = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                None => {
                    drop(self.stream.send_data(Bytes::new(), true));
                    return Poll::Ready(());
                }
            }
        }
    }

    /// Takes a frame of the body. Whether it was the last.
    fn take(&mut self, frame: Frame<Bytes>) -> bool {
        match frame.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(data) => {
                // One byte, not all: window that is reserved for this stream is not available to others.
                self.stream.reserve_capacity(1);
                self.part = Some((data, self.body.is_end_stream()));
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.backlog.add_head(&trailers);
                    drop(self.stream.send_trailers(trailers));
                    return true;
                }
            }
        }
        false
    }
}
