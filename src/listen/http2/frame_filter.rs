//! Filters the frames of an HTTP/2 client: heads are cut out, all other frames pass to h2. It knows whether the client
//! stopped within a frame, because h2 would wait for the rest without a timeout.

use std::mem;

use h2::Reason;

use super::frame::ACK;
use super::frame::DATA;
use super::frame::END_STREAM;
use super::frame::FrameHeader;
use super::frame::HEADER_LENGTH;
use super::frame::HEADERS;
use super::frame::MAX_PAYLOAD;
use super::frame::PING;
use super::frame::PREFACE;
use super::frame::PRIORITY_FRAME;
use super::frame::RST_STREAM;
use super::frame::SETTINGS;
use super::frame::UNKNOWN;
use super::frame::WINDOW_UPDATE;
use super::frame_budget::FrameBudget;
use super::head_assembler::HeadAssembler;
use super::head_assembler::StubFrame;
use super::pending_heads::PendingHeads;

/// Follows the frames of one connection.
#[derive(Debug)]
pub(super) struct FrameFilter {
    header: [u8; HEADER_LENGTH],
    have: usize,
    /// In bytes: the rest of the current payload.
    left: usize,
    current: FrameHeader,
    /// The pieces of the payload of HEADERS or CONTINUATION.
    payload: Vec<u8>,
    heads: HeadAssembler,
    pending_heads: PendingHeads,
    budget: FrameBudget,
    /// DATA frames since the tasks that read bodies had their turn.
    data_in_a_row: u32,
}

/// What was done with bytes that were read.
#[derive(Debug, Default)]
pub(super) struct FilteredBytes {
    /// How many bytes were processed.
    pub(super) used: usize,
    /// How many bytes, at the beginning, are for h2.
    pub(super) kept: usize,
    /// For h2 behind those: there was no room for it among them.
    pub(super) behind: Vec<u8>,
    /// No more bytes should be processed before h2 has read these.
    stops: bool,
}

impl FrameFilter {
    /// Decoded heads may have `max_head` bytes. They are put into `pending_heads`.
    pub(super) fn new(max_head: usize, pending_heads: PendingHeads) -> Self {
        Self {
            header: [0; HEADER_LENGTH],
            have: 0,
            // The preface passes like a payload.
            left: PREFACE.len(),
            current: FrameHeader { length: PREFACE.len(), kind: UNKNOWN, flags: 0, stream: 0 },
            payload: Vec::new(),
            heads: HeadAssembler::new(max_head, pending_heads.clone()),
            pending_heads,
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

    /// Whether the tasks that read bodies should run before more frames are processed; asked once, they do. h2 ends a
    /// connection with too many small frames that were not read.
    pub(super) fn take_pause(&mut self) -> bool {
        let pauses = self.data_in_a_row >= MAX_DATA_IN_A_ROW;
        if pauses {
            self.data_in_a_row = 0;
        }
        pauses
    }

    /// Notes that so many streams have got the beginning of their answers.
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
            filtered.kept += taken;
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

/// What a client is told that sends more control frames than its budget allows.
const TOO_MANY: Reason = Reason::ENHANCE_YOUR_CALM;

/// A quarter of the unread data frames of the smallest size that h2 allows.
const MAX_DATA_IN_A_ROW: u32 = 128;

#[cfg(test)]
mod tests;
