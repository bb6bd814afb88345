//! HTTP/2 frames as bytes, with uncompressed heads, so that a test can send what no library would.

use std::io::{Read, Write};
use std::net::TcpStream;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// One field of a head.
pub(crate) type Field<'f> = (&'f [u8], &'f [u8]);

/// A frame of any kind.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A whole head.
pub(crate) fn head(stream: u32, ends: bool, fields: &[Field<'_>]) -> Vec<u8> {
    let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, &block(fields))
}

pub(crate) fn data(stream: u32, ends: bool, content: &[u8]) -> Vec<u8> {
    frame(DATA, if ends { END_STREAM } else { 0 }, stream, content)
}

/// Each field is a literal without indexing.
pub(crate) fn block(fields: &[Field<'_>]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            write_length(&mut block, text.len());
            block.extend_from_slice(text);
        }
    }
    block
}

/// An integer with a prefix of seven bits.
fn write_length(block: &mut Vec<u8>, mut length: usize) {
    if length < 127 {
        block.push(u8::try_from(length).expect("below 127"));
        return;
    }
    block.push(127);
    length -= 127;
    while length >= 128 {
        block.push(u8::try_from(length % 128).expect("below 128") | 128);
        length /= 128;
    }
    block.push(u8::try_from(length).expect("below 128"));
}

/// What came of one stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    Answered(u16),
    Reset,
    /// The whole connection ended.
    Ended,
}

/// A connection that was opened as it should be.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    /// The fields of the answer that came last, as they were encoded.
    answer: Vec<u8>,
}

impl Client {
    pub(crate) fn open(stream: TcpStream) -> Self {
        let mut client = Self { stream, answer: Vec::new() };
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.send(&frame(SETTINGS, 0, 0, b""));
        client
    }

    /// Sends bytes. That the other side has closed by now shows when reading.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Waits for what becomes of a stream.
    pub(crate) fn fate(&mut self, stream: u32) -> Fate {
        loop {
            let Some((kind, on, payload)) = self.frame() else { return Fate::Ended };
            match kind {
                GOAWAY => return Fate::Ended,
                RST_STREAM if on == stream => return Fate::Reset,
                HEADERS if on == stream => {
                    self.answer = payload;
                    return Fate::Answered(status(&self.answer));
                }
                _ => {}
            }
        }
    }

    /// The `X-Request-ID` of the first answer on this connection: later ones name the field by its number in a table.
    pub(crate) fn request_id(&self) -> Option<String> {
        let name = b"\x0cx-request-id";
        let at = memchr::memmem::find(&self.answer, name)? + name.len();
        let (length, rest) = self.answer[at..].split_first()?;
        String::from_utf8(rest.get(..usize::from(*length))?.to_vec()).ok()
    }

    fn frame(&mut self) -> Option<(u8, u32, Vec<u8>)> {
        let mut header = [0; 9];
        self.stream.read_exact(&mut header).ok()?;
        let [high, middle, low, kind, _, stream @ ..] = header;
        let mut payload = vec![0; usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)];
        self.stream.read_exact(&mut payload).ok()?;
        Some((kind, u32::from_be_bytes(stream), payload))
    }
}

/// The status of an answer: the first field of its head, from the table that every peer has, or spelled out.
fn status(block: &[u8]) -> u16 {
    match block {
        [indexed @ 0x88..=0x8e, ..] => [200, 204, 206, 304, 400, 404, 500][usize::from(indexed - 0x88)],
        [0x08, 3, hundreds, tens, ones, ..] => {
            let digits = [*hundreds, *tens, *ones];
            String::from_utf8_lossy(&digits).parse().unwrap_or_else(|_| panic!("no status: {digits:x?}"))
        }
        _ => panic!("a head that begins with {block:x?}"),
    }
}

#[test]
fn statuses_are_read_in_every_spelling() {
    assert_eq!(status(&[0x88]), 200);
    assert_eq!(status(&[0x8c, 0]), 400);
    assert_eq!(status(b"\x08\x03431\x00"), 431);
}
