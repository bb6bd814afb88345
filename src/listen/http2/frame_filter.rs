//! Filters the frames of an HTTP/2 client: heads are cut out, all other frames pass to h2. It knows whether the client
//! stopped within a frame, because h2 would wait for the rest without a timeout.

use std::mem;
use std::ops::Range;

use h2::Reason;

use super::head_assembler::{HeadAssembler, StubFrame};
use crate::listen::http2::frame_tap::FrameBudget;
use crate::listen::http2::frame_writer::WriteBacklog;
use crate::listen::http2::head_assembler::PendingHeads;
use crate::wire::http2::hpack::DEFAULT_TABLE_SIZE;
use crate::wire::http2::{
    ACK, DATA, END_STREAM, FrameHeader, HEADER_LENGTH, HEADERS, MAX_PAYLOAD, PING, PREFACE, PRIORITY_FRAME, RST_STREAM,
    SETTINGS, UNKNOWN, WINDOW_UPDATE,
};

/// The error code for a client that sends more control frames than its budget allows.
const TOO_MANY: Reason = Reason::ENHANCE_YOUR_CALM;

/// The setting of the size of the table for HPACK (RFC 9113, section 6.5.2).
const HEADER_TABLE_SIZE: u16 = 1;

/// The setting of the window of each stream, and its largest value.
const INITIAL_WINDOW_SIZE: u16 = 4;

const MAX_WINDOW: u32 = (1 << 31) - 1;

/// A quarter of the unread data frames of the smallest size that h2 allows.
const MAX_DATA_IN_A_ROW: u32 = 128;

/// Follows the frames of one connection.
#[derive(Debug)]
pub(super) struct FrameFilter {
    header: [u8; HEADER_LENGTH],
    have: usize,
    /// In bytes: the rest of the current payload.
    left: usize,
    current: FrameHeader,
    /// The pieces of the payload of HEADERS, CONTINUATION or SETTINGS.
    payload: Vec<u8>,
    heads: HeadAssembler,
    pending_heads: PendingHeads,
    backlog: WriteBacklog,
    /// Streams that the client has reset, in frames that h2 is given.
    resets: Vec<u32>,
    budget: FrameBudget,
    /// DATA frames since the tasks that read bodies had their turn.
    data_in_a_row: u32,
}

/// The result of filtering bytes that were read.
#[derive(Debug, Default)]
pub(super) struct FilteredBytes {
    /// How many bytes were processed.
    pub(super) used: usize,
    /// How many bytes, at the beginning, are for h2.
    pub(super) kept: usize,
    /// Bytes for h2 after those: they had no room among them.
    pub(super) behind: Vec<u8>,
    /// No more bytes should be processed before h2 has read these.
    stops: bool,
}

impl FrameFilter {
    /// Decoded heads may have `max_head` bytes. They are put into `pending_heads`. Those of streams that were reset are forgotten in
    /// `backlog`.
    pub(super) fn new(max_head: usize, pending_heads: PendingHeads, backlog: WriteBacklog) -> Self {
        Self {
            header: [0; HEADER_LENGTH],
            have: 0,
            // The preface passes like a payload.
            left: PREFACE.len(),
            current: FrameHeader { length: PREFACE.len(), kind: UNKNOWN, flags: 0, stream: 0 },
            payload: Vec::new(),
            heads: HeadAssembler::new(max_head, pending_heads.clone()),
            pending_heads,
            backlog,
            resets: Vec::new(),
            budget: FrameBudget::new(),
            data_in_a_row: 0,
        }
    }

    /// Processes bytes of the client, and leaves in them what h2 is to read. It stops where a stub needs more room than
    /// its head had, where enough heads are pending, and where it [pauses](Self::take_pause).
    pub(super) fn filter(&mut self, bytes: &mut [u8]) -> FilteredBytes {
        let mut filtered = FilteredBytes::default();
        while filtered.used < bytes.len() && !filtered.stops {
            if self.left > 0 {
                let read = self.take_payload(bytes, &mut filtered);
                self.put(read, bytes, &mut filtered);
                continue;
            }
            let fresh = &bytes[filtered.used..];
            let taken = (HEADER_LENGTH - self.have).min(fresh.len());
            self.header[self.have..self.have + taken].copy_from_slice(&fresh[..taken]);
            self.have += taken;
            filtered.used += taken;
            if self.have == HEADER_LENGTH {
                self.begin(bytes, &mut filtered);
            }
        }
        filtered
    }

    /// h2 asks for more, so that it has handled every frame it was given: it writes no head of the streams that were reset. Only now
    /// their heads are forgotten. Until h2 knows of a reset, it takes stubs.
    pub(super) fn all_is_handled(&mut self) {
        for stream in mem::take(&mut self.resets) {
            self.backlog.forget(stream);
        }
    }

    /// Whether the tasks that read bodies should run before more frames are processed; asked once, they do. h2 ends a
    /// connection with too many small frames that were not read.
    pub(super) fn take_pause(&mut self) -> bool {
        let pauses = self.data_in_a_row >= MAX_DATA_IN_A_ROW;
        if pauses {
            self.data_in_a_row = 0;
        }
        pauses
    }

    /// Notes that `streams` streams have got the beginning of their answers.
    pub(super) fn answered(&mut self, streams: u32) {
        self.budget.answered(streams);
    }

    /// Notes a write to the client.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.budget.wrote(bytes);
    }

    /// The header of a frame is complete.
    fn begin(&mut self, bytes: &mut [u8], filtered: &mut FilteredBytes) {
        self.current = FrameHeader::parse(self.header);
        self.have = 0;
        self.left = self.current.length;
        if !self.budget.note(self.current.kind) {
            return self.fail(TOO_MANY, bytes, filtered);
        }
        if self.current.kind == DATA {
            self.data_in_a_row += 1;
            filtered.stops |= self.data_in_a_row >= MAX_DATA_IN_A_ROW;
        }
        if let Err(reason) = self.check() {
            return self.fail(reason, bytes, filtered);
        }
        if self.heads.has_partial() && !self.heads.is_continued_by(self.current) {
            self.fail(Reason::PROTOCOL_ERROR, bytes, filtered);
        } else if !self.is_cut_out() {
            keep(&self.header, bytes, filtered);
        } else if self.left == 0 {
            let read = self.heads.read(self.current, &[]);
            self.put(read, bytes, filtered);
        }
    }

    /// Checks what h2 does not tell apart: the lengths of frames, and streams that their client has ended.
    fn check(&mut self) -> Result<(), Reason> {
        let FrameHeader { length, kind, flags, stream } = self.current;
        let ends = flags & END_STREAM != 0;
        let is_length = match kind {
            PING => length == 8,
            RST_STREAM | WINDOW_UPDATE => length == 4,
            PRIORITY_FRAME => length == 5,
            SETTINGS if flags & ACK != 0 => length == 0,
            SETTINGS => length.is_multiple_of(6),
            _ => true,
        };
        if !is_length {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        match kind {
            DATA => self.heads.streams.data(stream, ends),
            RST_STREAM => {
                self.heads.streams.end(stream);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Follows a part of the payload of SETTINGS: a smaller table must not be written to any more, and h2 has another error code for
    /// a window that is too large.
    fn note_settings(&mut self, part: &[u8]) -> Result<(), Reason> {
        self.payload.extend_from_slice(part);
        if self.left > 0 {
            return Ok(());
        }
        for setting in mem::take(&mut self.payload).as_chunks().0 {
            let [kind @ .., first, second, third, fourth]: [u8; 6] = *setting;
            let value = u32::from_be_bytes([first, second, third, fourth]);
            match u16::from_be_bytes(kind) {
                HEADER_TABLE_SIZE if (value as usize) < DEFAULT_TABLE_SIZE => self.backlog.keep_small_table(),
                INITIAL_WINDOW_SIZE if value > MAX_WINDOW => return Err(Reason::FLOW_CONTROL_ERROR),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether this frame is part of a head. A frame that is too long, or a CONTINUATION without a head, is left to h2,
    /// which ends the connection.
    fn is_cut_out(&self) -> bool {
        let is_part = self.current.kind == HEADERS || self.heads.has_partial();
        is_part && self.current.length <= MAX_PAYLOAD
    }

    /// Passes bytes of a payload to h2, or adds them to a head, which may be complete then.
    fn take_payload(&mut self, bytes: &mut [u8], filtered: &mut FilteredBytes) -> Result<Option<StubFrame>, Reason> {
        let begin = filtered.used;
        let taken = self.left.min(bytes.len() - begin);
        self.left -= taken;
        filtered.used += taken;
        if !self.is_cut_out() {
            if filtered.kept != begin {
                bytes.copy_within(begin..begin + taken, filtered.kept);
            }
            let part = filtered.kept..filtered.kept + taken;
            if self.current.kind == SETTINGS && self.current.length <= MAX_PAYLOAD {
                self.note_settings(&bytes[part.clone()])?;
            }
            filtered.kept = part.end;
            if self.current.kind == RST_STREAM && self.left == 0 {
                self.resets.push(self.current.stream);
            }
            return Ok(None);
        }
        let part = &bytes[begin..begin + taken];
        if self.left == 0 && self.payload.is_empty() {
            return self.heads.read(self.current, part);
        }
        self.payload.extend_from_slice(part);
        if self.left > 0 {
            return Ok(None);
        }
        let payload = mem::take(&mut self.payload);
        self.heads.read(self.current, &payload)
    }

    /// Handles the outcome of a frame of a head.
    fn put(&mut self, read: Result<Option<StubFrame>, Reason>, bytes: &mut [u8], filtered: &mut FilteredBytes) {
        match read {
            Ok(None) => {}
            Ok(Some(stub)) => {
                keep(&stub.frame, bytes, filtered);
                filtered.stops |= self.pending_heads.is_full();
                if !stub.is_valid && !self.budget.note_malformed() {
                    self.fail(TOO_MANY, bytes, filtered);
                }
            }
            Err(reason) => self.fail(reason, bytes, filtered),
        }
    }

    /// Ends the connection. The rest of the bytes is dropped.
    fn fail(&self, reason: Reason, bytes: &[u8], filtered: &mut FilteredBytes) {
        self.pending_heads.fail(reason);
        (filtered.used, filtered.stops) = (bytes.len(), true);
    }

    /// Whether the client stopped within a frame or a head. DATA does not count: bodies have a timeout of their own.
    pub(super) fn is_mid_frame(&self) -> bool {
        self.have > 0 || self.heads.has_partial() || (self.left > 0 && self.current.kind != DATA)
    }
}

/// Puts bytes where h2 reads them: in the place of processed bytes, or behind all.
fn keep(part: &[u8], bytes: &mut [u8], filtered: &mut FilteredBytes) {
    if let Some(room) = bytes[..filtered.used].get_mut(filtered.kept..filtered.kept + part.len()) {
        room.copy_from_slice(part);
        filtered.kept += part.len();
    } else {
        filtered.behind.extend_from_slice(part);
        filtered.stops = true;
    }
}

// Which streams of a client may still bring frames (RFC 9113, section 5.1).

/// Far more than may be open at once. Streams that the gateway has refused count until their client ends them.
const MOST_OPEN: usize = 1024;

/// Clients seldom pass over numbers.
const MOST_GAPS: usize = 8;

/// The streams of one connection, as far as its client has opened and ended them. Streams that the gateway has reset
/// are open here until the client ends them: frames that were under way by then are no mistake.
#[derive(Debug, Default)]
pub(super) struct ClientStreams {
    /// The stream that was opened last.
    newest: u32,
    /// The streams that the client has not ended, in ascending order.
    open: Vec<u32>,
    /// Numbers that were passed over last.
    gaps: Vec<Range<u32>>,
}

/// The kind of a head on a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HeadRole {
    Request,
    Trailers,
}

impl ClientStreams {
    /// Takes a head on this stream, which it ends or not. The error ends the connection.
    pub(super) fn head(&mut self, stream: u32, ends: bool) -> Result<HeadRole, Reason> {
        if stream.is_multiple_of(2) {
            // The connection itself, or a stream that only a server opens.
            return Err(Reason::PROTOCOL_ERROR);
        }
        if stream > self.newest {
            self.open(stream, ends);
            return Ok(HeadRole::Request);
        }
        if !self.is_open(stream) {
            let is_gap = self.gaps.iter().any(|gap| gap.contains(&stream));
            return Err(if is_gap { Reason::PROTOCOL_ERROR } else { Reason::STREAM_CLOSED });
        }
        if ends {
            self.end(stream);
        }
        Ok(HeadRole::Trailers)
    }

    /// Takes DATA on this stream, which it ends or not. The error ends the connection. Streams that were never opened are left to h2.
    pub(super) fn data(&mut self, stream: u32, ends: bool) -> Result<(), Reason> {
        let was_opened = stream <= self.newest && !stream.is_multiple_of(2);
        if was_opened && !self.is_open(stream) {
            return Err(Reason::STREAM_CLOSED);
        }
        if ends {
            self.end(stream);
        }
        Ok(())
    }

    /// The client has ended or reset the stream.
    pub(super) fn end(&mut self, stream: u32) {
        if let Ok(place) = self.open.binary_search(&stream) {
            self.open.remove(place);
        }
    }

    fn open(&mut self, stream: u32, ends: bool) {
        let next = if self.newest == 0 { 1 } else { self.newest + 2 };
        if stream > next {
            make_room(&mut self.gaps, MOST_GAPS);
            self.gaps.push(next..stream);
        }
        self.newest = stream;
        if !ends {
            make_room(&mut self.open, MOST_OPEN);
            self.open.push(stream);
        }
    }

    fn is_open(&self, stream: u32) -> bool {
        self.open.binary_search(&stream).is_ok()
    }
}

/// Forgets the oldest where there are `most`.
fn make_room<T>(list: &mut Vec<T>, most: usize) {
    if list.len() == most {
        list.remove(0);
    }
}

#[cfg(test)]
mod client_streams_tests {
    use super::*;

    #[test]
    fn streams_are_opened_once_in_ascending_order_and_end_once() {
        let mut streams = ClientStreams::default();
        assert_eq!(streams.head(1, false), Ok(HeadRole::Request));
        assert_eq!(streams.head(7, true), Ok(HeadRole::Request));
        assert_eq!(streams.data(1, false), Ok(()));
        assert_eq!(streams.head(1, true), Ok(HeadRole::Trailers));
        assert_eq!(streams.head(1, true), Err(Reason::STREAM_CLOSED));
        assert_eq!(streams.data(1, true), Err(Reason::STREAM_CLOSED));
        assert_eq!(streams.data(7, true), Err(Reason::STREAM_CLOSED));
        for unopened in [0, 2, 8, 3, 5] {
            assert_eq!(streams.head(unopened, true), Err(Reason::PROTOCOL_ERROR), "{unopened}");
        }
        assert_eq!(streams.data(9, true), Ok(()));
        assert_eq!(streams.head(9, false), Ok(HeadRole::Request));
        streams.end(9);
        assert_eq!(streams.head(9, true), Err(Reason::STREAM_CLOSED));
    }

    #[test]
    fn streams_that_are_never_ended_take_little_memory() {
        let mut streams = ClientStreams::default();
        for number in 0..100_000 {
            assert_eq!(streams.head(4 * number + 1, false), Ok(HeadRole::Request));
        }
        assert_eq!((streams.open.len(), streams.gaps.len()), (MOST_OPEN, MOST_GAPS));
        assert_eq!(streams.head(1, true), Err(Reason::STREAM_CLOSED));
        assert_eq!(streams.head(4 * 99_999 + 1, true), Ok(HeadRole::Trailers));
    }
}

#[cfg(test)]
mod tests;
