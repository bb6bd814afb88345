//! A request on its way out.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Body;
use tokio::io::AsyncWrite;
use tokio::time::Instant;
use tokio_util::io::poll_write_buf;

use super::head;
use crate::http1::Encoder;
use crate::http1::Outbox;
use crate::timer::LazyTimer;
use crate::upstream::error::BoxError;

/// A request of which nothing, some or all is written. As long as nothing is, it can go over another connection.
#[derive(Debug)]
pub(in crate::upstream) struct Sending {
    outbox: Outbox,
    /// `None`: nothing more of a body is to come.
    body: Option<Encoder>,
    is_written: bool,
    /// The server takes no more.
    is_blocked: bool,
    /// When the request, or a part of its body, last went out.
    progress: Instant,
}

/// Why a request cannot be sent to its end.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The connection takes nothing any more.
    Connection,
    /// The body broke off.
    Body(BoxError),
}

impl Sending {
    pub(in crate::upstream) fn new<B: Body>(request: &Request<B>) -> Self {
        let mut outbox = Outbox::default();
        let body = head::write(request, &mut outbox).map(Encoder::new);
        Self { outbox, body, is_written: false, is_blocked: false, progress: Instant::now() }
    }

    /// It goes over another connection now.
    pub(super) fn begins(&mut self) {
        self.progress = Instant::now();
    }

    /// Whether the connection took a byte of it.
    pub(super) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Whether nothing is left to be sent.
    pub(super) fn is_through(&self) -> bool {
        self.body.is_none() && self.outbox.is_empty()
    }

    /// Since when it is the server's turn; `None`: it is the client's.
    pub(super) fn server_is_due_since(&self) -> Option<Instant> {
        (self.body.is_none() || self.is_blocked).then_some(self.progress)
    }

    /// Sends what there is. Ready when all of it is sent.
    pub(super) fn poll<B>(
        &mut self,
        body: &mut B,
        mut stream: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Unsent>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        loop {
            let filled = self.poll_fill(body, cx)?;
            while !self.outbox.is_empty() {
                let written = poll_write_buf(stream.as_mut(), cx, &mut self.outbox);
                self.is_blocked = written.is_pending();
                if !matches!(ready!(written), Ok(1..)) {
                    self.give_up();
                    return Poll::Ready(Err(Unsent::Connection));
                }
                self.is_written = true;
                if self.body.is_some() {
                    self.progress = Instant::now();
                }
            }
            if filled.is_ready() && self.body.is_some() {
                continue;
            }
            if ready!(stream.as_mut().poll_flush(cx)).is_err() {
                self.give_up();
                return Poll::Ready(Err(Unsent::Connection));
            }
            return if self.body.is_none() { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
    }

    /// Puts as much of the body behind what is to be written as should be written at once. Pending: the client has
    /// sent no more of it.
    fn poll_fill<B>(&mut self, body: &mut B, cx: &mut Context<'_>) -> Poll<Result<(), Unsent>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        while let Some(encoder) = &mut self.body
            && self.outbox.has_room()
        {
            let frame =
                ready!(Pin::new(&mut *body).poll_frame(cx)).transpose().map_err(|it| Unsent::Body(it.into()))?;
            let ended = match frame.map(http_body::Frame::into_data) {
                Some(Ok(data)) => {
                    encoder.part(data, &mut self.outbox);
                    encoder.is_through().then_some(Ok(()))
                }
                Some(Err(frame)) => Some(encoder.end(frame.trailers_ref(), &mut self.outbox)),
                None => Some(encoder.end(None, &mut self.outbox)),
            };
            if let Some(ended) = ended {
                self.body = None;
                self.progress = Instant::now();
                ended.map_err(|cut_short| Unsent::Body(cut_short.into()))?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The connection takes nothing any more: what it took a part of goes nowhere else.
    fn give_up(&mut self) {
        if self.is_written {
            self.body = None;
            self.outbox = Outbox::default();
        }
    }

    /// Sends what is left of it behind an answer that came early, until it is through, or cannot go on, or the server
    /// has not taken any of it for so long.
    pub(super) async fn finish<B>(mut self, mut body: B, mut stream: impl AsyncWrite + Unpin, patience: Duration)
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let mut alarm = LazyTimer::default();
        poll_fn(|cx| {
            if self.poll(&mut body, Pin::new(&mut stream), cx).is_ready() {
                return Poll::Ready(());
            }
            match self.server_is_due_since() {
                Some(since) => alarm.poll_at(since + patience, cx),
                None => Poll::Pending,
            }
        })
        .await;
    }
}
