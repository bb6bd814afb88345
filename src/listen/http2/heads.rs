//! The heads of a client's requests, cut out of what h2 reads. To h2 each stream begins with the same few bytes; what
//! the client said of it is judged here. One malformed head is then the fault of its stream, and not of its connection.

use std::mem;

use h2::Reason;
use http::HeaderMap;

use super::frames::CONTINUATION;
use super::frames::END_HEADERS;
use super::frames::END_STREAM;
use super::frames::FrameHeader;
use super::frames::HEADERS;
use super::frames::PADDED;
use super::frames::PRIORITY;
use super::head::Fields;
use super::head::Head;
use super::hpack::Decoder;
use super::waiting::Waiting;

/// Puts heads together.
#[derive(Debug)]
pub(super) struct Heads {
    decoder: Decoder,
    /// What one head may be, unpacked.
    most: usize,
    under_way: Option<UnderWay>,
    /// The stream that began last.
    newest: u32,
    waiting: Waiting,
}

/// A head that is not whole.
#[derive(Debug)]
struct UnderWay {
    stream: u32,
    ends: bool,
    fields: Fields,
    /// The beginning of a field.
    rest: Vec<u8>,
    continuations: usize,
}

/// What h2 gets for a head, and whether the head was worth reading.
#[derive(Debug)]
pub(super) struct Stub {
    pub(super) frame: Vec<u8>,
    pub(super) is_sound: bool,
}

impl Heads {
    /// Requests are left with `waiting`.
    pub(super) fn new(most: usize, waiting: Waiting) -> Self {
        Self { decoder: Decoder::new(), most, under_way: None, newest: 0, waiting }
    }

    /// Whether a head was begun and goes on in the next frame.
    pub(super) fn are_open(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether this is the next frame of the head that was begun.
    pub(super) fn go_on_in(&self, header: FrameHeader) -> bool {
        header.kind == CONTINUATION && self.under_way.as_ref().is_some_and(|head| head.stream == header.stream)
    }

    /// Takes the payload of HEADERS or CONTINUATION. `None`: its head goes on.
    pub(super) fn read(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Option<Stub>, Reason> {
        let (mut head, block) = match self.under_way.take() {
            None => (self.begin(header), fragment(header, payload).ok_or(Reason::PROTOCOL_ERROR)?),
            Some(mut head) => {
                head.continuations += 1;
                (head, payload)
            }
        };
        let is_last = header.flags & END_HEADERS != 0;
        let joined;
        let mut block = if head.rest.is_empty() {
            block
        } else {
            joined = [&mem::take(&mut head.rest), block].concat();
            &joined[..]
        };
        let fields = &mut head.fields;
        self.decoder.decode(&mut block, |field| fields.add(field)).map_err(|_| Reason::COMPRESSION_ERROR)?;
        if head.fields.is_abuse() || block.len() > self.most {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        if is_last {
            self.decoder.end();
            return if block.is_empty() { Ok(Some(self.end(head))) } else { Err(Reason::COMPRESSION_ERROR) };
        }
        if head.continuations > self.most_continuations() {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        head.rest = block.to_vec();
        self.under_way = Some(head);
        Ok(None)
    }

    fn begin(&self, header: FrameHeader) -> UnderWay {
        let (stream, ends) = (header.stream, header.flags & END_STREAM != 0);
        UnderWay { stream, ends, fields: Fields::new(self.most), rest: Vec::new(), continuations: 0 }
    }

    /// As many as a head needs that fills its frames, and a few more.
    fn most_continuations(&self) -> usize {
        (self.most / LEAST_FRAME * 5 / 4).max(5)
    }

    fn end(&mut self, head: UnderWay) -> Stub {
        let UnderWay { stream, ends, fields, .. } = head;
        // The others are the server's: h2 knows what to say to that.
        if stream % 2 == 0 || stream <= self.newest {
            return trailers(stream, ends, fields.into_trailers().as_ref());
        }
        self.newest = stream;
        let head = fields.into_head(ends);
        let mut block = REQUEST.to_vec();
        let is_sound = match &head {
            Head::Refused(_) => false,
            Head::Request(whole) => {
                // h2 holds the body to it.
                if let Some(length) = whole.length.filter(|_| !ends) {
                    let mut digits = itoa::Buffer::new();
                    literal(b"content-length", digits.format(length).as_bytes(), &mut block);
                }
                true
            }
        };
        self.waiting.push(stream, head);
        Stub { frame: frame(stream, ends, &block), is_sound }
    }
}

/// What stands behind a body is h2's to hand on. What may not stand there is replaced by what h2 resets a stream for.
fn trailers(stream: u32, ends: bool, fields: Option<&HeaderMap>) -> Stub {
    let mut block = Vec::new();
    for (name, value) in fields.into_iter().flatten() {
        literal(name.as_str().as_bytes(), value.as_bytes(), &mut block);
    }
    let is_sound = fields.is_some() && block.len() <= LEAST_FRAME;
    if !is_sound {
        block.clear();
        literal(b"te", b"", &mut block);
    }
    Stub { frame: frame(stream, ends, &block), is_sound }
}

/// The part of a payload that is fields. `None`: there is more padding than payload.
fn fragment(header: FrameHeader, payload: &[u8]) -> Option<&[u8]> {
    let (padding, rest) = match payload.split_first() {
        _ if header.flags & PADDED == 0 => (0, payload),
        Some((padding, rest)) => (usize::from(*padding), rest),
        None => return None,
    };
    let before = if header.flags & PRIORITY == 0 { 0 } else { PRIORITY_LENGTH };
    rest.get(before..rest.len().checked_sub(padding)?)
}

fn frame(stream: u32, ends: bool, block: &[u8]) -> Vec<u8> {
    let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
    let header = FrameHeader { length: block.len(), kind: HEADERS, flags, stream };
    [&header.to_bytes(), block].concat()
}

/// A field that no table is to keep.
fn literal(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    block.push(0);
    for text in [name, value] {
        length(text.len(), block);
        block.extend_from_slice(text);
    }
}

/// A number behind one bit.
fn length(mut length: usize, block: &mut Vec<u8>) {
    let low = |number: usize| u8::try_from(number & 0x7f).unwrap_or_default();
    if length < 0x7f {
        return block.push(low(length));
    }
    block.push(0x7f);
    length -= 0x7f;
    while length > 0x7f {
        block.push(low(length) | 0x80);
        length >>= 7;
    }
    block.push(low(length));
}

/// `GET http:/`, which is all that h2 learns of a request.
const REQUEST: &[u8] = &[0x82, 0x86, 0x84];

const PRIORITY_LENGTH: usize = 5;

/// What each side takes in one frame.
const LEAST_FRAME: usize = 16 * 1024;
