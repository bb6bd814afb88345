//! Reads a body that arrives in frames, on a thread that may block.

use std::io;
use std::io::Read;

use bytes::Buf;
use bytes::Bytes;
use tokio::sync::mpsc::Receiver;

/// The bytes of an answer, bounded as a whole and in each text that the JSON in it has.
#[derive(Debug)]
pub(super) struct BoundedReader {
    /// Ends when the body has ended, or can no longer be read.
    frames: Receiver<Bytes>,
    frame: Bytes,
    left: u64,
    text: TextLength,
}

/// How long the text is that the parser is within.
#[derive(Clone, Copy, Debug, Default)]
struct TextLength {
    is_within: bool,
    is_escaped: bool,
    length: usize,
}

/// A longer answer than this is none of a Local API: a million decisions take a third of it.
const MOST_BYTES: u64 = 1 << 30;

/// A parser holds a text whole. Decisions have none that is longer.
const MOST_TEXT: usize = 64 * 1024;

impl BoundedReader {
    pub(super) fn new(frames: Receiver<Bytes>) -> Self {
        Self { frames, frame: Bytes::new(), left: MOST_BYTES, text: TextLength::default() }
    }
}

impl Read for BoundedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.frame.is_empty() {
            match self.frames.blocking_recv() {
                Some(frame) => self.frame = frame,
                None => return Ok(0),
            }
            self.left = self
                .left
                .checked_sub(self.frame.len() as u64)
                .ok_or_else(|| io::Error::other(format!("the answer is longer than {} MiB", MOST_BYTES >> 20)))?;
            self.text.extend(&self.frame)?;
        }
        let length = self.frame.len().min(buffer.len());
        self.frame.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

impl TextLength {
    fn extend(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'"' => *self = Self { is_within: !self.is_within, ..Self::default() },
                b'\\' => self.is_escaped = self.is_within,
                _ => {}
            }
            self.length += 1;
            if self.length > MOST_TEXT {
                return Err(io::Error::other(format!("a text or a gap in it is longer than {} KiB", MOST_TEXT >> 10)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    fn read(frames: &[&[u8]]) -> io::Result<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(frames.len().max(1));
        for frame in frames {
            sender.try_send(Bytes::copy_from_slice(frame)).expect("there is room");
        }
        drop(sender);
        let mut bytes = Vec::new();
        BoundedReader::new(receiver).read_to_end(&mut bytes).map(|_| bytes)
    }

    #[test]
    fn frames_become_one_stream() {
        assert_eq!(read(&[]).unwrap(), b"");
        assert_eq!(read(&[b"{\"a\"", b"", b":1}"]).unwrap(), b"{\"a\":1}");
    }

    #[test]
    fn a_long_text_is_an_error_and_many_short_ones_are_not() {
        let many = "\"a\\\"b\",".repeat(MOST_TEXT);
        assert!(read(&[many.as_bytes()]).is_ok());
        for text in ["x".repeat(MOST_TEXT), "\\\"".repeat(MOST_TEXT / 2), " ".repeat(MOST_TEXT + 1)] {
            let error = read(&[b"\"", text.as_bytes()]).unwrap_err();
            assert_eq!(error.to_string(), "a text or a gap in it is longer than 64 KiB");
        }
    }
}
