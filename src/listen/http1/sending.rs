//! An answer on its way out.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http_body::Body;

use super::answer;
use super::answer::Framed;
use super::conversation::End;
use crate::http1::Encoder;
use crate::http1::Length;
use crate::http1::Outbox;

/// An answer being written.
#[derive(Debug)]
pub(super) struct Sending<B> {
    /// `None`: all of it is in the outbox.
    pub(super) body: Option<B>,
    encoder: Encoder,
    /// What may stand behind the body.
    trailers: Vec<HeaderName>,
    /// What follows it. `None`: another request.
    pub(super) end: Option<End>,
}

impl<B> Sending<B> {
    /// What follows this head.
    pub(super) fn new(body: B, framed: Framed) -> Self {
        let Framed { body: length, keeps_alive, trailers } = framed;
        let end = if keeps_alive { None } else { Some(End::Said) };
        let encoder = Encoder::new(length.unwrap_or(Length::Known(0)));
        Self { body: length.map(|_| body), encoder, trailers, end }
    }

    /// No body, and the end of the connection.
    pub(super) fn of_nothing(end: End) -> Self {
        Self { body: None, encoder: Encoder::new(Length::Known(0)), trailers: Vec::new(), end: Some(end) }
    }
}

impl<B> Sending<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    /// Puts the next parts of the body into the outbox. Pending: the next one is not there yet.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>, outbox: &mut Outbox) -> Poll<()> {
        while outbox.has_room() {
            let Some(body) = &mut self.body else { break };
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let is_through = body.is_end_stream() || frame.is_trailers();
                    let trailers = match frame.into_data() {
                        Ok(data) => {
                            self.encoder.part(data, outbox);
                            None
                        }
                        Err(frame) => frame.into_trailers().ok(),
                    };
                    if is_through || self.encoder.is_through() {
                        self.finish(trailers, outbox);
                    }
                }
                None => self.finish(None, outbox),
                // The client gets what came before.
                Some(Err(_)) => {
                    self.body = None;
                    self.end = Some(End::Broken);
                }
            }
        }
        Poll::Ready(())
    }

    fn finish(&mut self, trailers: Option<HeaderMap>, outbox: &mut Outbox) {
        self.body = None;
        // What was not announced may not stand there.
        let announced = |name: &HeaderName| self.trailers.contains(name) && answer::may_trail(name);
        let trailers = trailers.map(|mut trailers| {
            let others: Vec<HeaderName> = trailers.keys().filter(|name| !announced(name)).cloned().collect();
            for name in others {
                trailers.remove(name);
            }
            trailers
        });
        if self.encoder.end(trailers.as_ref(), outbox).is_err() {
            self.end = Some(End::Broken);
        }
    }
}
