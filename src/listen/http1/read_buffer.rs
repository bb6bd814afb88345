//! The buffer that all connections of a core read into, so that idle connections hold none.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use tokio::io::AsyncRead;
use tokio::io::ReadBuf;

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

thread_local! {
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_SIZE].into_boxed_slice());
}

/// In bytes: a TLS record, and more than most heads.
const READ_SIZE: usize = 16 * 1024;
