//! Where an HTTP/2 client stopped: between frames, or inside one. h2 waits for the rest without a bound; we do not.

use super::frame_budget::FrameBudget;

/// Follows the frames of a client by their headers.
#[derive(Debug)]
pub(super) struct Frames {
    header: [u8; HEADER],
    have: usize,
    /// What is left of the payload under way.
    left: usize,
    data: bool,
    /// A head was begun and goes on in the next frame.
    head_open: bool,
    budget: FrameBudget,
}

/// More than a client may say that brings nothing forward.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("too many frames that bring nothing forward")]
pub(super) struct Flood;

impl Frames {
    pub(super) fn new() -> Self {
        // The preface is passed over as if it were a payload.
        Self {
            header: [0; HEADER],
            have: 0,
            left: PREFACE.len(),
            data: false,
            head_open: false,
            budget: FrameBudget::new(),
        }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), Flood> {
        while !bytes.is_empty() {
            let payload = self.left.min(bytes.len());
            self.left -= payload;
            bytes = &bytes[payload..];

            let header = (HEADER - self.have).min(bytes.len());
            self.header[self.have..self.have + header].copy_from_slice(&bytes[..header]);
            self.have += header;
            bytes = &bytes[header..];

            if self.have == HEADER {
                self.begin()?;
            }
        }
        Ok(())
    }

    /// So many bytes went to the client at once.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.budget.wrote(bytes);
    }

    fn begin(&mut self) -> Result<(), Flood> {
        let [high, middle, low, kind, flags, ..] = self.header;
        self.have = 0;
        self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.data = kind == DATA;
        if matches!(kind, HEADERS | CONTINUATION) {
            self.head_open = flags & END_HEADERS == 0;
        }
        if self.budget.note(kind) { Ok(()) } else { Err(Flood) }
    }

    /// Whether more must follow before anything the client said makes sense. The data of a body is not that: it is
    /// bounded where bodies are read.
    pub(super) fn unfinished(&self) -> bool {
        self.have > 0 || self.head_open || (self.left > 0 && !self.data)
    }
}

/// What a client that speaks HTTP/2 without asking sends first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of a frame's header.
const HEADER: usize = 9;

/// Kinds of frames (RFC 9113, section 6).
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const CONTINUATION: u8 = 9;

/// A flag of HEADERS and CONTINUATION.
const END_HEADERS: u8 = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, length, kind, flags, 0, 0, 0, 1];
        frame.resize(HEADER + usize::from(length), 7);
        frame
    }

    #[track_caller]
    fn check(frames: &[Vec<u8>], missing: usize, unfinished: bool) {
        let sent = [PREFACE, &frames.concat()].concat();
        let sent = &sent[..sent.len() - missing];
        let mut whole = Frames::new();
        whole.read(sent).unwrap();
        let mut piecemeal = Frames::new();
        sent.chunks(1).for_each(|byte| piecemeal.read(byte).unwrap());

        assert_eq!(whole.unfinished(), unfinished);
        assert_eq!(piecemeal.unfinished(), unfinished);
    }

    #[test]
    fn whole_frames_leave_nothing_open() {
        check(&[], 0, false);
        check(&[frame(4, 0, 0)], 0, false);
        check(&[frame(4, 0, 6), frame(HEADERS, END_HEADERS, 20)], 0, false);
    }

    #[test]
    fn a_frame_cut_short_is_unfinished() {
        check(&[frame(4, 0, 6)], 1, true);
        check(&[frame(HEADERS, END_HEADERS, 20)], 20, true);
        check(&[frame(4, 0, 0)], 4, true);
    }

    #[test]
    fn a_head_is_unfinished_until_its_last_frame() {
        check(&[frame(HEADERS, 0, 20)], 0, true);
        check(&[frame(HEADERS, 0, 20), frame(CONTINUATION, 0, 5)], 0, true);
        check(&[frame(HEADERS, 0, 20), frame(CONTINUATION, END_HEADERS, 5)], 0, false);
    }

    #[test]
    fn data_under_way_is_not_a_frame_to_wait_for() {
        check(&[frame(DATA, 0, 100)], 50, false);
    }

    proptest! {
        #[test]
        fn wherever_the_reads_are_cut_the_end_is_the_same(
            frames in prop::collection::vec((0..12_u8, any::<u8>(), 0..30_u8), 0..6),
            noise in prop::collection::vec(any::<u8>(), 0..40),
            cut in 0..200_usize,
        ) {
            let frames: Vec<u8> = frames.into_iter().flat_map(|(kind, flags, length)| frame(kind, flags, length)).collect();
            let sent = [PREFACE, &frames, &noise].concat();
            let mut whole = Frames::new();
            whole.read(&sent).unwrap();
            let (first, second) = sent.split_at(cut.min(sent.len()));
            let mut parts = Frames::new();
            parts.read(first).unwrap();
            parts.read(second).unwrap();
            prop_assert_eq!(parts.unfinished(), whole.unfinished());
        }
    }
}
