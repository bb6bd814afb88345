//! A part of a head's text.

use std::ops::Range;

/// A part of the text of a head, by its position. The text only grows, so a span stays valid.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    /// The bytes from `start` to before `end` of the text.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: position(start), end: position(end) }
    }

    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// A position in the text of a head, which [`MAX_TEXT`] bounds.
#[expect(clippy::cast_possible_truncation, reason = "a text is shorter")]
pub(super) fn position(offset: usize) -> u32 {
    debug_assert!(offset <= MAX_TEXT, "the text of a head is longer than its bound");
    offset as u32
}

/// In bytes: the longest text of a head. The bounds of every protocol are far below.
pub(super) const MAX_TEXT: usize = u32::MAX as usize;
