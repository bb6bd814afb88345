//! What a client speaks that has not said so in its handshake.

use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::BytesMut;

use super::channel::Channel;
use super::http1;
use super::http2::PREFACE;

/// What a client speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Reads until it is clear what the client speaks; what was read is kept. `None`: it left without a word.
pub(super) fn poll_recognize(
    channel: &mut Channel,
    read: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Option<Protocol>>> {
    loop {
        let length = ready!(http1::poll_read(Pin::new(channel), cx, |fresh| {
            read.extend_from_slice(fresh);
            fresh.len()
        }))?;
        let compared = read.len().min(PREFACE.len());
        if read[..compared] != PREFACE[..compared] {
            return Poll::Ready(Ok(Some(Protocol::Http1)));
        }
        if compared == PREFACE.len() {
            return Poll::Ready(Ok(Some(Protocol::Http2)));
        }
        if length == 0 {
            return Poll::Ready(Ok(None));
        }
    }
}
