//! Decodes the body of a message.

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;
use memchr::{memchr, memmem};

use super::{BodyLength, IncompleteBody, InvalidMessage};
use crate::wire::head::is_token_byte;
use crate::wire::http1::grammar;

/// Decodes one body, read by read.
#[derive(Debug)]
pub struct BodyDecoder {
    state: State,
    sender: Sender,
    /// In bytes: the data of all chunks so far, and their extensions.
    data: u64,
    extensions: u64,
}

/// The sender of a body, which decides how strictly its chunks are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sender {
    /// Exactly the grammar of RFC 9112, section 7.1, without blanks after a size.
    Client,
    /// Some servers pad sizes with blanks. The gateway writes all chunks anew, so its clients never see the blanks.
    Server,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// With the bytes that are left.
    Known(u64),
    UntilClose,
    ChunkSize,
    /// With the bytes of the chunk that are left.
    Chunk(u64),
    ChunkEnd,
    Trailers,
    Complete,
}

impl BodyDecoder {
    pub fn new(length: BodyLength, sender: Sender) -> Self {
        let state = match length {
            BodyLength::Known(0) => State::Complete,
            BodyLength::Known(length) => State::Known(length),
            BodyLength::Chunked => State::ChunkSize,
            BodyLength::UntilClose => State::UntilClose,
        };
        Self { state, sender, data: 0, extensions: 0 }
    }

    /// Takes the next part of the body off the front of `read`. `None`: the body is complete, or more must be read behind the
    /// bytes that are left in `read`.
    pub fn decode(&mut self, read: &mut BytesMut) -> Result<Option<Frame<Bytes>>, InvalidMessage> {
        loop {
            match self.state {
                State::Complete => return Ok(None),
                _ if read.is_empty() => return Ok(None),
                State::UntilClose => return Ok(Some(Frame::data(take(read, u64::MAX)))),
                State::Known(left) => {
                    let data = take(read, left);
                    let left = left - data.len() as u64;
                    self.state = if left == 0 { State::Complete } else { State::Known(left) };
                    return Ok(Some(Frame::data(data)));
                }
                State::Chunk(left) => {
                    let data = take(read, left);
                    let left = left - data.len() as u64;
                    self.data = self.data.saturating_add(data.len() as u64);
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                    return Ok(Some(Frame::data(data)));
                }
                State::ChunkEnd if read.starts_with(LINE_END) => {
                    read.advance(LINE_END.len());
                    self.state = State::ChunkSize;
                }
                State::ChunkEnd if LINE_END.starts_with(read) => return Ok(None),
                State::ChunkEnd => return Err(InvalidMessage::ChunkEnd),
                State::ChunkSize => match self.chunk_size(read)? {
                    None => return Ok(None),
                    Some(0) => self.state = State::Trailers,
                    Some(size) => self.state = State::Chunk(size),
                },
                State::Trailers => {
                    let Some(trailers) = take_trailers(read)? else { return Ok(None) };
                    self.state = State::Complete;
                    return Ok(Some(trailers).filter(|it| !it.is_empty()).map(Frame::trailers));
                }
            }
        }
    }

    /// Copies the rest of a body of known length to `out`, if all of it stands in `read`.
    pub fn decode_whole(&mut self, read: &mut BytesMut, out: &mut Vec<u8>) -> bool {
        let State::Known(left) = self.state else { return false };
        let Some(data) = usize::try_from(left).ok().and_then(|left| read.get(..left)) else { return false };
        out.extend_from_slice(data);
        read.advance(data.len());
        self.state = State::Complete;
        true
    }

    /// Whether the whole body was decoded.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// How many bytes are left, where that is known.
    pub fn remaining(&self) -> Option<u64> {
        match self.state {
            State::Known(left) => Some(left),
            State::Complete => Some(0),
            _ => None,
        }
    }

    /// The connection has ended, and all bytes are decoded.
    pub fn end(&mut self) -> Result<(), IncompleteBody> {
        if self.state == State::UntilClose {
            self.state = State::Complete;
        }
        if self.is_complete() { Ok(()) } else { Err(IncompleteBody) }
    }

    /// Takes the line with the size of a chunk. `None`: the line is not complete.
    fn chunk_size(&mut self, read: &mut BytesMut) -> Result<Option<u64>, InvalidMessage> {
        let most = MAX_SIZE_LINE + LINE_END.len();
        let Some(feed) = memchr(b'\n', &read[..read.len().min(most)]) else {
            return if read.len() < most { Ok(None) } else { Err(InvalidMessage::Extensions) };
        };
        let line = read[..feed].strip_suffix(b"\r").ok_or(InvalidMessage::ChunkSize)?;
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (digits, extension) = line.split_at(digits);
        let size = str::from_utf8(digits).ok().filter(|digits| digits.len() <= MAX_DIGITS);
        let size = size.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or(InvalidMessage::ChunkSize)?;
        let is_extension = match self.sender {
            Sender::Client => are_extensions(extension),
            Sender::Server => is_padding_or_text(extension),
        };
        if !is_extension {
            return Err(InvalidMessage::ChunkSize);
        }
        // Blanks do not count: the length of a line is bounded.
        self.extensions += extension.iter().filter(|byte| !is_blank(**byte)).count() as u64;
        if self.extensions > MAX_EXTENSIONS + self.data / DATA_PER_EXTENSION {
            return Err(InvalidMessage::Extensions);
        }
        read.advance(feed + 1);
        Ok(Some(size))
    }
}

/// Takes at most `most` bytes. A small part is copied, so that it does not share the read buffer.
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

/// Whether this may follow a chunk size: blanks, which some servers pad it with, and then nothing but a semicolon and text.
fn is_padding_or_text(extension: &[u8]) -> bool {
    let first = extension.iter().find(|byte| !is_blank(**byte));
    first.is_none_or(|first| *first == b';') && extension.iter().all(|byte| is_text(*byte))
}

/// Whether these are extensions: `;name`, `;name=value` and `;name="quoted"`, any number of them. Blanks may stand behind a
/// semicolon.
fn are_extensions(text: &[u8]) -> bool {
    skip_extensions(text).is_some_and(<[u8]>::is_empty)
}

/// The text after the last extension.
fn skip_extensions(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    while let Some((b';', behind)) = rest.split_first() {
        let blanks = behind.iter().take_while(|byte| is_blank(**byte)).count();
        rest = match skip_token(&behind[blanks..])? {
            [b'=', b'"', quoted @ ..] => skip_quoted(quoted)?,
            [b'=', value @ ..] => skip_token(value)?,
            behind => behind,
        };
    }
    Some(rest)
}

/// The text after a token of at least one character.
fn skip_token(text: &[u8]) -> Option<&[u8]> {
    let length = text.iter().take_while(|byte| is_token_byte(**byte)).count();
    (length > 0).then(|| &text[length..])
}

/// The text after the closing quotation mark.
fn skip_quoted(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        text = match text {
            [b'"', behind @ ..] => return Some(behind),
            [b'\\', byte, behind @ ..] | [byte, behind @ ..] if is_text(*byte) => behind,
            _ => return None,
        };
    }
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != DELETE)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Takes the trailers. `None`: they are not complete.
fn take_trailers(read: &mut BytesMut) -> Result<Option<HeaderMap>, InvalidMessage> {
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
    if end == LINE_END.len() {
        return Ok(Some(HeaderMap::new()));
    }
    let has_bare_line_feed = memchr::memchr_iter(b'\n', &lines).any(|feed| feed == 0 || lines[feed - 1] != b'\r');
    let mut parsed = [httparse::EMPTY_HEADER; MAX_TRAILER_FIELDS];
    match httparse::parse_headers(&lines, &mut parsed) {
        Ok(httparse::Status::Complete((length, parsed))) if length == end && !has_bare_line_feed => {
            grammar::read(&lines, parsed).map(Some)
        }
        _ => Err(InvalidMessage::Field),
    }
}

const LINE_END: &[u8] = b"\r\n";

const DELETE: u8 = 0x7f;

/// The digits of a chunk size: 64 bits.
const MAX_DIGITS: usize = 16;

/// In bytes: the line before a chunk, without its line end.
const MAX_SIZE_LINE: usize = 4 * 1024;

/// In bytes: the extensions of all chunks of one body, without blanks. More are allowed in proportion to the data,
/// because object stores sign each chunk. More than that is an attack.
const MAX_EXTENSIONS: u64 = 16 * 1024;

const DATA_PER_EXTENSION: u64 = 10;

/// The trailers: their bytes and their number.
const MAX_TRAILERS: usize = 16 * 1024;

const MAX_TRAILER_FIELDS: usize = 64;

/// In bytes: copying less than this is cheaper than sharing it.
const WORTH_COPYING: usize = 2048;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use bytes::{Buf, Bytes, BytesMut};
    use http::HeaderMap;

    use super::{BodyDecoder, InvalidMessage, Sender};
    use crate::wire::http1::grammar::{BodyEncoder, BodyLength, WriteBuffer};
    use crate::words::corpus;

    /// A body in chunks is the same however it is split into reads, is not longer than its input, and is the same again
    /// after it is rewritten.
    pub fn check(bytes: &[u8]) {
        for sender in [Sender::Client, Sender::Server] {
            check_from(sender, bytes);
        }
    }

    fn check_from(sender: Sender, bytes: &[u8]) {
        let (body, end) = corpus::same_for_every_split(bytes, |reads: &[&[u8]]| decode(sender, reads));
        let taken = body.data.len() + body.behind.len();
        assert!(taken <= bytes.len(), "{taken} of {} bytes", bytes.len());
        if end == Ok(true) {
            let (mut encoder, mut out) = (BodyEncoder::new(BodyLength::Chunked), WriteBuffer::default());
            encoder.part(Bytes::from(body.data.clone()), &mut out);
            encoder.end(body.trailers.as_ref(), &mut out).expect("chunks end anywhere");
            let written = out.copy_to_bytes(out.remaining());
            let (again, _) = decode(Sender::Client, &[&written]);
            assert_eq!((again.data, again.trailers), (body.data, body.trailers));
        }
    }

    /// The decoded body, and the bytes after it.
    #[derive(Debug, Default, PartialEq)]
    struct Decoded {
        data: Vec<u8>,
        trailers: Option<HeaderMap>,
        behind: Vec<u8>,
    }

    /// Whether the body has ended, or why it is invalid.
    type End = Result<bool, InvalidMessage>;

    fn decode(sender: Sender, reads: &[&[u8]]) -> (Decoded, End) {
        let (mut decoder, mut body, mut read) =
            (BodyDecoder::new(BodyLength::Chunked, sender), Decoded::default(), BytesMut::new());
        for bytes in reads {
            read.extend_from_slice(bytes);
            loop {
                match decoder.decode(&mut read) {
                    Ok(Some(frame)) => match frame.into_data() {
                        Ok(data) => body.data.extend_from_slice(&data),
                        Err(frame) => body.trailers = frame.into_trailers().ok(),
                    },
                    Ok(None) => break,
                    Err(malformed) => return (body, Err(malformed)),
                }
            }
        }
        if decoder.is_complete() {
            body.behind = read.to_vec();
        }
        (body, Ok(decoder.is_complete()))
    }

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("chunks", check);
    }
}

#[cfg(test)]
mod tests;
