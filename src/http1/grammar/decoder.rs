//! A body, cut out of what is read behind a head.

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;
use http::HeaderMap;
use http_body::Frame;
use memchr::memchr;
use memchr::memmem;

use super::BodyLength;
use super::IncompleteBody;
use super::InvalidMessage;
use super::fields;

/// Follows one body through the reads it arrives in.
#[derive(Debug)]
pub struct BodyDecoder {
    at: At,
    /// What came in chunks so far, and what stood behind their sizes.
    data: u64,
    extensions: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    /// So much is left.
    Known(u64),
    UntilClose,
    ChunkSize,
    /// So much of a chunk is left.
    Chunk(u64),
    ChunkEnd,
    Trailers,
    Through,
}

impl BodyDecoder {
    pub fn new(length: BodyLength) -> Self {
        let at = match length {
            BodyLength::Known(0) => At::Through,
            BodyLength::Known(length) => At::Known(length),
            BodyLength::Chunked => At::ChunkSize,
            BodyLength::UntilClose => At::UntilClose,
        };
        Self { at, data: 0, extensions: 0 }
    }

    /// Takes the next part of the body from the front of what was read. `None`: the body is through, or more has to be
    /// read first, for which what is left in `read` has to stay.
    pub fn decode(&mut self, read: &mut BytesMut) -> Result<Option<Frame<Bytes>>, InvalidMessage> {
        loop {
            match self.at {
                At::Through => return Ok(None),
                _ if read.is_empty() => return Ok(None),
                At::UntilClose => return Ok(Some(Frame::data(take(read, u64::MAX)))),
                At::Known(left) => {
                    let data = take(read, left);
                    let left = left - data.len() as u64;
                    self.at = if left == 0 { At::Through } else { At::Known(left) };
                    return Ok(Some(Frame::data(data)));
                }
                At::Chunk(left) => {
                    let data = take(read, left);
                    let left = left - data.len() as u64;
                    self.data = self.data.saturating_add(data.len() as u64);
                    self.at = if left == 0 { At::ChunkEnd } else { At::Chunk(left) };
                    return Ok(Some(Frame::data(data)));
                }
                At::ChunkEnd if read.starts_with(LINE_END) => {
                    read.advance(LINE_END.len());
                    self.at = At::ChunkSize;
                }
                At::ChunkEnd if LINE_END.starts_with(read) => return Ok(None),
                At::ChunkEnd => return Err(InvalidMessage::ChunkEnd),
                At::ChunkSize => match self.chunk_size(read)? {
                    None => return Ok(None),
                    Some(0) => self.at = At::Trailers,
                    Some(size) => self.at = At::Chunk(size),
                },
                At::Trailers => {
                    let Some(trailers) = trailers(read)? else { return Ok(None) };
                    self.at = At::Through;
                    return Ok(Some(trailers).filter(|it| !it.is_empty()).map(Frame::trailers));
                }
            }
        }
    }

    /// Whether nothing of the body is to come.
    pub fn is_complete(&self) -> bool {
        self.at == At::Through
    }

    /// What is left, where that is known.
    pub fn remaining(&self) -> Option<u64> {
        match self.at {
            At::Known(left) => Some(left),
            At::Through => Some(0),
            _ => None,
        }
    }

    /// The connection has ended, and everything that was read is decoded.
    pub fn end(&mut self) -> Result<(), IncompleteBody> {
        if self.at == At::UntilClose {
            self.at = At::Through;
        }
        if self.is_complete() { Ok(()) } else { Err(IncompleteBody) }
    }

    /// Takes the line with the size of a chunk.
    fn chunk_size(&mut self, read: &mut BytesMut) -> Result<Option<u64>, InvalidMessage> {
        let most = MAX_SIZE_LINE + LINE_END.len();
        let Some(feed) = memchr(b'\n', &read[..read.len().min(most)]) else {
            return if read.len() < most { Ok(None) } else { Err(InvalidMessage::Extensions) };
        };
        let line = read[..feed].strip_suffix(b"\r").ok_or(InvalidMessage::ChunkSize)?;
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (digits, behind) = line.split_at(digits);
        let size = str::from_utf8(digits).ok().filter(|digits| digits.len() <= MAX_DIGITS);
        let size = size.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or(InvalidMessage::ChunkSize)?;
        if !is_extension(behind) {
            return Err(InvalidMessage::ChunkSize);
        }
        // Padding counts for nothing: its line is short.
        self.extensions += behind.iter().filter(|byte| !is_blank(**byte)).count() as u64;
        if self.extensions > MAX_EXTENSIONS + self.data / DATA_PER_EXTENSION {
            return Err(InvalidMessage::Extensions);
        }
        read.advance(feed + 1);
        Ok(Some(size))
    }
}

/// Up to so many bytes. Few are copied, so that the buffer they are in stays in one hand.
fn take(read: &mut BytesMut, most: u64) -> Bytes {
    let length = usize::try_from(most).unwrap_or(usize::MAX).min(read.len());
    if length <= WORTH_COPYING {
        let data = Bytes::copy_from_slice(&read[..length]);
        read.advance(length);
        data
    } else {
        read.split_to(length).freeze()
    }
}

/// Whether this may stand behind a size: blanks, which some pad it with, and then only what follows a semicolon.
fn is_extension(behind: &[u8]) -> bool {
    let first = behind.iter().find(|byte| !is_blank(**byte));
    let is_text = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != DELETE);
    first.is_none_or(|first| *first == b';') && behind.iter().all(is_text)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Takes the lines behind the last chunk.
fn trailers(read: &mut BytesMut) -> Result<Option<HeaderMap>, InvalidMessage> {
    let end = if read.starts_with(LINE_END) {
        LINE_END.len()
    } else if let Some(end) = memmem::find(read, b"\r\n\r\n") {
        end + 4
    } else {
        return if read.len() > MAX_TRAILERS { Err(InvalidMessage::Trailers) } else { Ok(None) };
    };
    if end > MAX_TRAILERS {
        return Err(InvalidMessage::Trailers);
    }
    let lines = Bytes::copy_from_slice(&read[..end]);
    read.advance(end);
    let mut trailers = HeaderMap::new();
    if end == LINE_END.len() {
        return Ok(Some(trailers));
    }
    let has_bare_line_feed = memchr::memchr_iter(b'\n', &lines).any(|feed| feed == 0 || lines[feed - 1] != b'\r');
    let mut parsed = [httparse::EMPTY_HEADER; MAX_TRAILER_FIELDS];
    match httparse::parse_headers(&lines, &mut parsed) {
        Ok(httparse::Status::Complete((length, parsed))) if length == end && !has_bare_line_feed => {
            fields::read(&lines, parsed, &mut trailers)?;
            Ok(Some(trailers))
        }
        _ => Err(InvalidMessage::Field),
    }
}

const LINE_END: &[u8] = b"\r\n";
const DELETE: u8 = 0x7f;

/// Of a chunk's size: what 64 bits hold.
const MAX_DIGITS: usize = 16;

/// The line that a chunk begins with, up to its end.
const MAX_SIZE_LINE: usize = 4 * 1024;

/// What may stand behind the sizes of all chunks of one body, blanks aside: so much, and a byte more for so many of data.
/// Object stores sign each chunk; whoever says more than that wants to be read in vain.
const MAX_EXTENSIONS: u64 = 16 * 1024;
const DATA_PER_EXTENSION: u64 = 10;

/// The lines behind the last chunk, and how many.
const MAX_TRAILERS: usize = 16 * 1024;
const MAX_TRAILER_FIELDS: usize = 64;

/// Copying less than this costs less than sharing it.
const WORTH_COPYING: usize = 2048;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
