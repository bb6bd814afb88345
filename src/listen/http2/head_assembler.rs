//! Assembles the heads of requests from their frames, and gives h2 the same short stub for each. A malformed head then
//! fails its stream, and not its connection.

use std::mem;

use h2::Reason;
use http::HeaderMap;

use super::client_streams::ClientStreams;
use super::client_streams::HeadRole;
use super::frame::CONTINUATION;
use super::frame::END_HEADERS;
use super::frame::END_STREAM;
use super::frame::FrameHeader;
use super::frame::HEADERS;
use super::frame::PADDED;
use super::frame::PRIORITY;
use super::head::ABUSE;
use super::head::HeadFields;
use super::head::ParsedHead;
use super::hpack::HpackDecoder;
use super::pending_heads::PendingHeads;

/// Assembles the heads of one connection.
#[derive(Debug)]
pub(super) struct HeadAssembler {
    decoder: HpackDecoder,
    /// In bytes: the most that a decoded head may have.
    max_size: usize,
    partial: Option<PartialHead>,
    pub(super) streams: ClientStreams,
    pending_heads: PendingHeads,
}

/// A head that goes on in the next frame.
#[derive(Debug)]
struct PartialHead {
    stream: u32,
    ends: bool,
    fields: HeadFields,
    /// The beginning of a field whose end is in the next frame.
    rest: Vec<u8>,
    continuations: usize,
}

/// The frame that h2 gets in place of a head.
#[derive(Debug)]
pub(super) struct StubFrame {
    pub(super) frame: Vec<u8>,
    /// The head was not malformed.
    pub(super) is_valid: bool,
}

impl HeadAssembler {
    /// Puts the heads into `pending_heads`.
    pub(super) fn new(max_size: usize, pending_heads: PendingHeads) -> Self {
        let (decoder, streams) = (HpackDecoder::new(max_size), ClientStreams::default());
        Self { decoder, max_size, partial: None, streams, pending_heads }
    }

    /// Whether a head goes on in the next frame.
    pub(super) fn has_partial(&self) -> bool {
        self.partial.is_some()
    }

    /// Whether this frame continues the partial head.
    pub(super) fn is_continued_by(&self, header: FrameHeader) -> bool {
        header.kind == CONTINUATION && self.partial.as_ref().is_some_and(|head| head.stream == header.stream)
    }

    /// Takes the payload of HEADERS or CONTINUATION. `None`: the head goes on in the next frame.
    pub(super) fn read(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Option<StubFrame>, Reason> {
        let (mut head, block) = match self.partial.take() {
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
        head.fields.add_unread(self.decoder.take_skipped());
        if head.fields.is_abuse() {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        if is_last {
            self.decoder.end().map_err(|_| Reason::COMPRESSION_ERROR)?;
            return if block.is_empty() { self.end(head).map(Some) } else { Err(Reason::COMPRESSION_ERROR) };
        }
        if head.continuations > self.max_continuations() {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        head.rest = block.to_vec();
        self.partial = Some(head);
        Ok(None)
    }

    fn begin(&self, header: FrameHeader) -> PartialHead {
        let (stream, ends) = (header.stream, header.flags & END_STREAM != 0);
        PartialHead { stream, ends, fields: HeadFields::new(self.max_size), rest: Vec::new(), continuations: 0 }
    }

    /// As many as the longest head that is still answered needs in full frames, and a few more.
    fn max_continuations(&self) -> usize {
        (self.max_size.saturating_mul(ABUSE) / DEFAULT_MAX_FRAME * 5 / 4).max(5)
    }

    fn end(&mut self, head: PartialHead) -> Result<StubFrame, Reason> {
        let PartialHead { stream, ends, fields, .. } = head;
        if self.streams.head(stream, ends)? == HeadRole::Trailers {
            return Ok(trailers(stream, ends, fields.into_trailers().as_ref()));
        }
        let head = fields.into_head(ends);
        let mut block = REQUEST.to_vec();
        let is_valid = match &head {
            ParsedHead::Refused(_) => false,
            ParsedHead::Request(head) => {
                // h2 checks that the body has this length.
                if let Some(length) = head.length.filter(|_| !ends) {
                    let mut digits = itoa::Buffer::new();
                    literal(b"content-length", digits.format(length).as_bytes(), &mut block);
                }
                true
            }
        };
        self.pending_heads.push(stream, head);
        Ok(StubFrame { frame: frame(stream, ends, &block), is_valid })
    }
}

/// Passes trailers to h2. Invalid ones are replaced by a field for which h2 resets the stream.
fn trailers(stream: u32, ends: bool, fields: Option<&HeaderMap>) -> StubFrame {
    let mut block = Vec::new();
    for (name, value) in fields.into_iter().flatten() {
        literal(name.as_str().as_bytes(), value.as_bytes(), &mut block);
    }
    let is_valid = fields.is_some() && block.len() <= DEFAULT_MAX_FRAME;
    if !is_valid {
        block.clear();
        literal(b"te", b"", &mut block);
    }
    StubFrame { frame: frame(stream, ends, &block), is_valid }
}

/// The fields of a payload, without padding and priority. `None`: there is more padding than payload.
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

/// Encodes a field that no table keeps.
fn literal(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    block.push(0);
    for text in [name, value] {
        length(text.len(), block);
        block.extend_from_slice(text);
    }
}

/// Encodes an integer with a prefix of seven bits.
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

/// `GET http:/`, all that h2 learns of a request.
const REQUEST: &[u8] = &[0x82, 0x86, 0x84];

const PRIORITY_LENGTH: usize = 5;

/// In bytes: the payload that each side accepts by default.
const DEFAULT_MAX_FRAME: usize = 16 * 1024;
