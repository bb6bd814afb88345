//! The body of an answer on its way to the client, who has to make room for it.

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

use super::unwritten::Unwritten;
use crate::coalesce::CoalescingBody;
use crate::http2::poll_room;
use crate::listen::Settings;
use crate::timer::ProgressTimeout;

/// Why a body broke off.
pub(super) type Fault = Box<dyn Error + Send + Sync>;

#[derive(Debug)]
pub(super) struct Sending<B> {
    body: CoalescingBody<B>,
    stream: SendStream<Bytes>,
    /// What there is no room for yet, and whether it is the last.
    part: Option<(Bytes, bool)>,
    /// The body broke off, and the client gets what came before.
    has_broken_off: bool,
    /// With a client that makes no room.
    patience: ProgressTimeout,
    unwritten: Unwritten,
}

impl<B> Sending<B>
where
    B: Body<Data = Bytes, Error: Into<Fault>> + Unpin,
{
    pub(super) fn new(body: B, stream: SendStream<Bytes>, settings: &Settings, unwritten: Unwritten) -> Self {
        let patience = ProgressTimeout::new(settings.body_idle, settings.body_rate);
        Self { body: CoalescingBody::new(body), stream, part: None, has_broken_off: false, patience, unwritten }
    }

    /// Ready when all is sent, or the client has gone, or makes no room for too long, or too little.
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
                    return self.patience.poll_expired(cx);
                }
                self.patience.moved(part.len());
                self.unwritten.add(part.len());
                if self.stream.send_data(part, is_last).is_err() || is_last {
                    return Poll::Ready(());
                }
            }
            ready!(self.unwritten.poll_room(cx));
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if self.take(frame) {
                        return Poll::Ready(());
                    }
                }
                Some(Err(_)) => {
                    // At once h2 would drop what it has not written yet.
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

    /// Whether it was the last.
    fn take(&mut self, frame: Frame<Bytes>) -> bool {
        match frame.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(data) => {
                // Not all of it: what one stream was promised, others do not get.
                self.stream.reserve_capacity(1);
                self.part = Some((data, self.body.is_end_stream()));
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.unwritten.add_head(&trailers);
                    drop(self.stream.send_trailers(trailers));
                    return true;
                }
            }
        }
        false
    }
}
