//! Encodes the body of a message.

use std::io::Write;

use bytes::Bytes;
use http::HeaderMap;

use super::BodyLength;
use super::IncompleteBody;
use super::WriteBuffer;
use super::trailers;

/// Encodes one body.
#[derive(Debug)]
pub struct BodyEncoder(BodyLength);

impl BodyEncoder {
    pub fn new(length: BodyLength) -> Self {
        Self(length)
    }

    /// Writes a part. Bytes beyond the announced length are dropped.
    pub fn part(&mut self, mut part: Bytes, out: &mut WriteBuffer) {
        if part.is_empty() {
            return;
        }
        match &mut self.0 {
            BodyLength::Known(left) => {
                part.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= part.len() as u64;
                out.put_part(part);
            }
            BodyLength::UntilClose => out.put_part(part),
            BodyLength::Chunked => {
                let mut line = [0; MAX_SIZE_LINE];
                let mut rest = &mut line[..];
                // Cannot fail: the line has room for any size.
                let _ = write!(rest, "{:X}\r\n", part.len());
                let written = MAX_SIZE_LINE - rest.len();
                out.put(&line[..written]);
                out.put_part(part);
                out.put(b"\r\n");
            }
        }
    }

    /// Whether the announced length is written, so that `end` has nothing to add.
    pub fn is_complete(&self) -> bool {
        self.0 == BodyLength::Known(0)
    }

    /// Writes the end.
    pub fn end(&mut self, trailers: Option<&HeaderMap>, out: &mut WriteBuffer) -> Result<(), IncompleteBody> {
        match self.0 {
            BodyLength::Known(0) | BodyLength::UntilClose => Ok(()),
            BodyLength::Known(_) => Err(IncompleteBody),
            BodyLength::Chunked => {
                out.put(b"0\r\n");
                if let Some(fields) = trailers {
                    trailers::write(fields, out);
                }
                out.put(b"\r\n");
                Ok(())
            }
        }
    }
}

/// In bytes: sixteen digits and a line end.
const MAX_SIZE_LINE: usize = 18;

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;

    #[track_caller]
    fn check(length: BodyLength, parts: &[&'static str], expected: Result<&str, IncompleteBody>) {
        let (mut encoder, mut out) = (BodyEncoder::new(length), WriteBuffer::default());
        for part in parts {
            encoder.part(Bytes::from_static(part.as_bytes()), &mut out);
        }
        let ended = encoder.end(None, &mut out);
        let written = out.copy_to_bytes(out.remaining());
        assert_eq!(ended.map(|()| written.escape_ascii().to_string()), expected.map(str::to_owned));
    }

    #[test]
    fn a_body_of_known_length_is_written_to_that_length_or_is_incomplete() {
        check(BodyLength::Known(5), &["ab", "", "cde"], Ok("abcde"));
        check(BodyLength::Known(5), &["abcd", "efg"], Ok("abcde"));
        check(BodyLength::Known(5), &["abcd"], Err(IncompleteBody));
        check(BodyLength::Known(0), &[], Ok(""));
        check(BodyLength::UntilClose, &["ab", "c"], Ok("abc"));
    }

    #[test]
    fn an_empty_part_is_not_the_last_chunk() {
        check(
            BodyLength::Chunked,
            &["ab", "", "0123456789abcdef"],
            Ok(r"2\r\nab\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"),
        );
        check(BodyLength::Chunked, &[], Ok(r"0\r\n\r\n"));
    }

    #[test]
    fn trailers_follow_the_last_chunk() {
        let trailers = HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("\"a\""))]);
        let (mut encoder, mut out) = (BodyEncoder::new(BodyLength::Chunked), WriteBuffer::default());
        assert_eq!(encoder.end(Some(&trailers), &mut out), Ok(()));
        assert_eq!(out.copy_to_bytes(out.remaining()), "0\r\netag: \"a\"\r\n\r\n");
    }
}
