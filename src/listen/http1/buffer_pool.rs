//! What a core keeps for all of its connections, so that none has to keep it while it rests.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use http::HeaderMap;
use tokio::io::AsyncRead;
use tokio::io::ReadBuf;

use crate::http1::Outbox;

/// Reads what is there, once, and has it looked at. Nothing: the other side has closed.
pub(in crate::listen) fn poll_read<R, T>(
    mut from: Pin<&mut R>,
    cx: &mut Context<'_>,
    look: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<T>>
where
    R: AsyncRead + ?Sized,
{
    READ.with_borrow_mut(|scratch| {
        let mut read = ReadBuf::new(scratch);
        match ready!(from.as_mut().poll_read(cx, &mut read)) {
            Ok(()) => Poll::Ready(Ok(look(read.filled()))),
            // Many clients do not say goodbye to TLS.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(look(&[]))),
            Err(error) => Poll::Ready(Err(error)),
        }
    })
}

/// An empty map, with room if there is one.
pub(super) fn fields() -> HeaderMap {
    FIELDS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Keeps the room of a map that is not needed any more.
pub(super) fn keep_fields(mut fields: HeaderMap) {
    FIELDS.with_borrow_mut(|kept| {
        if fields.capacity() <= MAX_FIELDS && kept.len() < MAX_MAPS {
            fields.clear();
            kept.push(fields);
        }
    });
}

/// An empty outbox, with room if there is one.
pub(super) fn outbox() -> Outbox {
    OUTBOX.take()
}

/// Keeps the room of an outbox that is empty.
pub(super) fn keep_outbox(outbox: Outbox) {
    if outbox.capacity() <= MAX_OUTBOX {
        OUTBOX.set(outbox);
    }
}

thread_local! {
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; AT_ONCE].into_boxed_slice());
    static FIELDS: RefCell<Vec<HeaderMap>> = RefCell::default();
    static OUTBOX: RefCell<Outbox> = RefCell::default();
}

/// What one record of TLS holds, and more than a head has.
const AT_ONCE: usize = 16 * 1024;

/// So many fields; few heads have more.
const MAX_FIELDS: usize = 64;

/// For the requests under way at a time on a busy core, and not for a rush of them.
const MAX_MAPS: usize = 32;

/// A head and a short body.
const MAX_OUTBOX: usize = 16 * 1024;
