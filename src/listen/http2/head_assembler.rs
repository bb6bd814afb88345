//! Assembles the heads of requests from their frames, and gives h2 the same short stub for each. A malformed head then
//! fails its stream, and not its connection.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use h2::Reason;
use parking_lot::Mutex;

use super::head::{ABUSE, HeadFields, ParsedHead};
use crate::listen::http2::frame_filter::{ClientStreams, HeadRole};
use crate::wire::head::Fields;
use crate::wire::http2::hpack::{HpackDecoder, encoder};
use crate::wire::http2::{CONTINUATION, END_HEADERS, END_STREAM, FrameHeader, HEADER_LENGTH, HEADERS};

/// `GET http:/`, all that h2 learns of a request.
const REQUEST: &[u8] = &[0x82, 0x86, 0x84];

/// In bytes: the payload that each side accepts by default.
const DEFAULT_MAX_FRAME: usize = 16 * 1024;

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
            None => (self.begin(header), header.fields(payload).ok_or(Reason::PROTOCOL_ERROR)?),
            Some(mut head) => {
                head.continuations += 1;
                (head, payload)
            }
        };
        let is_last = header.flags & END_HEADERS != 0;
        let PartialHead { fields, rest, .. } = &mut head;
        let decoded = self.decoder.decode_part(rest, block, is_last, |field| fields.add(field));
        head.fields.add_unread(self.decoder.take_skipped());
        if head.fields.is_abuse() {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        decoded.map_err(|_| Reason::COMPRESSION_ERROR)?;
        if is_last {
            return self.end(head).map(Some);
        }
        if head.continuations > self.max_continuations() {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        self.partial = Some(head);
        Ok(None)
    }

    fn begin(&self, header: FrameHeader) -> PartialHead {
        let (stream, ends) = (header.stream, header.flags & END_STREAM != 0);
        PartialHead { stream, ends, fields: HeadFields::new(self.max_size), rest: Vec::new(), continuations: 0 }
    }

    /// The number of full frames that the longest head that is still answered needs, and a few more.
    fn max_continuations(&self) -> usize {
        (self.max_size.saturating_mul(ABUSE) / DEFAULT_MAX_FRAME * 5 / 4).max(5)
    }

    fn end(&mut self, head: PartialHead) -> Result<StubFrame, Reason> {
        let PartialHead { stream, ends, fields, .. } = head;
        if self.streams.head(stream, ends)? == HeadRole::Trailers {
            return Ok(trailers(stream, ends, fields.into_trailers().as_ref()));
        }
        let head = fields.into_head(ends);
        let mut stub = StubFrame::new(REQUEST);
        match &head {
            ParsedHead::Refused(_) => stub.is_valid = false,
            ParsedHead::Request(head) => {
                // h2 checks that the body has this length.
                if let Some(length) = head.length.filter(|_| !ends) {
                    let mut digits = itoa::Buffer::new();
                    encoder::literal(b"content-length", digits.format(length).as_bytes(), &mut stub.frame);
                }
            }
        }
        self.pending_heads.push(stream, head);
        Ok(stub.complete(stream, ends))
    }
}

/// Passes trailers to h2. Invalid ones are replaced by a field for which h2 resets the stream.
fn trailers(stream: u32, ends: bool, fields: Option<&Fields>) -> StubFrame {
    let mut stub = StubFrame::new(&[]);
    for field in fields.into_iter().flat_map(Fields::iter) {
        encoder::literal(field.name.as_str().as_bytes(), field.value, &mut stub.frame);
    }
    stub.is_valid = fields.is_some() && stub.frame.len() <= HEADER_LENGTH + DEFAULT_MAX_FRAME;
    if !stub.is_valid {
        stub.frame.truncate(HEADER_LENGTH);
        encoder::literal(b"te", b"", &mut stub.frame);
    }
    stub.complete(stream, ends)
}

impl StubFrame {
    /// A frame whose header is still to be written.
    fn new(block: &[u8]) -> Self {
        Self { frame: [&[0; HEADER_LENGTH], block].concat(), is_valid: true }
    }

    fn complete(mut self, stream: u32, ends: bool) -> Self {
        let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
        let header = FrameHeader { length: self.frame.len() - HEADER_LENGTH, kind: HEADERS, flags, stream };
        self.frame[..HEADER_LENGTH].copy_from_slice(&header.to_bytes());
        self
    }
}

// Passes heads from the filter that reads frames to the session that opens streams.

/// Heads take memory. Few clients open as many streams at once.
const MAX_PENDING: usize = 32;

/// The heads of streams that h2 has not opened yet. The lock is for the compiler: both sides are in one task.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingHeads(Arc<Mutex<HeadQueue>>);

#[derive(Debug, Default)]
struct HeadQueue {
    /// With their streams, in ascending order.
    heads: VecDeque<(u32, ParsedHead)>,
    /// h2 has read the stubs of the streams up to this one. It has refused those that it has not opened.
    seen: u32,
    /// Why the connection must end, and whether the session has taken it.
    fault: Option<(Reason, bool)>,
}

impl PendingHeads {
    pub(super) fn push(&self, stream: u32, head: ParsedHead) {
        self.0.lock().heads.push_back((stream, head));
    }

    /// The head of a stream that h2 opened. h2 never opens the streams before it any more.
    pub(super) fn take(&self, stream: u32) -> Option<ParsedHead> {
        let mut queue = self.0.lock();
        while let Some((of, head)) = queue.pop_up_to(stream) {
            if of == stream {
                return Some(head);
            }
        }
        None
    }

    /// Whether the session should take some before more frames are read.
    pub(super) fn is_full(&self) -> bool {
        self.0.lock().heads.len() >= MAX_PENDING
    }

    /// h2 has read all stubs so far.
    pub(super) fn mark_seen(&self) {
        let mut queue = self.0.lock();
        queue.seen = queue.heads.back().map_or(0, |(stream, _)| *stream);
    }

    /// h2 has no further stream to open: it has refused the streams that it has seen and not opened.
    pub(super) fn drop_refused(&self) {
        let mut queue = self.0.lock();
        let seen = queue.seen;
        while queue.pop_up_to(seen).is_some() {}
    }

    /// The connection must end.
    pub(super) fn fail(&self, reason: Reason) {
        self.0.lock().fault.get_or_insert((reason, false));
    }

    pub(super) fn has_failed(&self) -> bool {
        self.0.lock().fault.is_some()
    }

    /// Why the connection must end; returned once.
    pub(super) fn take_fault(&self) -> Option<Reason> {
        let mut queue = self.0.lock();
        let (reason, is_taken) = queue.fault.as_mut()?;
        (!mem::replace(is_taken, true)).then_some(*reason)
    }
}

impl HeadQueue {
    fn pop_up_to(&mut self, stream: u32) -> Option<(u32, ParsedHead)> {
        let is_up_to = self.heads.front().is_some_and(|(of, _)| *of <= stream);
        if is_up_to { self.heads.pop_front() } else { None }
    }
}
