//! Buffers that all connections of a core share, so that idle connections hold none.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use http::HeaderMap;
use tokio::io::AsyncRead;
use tokio::io::ReadBuf;

use crate::http1::grammar::WriteBuffer;

/// Reads once, and passes the bytes to `look`. No bytes: the peer has closed.
pub(in crate::listen) fn poll_read<R, T>(
    mut from: Pin<&mut R>,
    cx: &mut Context<'_>,
    look: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<T>>
where
    R: AsyncRead + ?Sized,
{
    READ.with_borrow_mut(|buffer| {
        let mut read = ReadBuf::new(buffer);
        match ready!(from.as_mut().poll_read(cx, &mut read)) {
            Ok(()) => Poll::Ready(Ok(look(read.filled()))),
            // Many clients close TLS without a `close_notify`.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(look(&[]))),
            Err(error) => Poll::Ready(Err(error)),
        }
    })
}

/// An empty map, with capacity if the pool has one.
pub(super) fn take_header_map() -> HeaderMap {
    FIELDS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Returns a map to the pool.
pub(super) fn return_header_map(mut fields: HeaderMap) {
    FIELDS.with_borrow_mut(|kept| {
        if fields.capacity() <= MAX_FIELDS && kept.len() < MAX_MAPS {
            fields.clear();
            kept.push(fields);
        }
    });
}

/// An empty buffer, with capacity if the pool has one.
pub(super) fn take_write_buffer() -> WriteBuffer {
    WRITE_BUFFER.take()
}

/// Returns an empty buffer to the pool.
pub(super) fn return_write_buffer(buffer: WriteBuffer) {
    if buffer.capacity() <= MAX_WRITE_BUFFER {
        WRITE_BUFFER.set(buffer);
    }
}

thread_local! {
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_SIZE].into_boxed_slice());
    static FIELDS: RefCell<Vec<HeaderMap>> = RefCell::default();
    static WRITE_BUFFER: RefCell<WriteBuffer> = RefCell::default();
}

/// In bytes: a TLS record, and more than most heads.
const READ_SIZE: usize = 16 * 1024;

/// Fields of a map that is kept. Few heads have more.
const MAX_FIELDS: usize = 64;

/// Enough for the concurrent requests of a busy core, but not for a burst.
const MAX_MAPS: usize = 32;

/// In bytes: a head and a short body.
const MAX_WRITE_BUFFER: usize = 16 * 1024;
