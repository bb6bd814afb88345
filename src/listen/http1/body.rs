//! The body of a request, read off the connection by the task that polls it.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http_body::Frame;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::shared_channel::SharedChannel;
use crate::listen::IncomingBodyError;
use crate::listen::client_stream::Channel;
use crate::wire::http1::grammar::BodyLength;

/// The rest of a body. Dropped before its end, it makes the connection close after the response.
#[derive(Debug)]
pub(in crate::listen) struct Http1RequestBody {
    channel: Arc<Mutex<SharedChannel>>,
    length: BodyLength,
    is_complete: bool,
}

impl Http1RequestBody {
    pub(super) fn new(channel: Arc<Mutex<SharedChannel>>, length: BodyLength) -> Self {
        Self { channel, length, is_complete: false }
    }

    pub(in crate::listen) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        if self.is_complete {
            return Poll::Ready(None);
        }
        let frame = ready!(self.channel.lock().poll_body(cx));
        match &frame {
            None => self.is_complete = true,
            Some(Ok(frame)) => match (frame.data_ref(), &mut self.length) {
                (None, _) => self.is_complete = true,
                (Some(data), BodyLength::Known(left)) => {
                    *left = left.saturating_sub(data.len() as u64);
                    self.is_complete = *left == 0;
                }
                (Some(_), BodyLength::Chunked | BodyLength::UntilClose) => {}
            },
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    pub(in crate::listen) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// How many bytes are left, where that is known.
    pub(in crate::listen) fn remaining(&self) -> Option<u64> {
        match (self.length, self.is_complete) {
            (_, true) => Some(0),
            (BodyLength::Known(left), false) => Some(left),
            (BodyLength::Chunked | BodyLength::UntilClose, false) => None,
        }
    }
}

impl Drop for Http1RequestBody {
    fn drop(&mut self) {
        if !self.is_complete {
            self.channel.lock().abandon_body();
        }
    }
}

// A client's connection after an upgrade from HTTP/1.1.

/// The connection from the first byte after the 101.
#[derive(Debug)]
pub(in crate::listen) struct Http1Tunnel {
    channel: Channel,
    /// Bytes that were read with the request.
    read: BytesMut,
}

impl Http1Tunnel {
    pub(super) fn new(channel: Channel, read: BytesMut) -> Self {
        Self { channel, read }
    }
}

impl AsyncRead for Http1Tunnel {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.channel).poll_read(cx, buf);
        }
        let length = self.read.len().min(buf.remaining());
        buf.put_slice(&self.read[..length]);
        self.read.advance(length);
        if self.read.is_empty() {
            self.read = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Http1Tunnel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.channel).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.channel).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.channel.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.channel).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.channel).poll_shutdown(cx)
    }
}
