//! Checks the heads and trailers in a server's frames for what h2 drops in silence, ahead of h2. It changes nothing.

use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::wire::http2::hpack::{Field, HpackDecoder, Name};
use crate::wire::http2::{CONTINUATION, END_HEADERS, END_STREAM, FrameHeader, HEADER_LENGTH, HEADERS, MAX_PAYLOAD};

/// Follows the frames of one server.
#[derive(Debug)]
pub(super) struct HeadCheck {
    header: [u8; HEADER_LENGTH],
    have: usize,
    /// In bytes: the rest of the current payload.
    left: usize,
    /// The frame whose payload is kept because it is part of a head.
    head_frame: Option<FrameHeader>,
    payload: Vec<u8>,
    /// A head that goes on in the next frame.
    partial: Option<PartialHead>,
    decoder: HpackDecoder,
    streams: ResponseStreams,
}

/// The frames of a head are no HTTP/2. h2 would end the connection for it, too.
#[derive(Debug, thiserror::Error)]
#[error("the head of an answer cannot be read")]
pub(super) struct UnreadableHead;

#[derive(Debug)]
struct PartialHead {
    stream: u32,
    ends: bool,
    /// The beginning of a field whose end is in the next frame.
    rest: Vec<u8>,
    shape: HeadShape,
}

/// The facts of the fields of a head or of trailers that the check needs.
#[derive(Debug, Default)]
struct HeadShape {
    status: Option<ResponseKind>,
    has_fields: bool,
    /// It has a pseudo-field that is not `:status`, a second `:status` or a late one, or a name that is none.
    has_foreign: bool,
}

/// What a status says of the answers that may follow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ResponseKind {
    Interim,
    Final,
}

impl ResponseKind {
    fn of(status: &[u8]) -> Self {
        if status.starts_with(b"1") { Self::Interim } else { Self::Final }
    }
}

impl HeadCheck {
    /// Heads may have `max_list_size` bytes, as `SETTINGS_MAX_HEADER_LIST_SIZE` counts them. h2 refuses longer ones.
    pub(super) fn new(max_list_size: u32, streams: ResponseStreams) -> Self {
        Self {
            header: [0; HEADER_LENGTH],
            have: 0,
            left: 0,
            head_frame: None,
            payload: Vec::new(),
            partial: None,
            decoder: HpackDecoder::new(max_list_size as usize),
            streams,
        }
    }

    /// Reads what the server sent.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), UnreadableHead> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let (part, rest) = bytes.split_at(self.left.min(bytes.len()));
                (self.left, bytes) = (self.left - part.len(), rest);
                self.read_payload(part)?;
                continue;
            }
            let (part, rest) = bytes.split_at((HEADER_LENGTH - self.have).min(bytes.len()));
            self.header[self.have..self.have + part.len()].copy_from_slice(part);
            (self.have, bytes) = (self.have + part.len(), rest);
            if self.have == HEADER_LENGTH {
                self.begin_frame()?;
            }
        }
        Ok(())
    }

    fn begin_frame(&mut self) -> Result<(), UnreadableHead> {
        let frame = FrameHeader::parse(self.header);
        (self.have, self.left) = (0, frame.length);
        let is_head = match &self.partial {
            Some(head) if frame.kind != CONTINUATION || frame.stream != head.stream => return Err(UnreadableHead),
            Some(_) => true,
            None => frame.kind == HEADERS,
        };
        if is_head && frame.length > MAX_PAYLOAD {
            return Err(UnreadableHead);
        }
        self.head_frame = is_head.then_some(frame);
        if self.left == 0 { self.read_payload(&[]) } else { Ok(()) }
    }

    fn read_payload(&mut self, part: &[u8]) -> Result<(), UnreadableHead> {
        let Some(frame) = self.head_frame else { return Ok(()) };
        if self.left == 0 && self.payload.is_empty() {
            return self.read_head(frame, part);
        }
        self.payload.extend_from_slice(part);
        if self.left > 0 {
            return Ok(());
        }
        let payload = mem::take(&mut self.payload);
        self.read_head(frame, &payload)
    }

    /// Reads a whole frame of a head.
    fn read_head(&mut self, frame: FrameHeader, payload: &[u8]) -> Result<(), UnreadableHead> {
        let (mut head, block) = match self.partial.take() {
            Some(head) => (head, payload),
            None => (PartialHead::new(frame), frame.fields(payload).ok_or(UnreadableHead)?),
        };
        let is_last = frame.flags & END_HEADERS != 0;
        let PartialHead { rest, shape, .. } = &mut head;
        let decoded = self.decoder.decode_part(rest, block, is_last, |field| shape.add(field));
        decoded.map_err(|_| UnreadableHead)?;
        // h2 refuses a head with fields that are too long to be read.
        self.decoder.take_skipped();
        if !is_last {
            self.partial = Some(head);
            return Ok(());
        }
        self.streams.update(head.stream, |state| head.shape.follow(state, head.ends));
        Ok(())
    }
}

impl PartialHead {
    fn new(frame: FrameHeader) -> Self {
        let ends = frame.flags & END_STREAM != 0;
        Self { stream: frame.stream, ends, rest: Vec::new(), shape: HeadShape::default() }
    }
}

impl HeadShape {
    fn add(&mut self, field: Field<'_>) {
        match field.name {
            Name::Field(_) => self.has_fields = true,
            Name::Status if self.status.is_none() && !self.has_fields => {
                self.has_foreign |= field.value.is_none();
                self.status = field.value.map(ResponseKind::of);
            }
            _ => self.has_foreign = true,
        }
    }

    /// The state of a stream after a head or trailers. `ends`: so does the stream.
    fn follow(&self, state: ResponseState, ends: bool) -> ResponseState {
        let malformed = match (state, self.status) {
            (ResponseState::HasHead, status) if self.has_foreign || status.is_some() => MalformedResponse::Trailers,
            (ResponseState::AwaitsHead, _) if self.has_foreign => MalformedResponse::ForeignField,
            (ResponseState::AwaitsHead, None) => MalformedResponse::NoStatus,
            (ResponseState::AwaitsHead, Some(ResponseKind::Final)) => return ResponseState::HasHead,
            (ResponseState::AwaitsHead, Some(ResponseKind::Interim)) if ends => MalformedResponse::InterimEnds,
            _ => return state,
        };
        ResponseState::Malformed(malformed)
    }
}

// The state of the heads of a connection's answers: shared by the reader of frames and the requests that wait.

/// The streams whose answers are read. Reader and requests are on one core: the lock is only for the compiler.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseStreams(Arc<Mutex<Vec<(u32, ResponseState)>>>);

/// How far the answer on a stream has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ResponseState {
    AwaitsHead,
    /// The next fields are trailers.
    HasHead,
    Malformed(MalformedResponse),
}

/// Why an answer is malformed, though h2 takes it (RFC 9113, sections 8.1 and 8.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum MalformedResponse {
    #[error("its head has no `:status` of its own")]
    NoStatus,
    #[error("its head has a pseudo-field other than one `:status`, or a field name that is none")]
    ForeignField,
    #[error("an informational answer ends the stream")]
    InterimEnds,
    #[error("its trailers have a pseudo-field, or a field name that is none")]
    Trailers,
}

/// Follows the answer on one stream until it is dropped.
#[derive(Debug)]
pub(super) struct ResponseStream {
    streams: ResponseStreams,
    id: u32,
}

impl ResponseStreams {
    /// A request was sent on this stream. Identifiers ascend.
    pub(super) fn begin(&self, id: u32) -> ResponseStream {
        self.0.lock().push((id, ResponseState::AwaitsHead));
        ResponseStream { streams: self.clone(), id }
    }

    /// Replaces the state of a stream, if its answer is read.
    pub(super) fn update(&self, id: u32, next: impl FnOnce(ResponseState) -> ResponseState) {
        let mut streams = self.0.lock();
        if let Ok(found) = streams.binary_search_by_key(&id, |(id, _)| *id) {
            let (_, state) = &mut streams[found];
            *state = next(*state);
        }
    }
}

impl ResponseStream {
    /// Fails once the answer is known to be malformed.
    pub(super) fn check(&self) -> Result<(), MalformedResponse> {
        let streams = self.streams.0.lock();
        match streams.binary_search_by_key(&self.id, |(id, _)| *id).map(|found| streams[found].1) {
            Ok(ResponseState::Malformed(why)) => Err(why),
            _ => Ok(()),
        }
    }
}

impl Drop for ResponseStream {
    fn drop(&mut self) {
        self.streams.0.lock().retain(|(id, _)| *id != self.id);
    }
}

#[cfg(test)]
mod tests;
