//! The frames of an HTTP/2 client as they come in: heads are cut out, all others pass. Where the client stopped is
//! known, between frames or inside one: h2 waits for the rest without a bound; we do not.

use std::mem;

use h2::Reason;

use super::frame_budget::FrameBudget;
use super::heads::Heads;
use super::heads::Stub;
use super::waiting::Waiting;

/// Follows the frames of a client.
#[derive(Debug)]
pub(super) struct Frames {
    header: [u8; HEADER],
    have: usize,
    /// What is left of the payload under way.
    left: usize,
    current: FrameHeader,
    /// Of HEADERS or CONTINUATION, what came of its payload in pieces.
    payload: Vec<u8>,
    heads: Heads,
    waiting: Waiting,
    budget: FrameBudget,
    /// Frames of data since those who read them had their turn.
    data_in_a_row: u32,
}

/// The first nine bytes of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameHeader {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

/// What became of bytes.
#[derive(Debug, Default)]
pub(super) struct Sifted {
    /// So many of them were looked at.
    pub(super) used: usize,
    /// So many, at their beginning, are for h2 now.
    pub(super) kept: usize,
    /// Comes behind those, and had no room among them.
    pub(super) behind: Vec<u8>,
    /// Nothing further should be looked at before this is taken.
    stops: bool,
}

/// More than a client may say that brings nothing forward.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("too many frames that bring nothing forward")]
pub(super) struct Flood;

impl FrameHeader {
    fn parse([high, middle, low, kind, flags, stream @ ..]: [u8; HEADER]) -> Self {
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        // The highest bit means nothing.
        Self { length, kind, flags, stream: u32::from_be_bytes(stream) & (u32::MAX >> 1) }
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER] {
        let [.., high, middle, low] = self.length.to_be_bytes();
        let [first, second, third, fourth] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, first, second, third, fourth]
    }
}

impl Frames {
    /// Heads may be `most` bytes long, unpacked, and are left with `waiting`.
    pub(super) fn new(most: usize, waiting: Waiting) -> Self {
        Self {
            header: [0; HEADER],
            have: 0,
            // The preface passes as if it were a payload.
            left: PREFACE.len(),
            current: FrameHeader { length: PREFACE.len(), kind: UNKNOWN, flags: 0, stream: 0 },
            payload: Vec::new(),
            heads: Heads::new(most, waiting.clone()),
            waiting,
            budget: FrameBudget::new(),
            data_in_a_row: 0,
        }
    }

    /// Looks at what came, and leaves of it what h2 is to read. It stops where a head needs more room than it took,
    /// where enough of them wait, and where it [`pauses`](Self::pauses).
    pub(super) fn sift(&mut self, bytes: &mut [u8]) -> Result<Sifted, Flood> {
        let mut sifted = Sifted::default();
        while sifted.used < bytes.len() && !sifted.stops {
            if self.left > 0 {
                let read = self.take_payload(bytes, &mut sifted);
                self.put(read, bytes, &mut sifted)?;
                continue;
            }
            let fresh = &bytes[sifted.used..];
            let taken = (HEADER - self.have).min(fresh.len());
            self.header[self.have..self.have + taken].copy_from_slice(&fresh[..taken]);
            self.have += taken;
            sifted.used += taken;
            if self.have == HEADER {
                self.begin(bytes, &mut sifted)?;
            }
        }
        Ok(sifted)
    }

    /// Whether those who read data should have their turn before more is looked at; they get it. h2 ends the connection
    /// where too many small frames are not read yet.
    pub(super) fn pauses(&mut self) -> bool {
        let pauses = self.data_in_a_row >= DATA_IN_A_ROW;
        if pauses {
            self.data_in_a_row = 0;
        }
        pauses
    }

    /// So many bytes went to the client at once.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.budget.wrote(bytes);
    }

    /// A frame's header is here.
    fn begin(&mut self, bytes: &mut [u8], sifted: &mut Sifted) -> Result<(), Flood> {
        self.current = FrameHeader::parse(self.header);
        self.have = 0;
        self.left = self.current.length;
        if !self.budget.note(self.current.kind) {
            return Err(Flood);
        }
        if self.current.kind == DATA {
            self.data_in_a_row += 1;
            sifted.stops |= self.data_in_a_row >= DATA_IN_A_ROW;
        }
        if self.heads.are_open() && !self.heads.go_on_in(self.current) {
            self.fail(Reason::PROTOCOL_ERROR, bytes, sifted);
        } else if !self.is_cut_out() {
            keep(&self.header, bytes, sifted);
        } else if self.left == 0 {
            let read = self.heads.read(self.current, &[]);
            self.put(read, bytes, sifted)?;
        }
        Ok(())
    }

    /// Whether this frame is part of a head. One that is too long, or goes on with nothing, is left to h2, which ends
    /// the connection for it.
    fn is_cut_out(&self) -> bool {
        let is_part = self.current.kind == HEADERS || self.heads.are_open();
        is_part && self.current.length <= MAX_FRAME
    }

    /// What came of a payload passes, or becomes part of a head, which may be whole with it.
    fn take_payload(&mut self, bytes: &mut [u8], sifted: &mut Sifted) -> Result<Option<Stub>, Reason> {
        let begin = sifted.used;
        let taken = self.left.min(bytes.len() - begin);
        self.left -= taken;
        sifted.used += taken;
        if !self.is_cut_out() {
            if sifted.kept != begin {
                bytes.copy_within(begin..begin + taken, sifted.kept);
            }
            sifted.kept += taken;
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

    /// Hands on what became of a frame.
    fn put(&mut self, read: Result<Option<Stub>, Reason>, bytes: &mut [u8], sifted: &mut Sifted) -> Result<(), Flood> {
        match read {
            Ok(None) => Ok(()),
            Ok(Some(stub)) => {
                keep(&stub.frame, bytes, sifted);
                sifted.stops |= self.waiting.is_full();
                if stub.is_sound || self.budget.note_malformed() { Ok(()) } else { Err(Flood) }
            }
            Err(reason) => {
                self.fail(reason, bytes, sifted);
                Ok(())
            }
        }
    }

    /// The connection has to end. Nobody reads what follows.
    fn fail(&self, reason: Reason, bytes: &[u8], sifted: &mut Sifted) {
        self.waiting.fail(reason);
        (sifted.used, sifted.stops) = (bytes.len(), true);
    }

    /// Whether more must follow before anything the client said makes sense. The data of a body is not that: it is
    /// bounded where bodies are read.
    pub(super) fn unfinished(&self) -> bool {
        self.have > 0 || self.heads.are_open() || (self.left > 0 && self.current.kind != DATA)
    }
}

/// Puts this where h2 reads it: in the place of what was taken, or behind all.
fn keep(part: &[u8], bytes: &mut [u8], sifted: &mut Sifted) {
    if let Some(room) = bytes[..sifted.used].get_mut(sifted.kept..sifted.kept + part.len()) {
        room.copy_from_slice(part);
        sifted.kept += part.len();
    } else {
        sifted.behind.extend_from_slice(part);
        sifted.stops = true;
    }
}

/// What a client that speaks HTTP/2 without asking sends first.
pub(in crate::listen) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of a frame's header.
const HEADER: usize = 9;

/// A quarter of what h2 keeps of the smallest.
const DATA_IN_A_ROW: u32 = 128;

/// The longest that is taken, which is what h2 takes.
const MAX_FRAME: usize = 16 * 1024;

/// Kinds of frames (RFC 9113, section 6).
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 0xff;

/// Flags of HEADERS, of which CONTINUATION has one.
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;
pub(super) const PRIORITY: u8 = 0x20;

#[cfg(test)]
mod tests;
