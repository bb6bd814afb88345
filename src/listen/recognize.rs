//! Recognizes the protocol of a client that did not negotiate one in the TLS handshake.

use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::BytesMut;

use super::channel::Channel;
use super::http1;
use super::http2::PREFACE;
use super::protocol::Protocol;

/// Reads until the protocol is known, and keeps the bytes in `read`. `None`: the client left without sending anything.
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
