//! A body, written behind a head.

use std::io::Write;

use bytes::Bytes;
use http::HeaderMap;

use super::CutShort;
use super::Length;
use super::Outbox;
use super::fields;

/// Writes one body.
#[derive(Debug)]
pub struct Encoder(Length);

impl Encoder {
    pub fn new(length: Length) -> Self {
        Self(length)
    }

    /// Writes a part. What is more than was announced is left out.
    pub fn part(&mut self, mut part: Bytes, out: &mut Outbox) {
        if part.is_empty() {
            return;
        }
        match &mut self.0 {
            Length::Known(left) => {
                part.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= part.len() as u64;
                out.put_part(part);
            }
            Length::ToTheEnd => out.put_part(part),
            Length::Chunked => {
                let mut line = [0; MAX_SIZE_LINE];
                let mut rest = &mut line[..];
                // It has room for any size.
                let _ = write!(rest, "{:X}\r\n", part.len());
                let written = MAX_SIZE_LINE - rest.len();
                out.put(&line[..written]);
                out.put_part(part);
                out.put(b"\r\n");
            }
        }
    }

    /// Whether all that was announced is written, so that nothing has to be put behind it.
    pub fn is_through(&self) -> bool {
        self.0 == Length::Known(0)
    }

    /// Writes the end.
    pub fn end(&mut self, trailers: Option<&HeaderMap>, out: &mut Outbox) -> Result<(), CutShort> {
        match self.0 {
            Length::Known(0) | Length::ToTheEnd => Ok(()),
            Length::Known(_) => Err(CutShort),
            Length::Chunked => {
                out.put(b"0\r\n");
                if let Some(trailers) = trailers {
                    fields::write(trailers, out);
                }
                out.put(b"\r\n");
                Ok(())
            }
        }
    }
}

/// Sixteen digits and a line end.
const MAX_SIZE_LINE: usize = 18;

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;

    #[track_caller]
    fn check(length: Length, parts: &[&'static str], expected: Result<&str, CutShort>) {
        let (mut encoder, mut out) = (Encoder::new(length), Outbox::default());
        for part in parts {
            encoder.part(Bytes::from_static(part.as_bytes()), &mut out);
        }
        let ended = encoder.end(None, &mut out);
        let written = out.copy_to_bytes(out.remaining());
        assert_eq!(ended.map(|()| written.escape_ascii().to_string()), expected.map(str::to_owned));
    }

    #[test]
    fn a_known_length_is_what_is_written_or_it_is_cut_short() {
        check(Length::Known(5), &["ab", "", "cde"], Ok("abcde"));
        check(Length::Known(5), &["abcd", "efg"], Ok("abcde"));
        check(Length::Known(5), &["abcd"], Err(CutShort));
        check(Length::Known(0), &[], Ok(""));
        check(Length::ToTheEnd, &["ab", "c"], Ok("abc"));
    }

    #[test]
    fn an_empty_part_is_not_the_last_chunk() {
        check(Length::Chunked, &["ab", "", "0123456789abcdef"], Ok(r"2\r\nab\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"));
        check(Length::Chunked, &[], Ok(r"0\r\n\r\n"));
    }

    #[test]
    fn trailers_stand_behind_the_last_chunk() {
        let trailers = HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("\"a\""))]);
        let (mut encoder, mut out) = (Encoder::new(Length::Chunked), Outbox::default());
        assert_eq!(encoder.end(Some(&trailers), &mut out), Ok(()));
        assert_eq!(out.copy_to_bytes(out.remaining()), "0\r\netag: \"a\"\r\n\r\n");
    }
}
