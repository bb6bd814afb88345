//! Finds where the lines of a head end, in one pass over its bytes that also finds the bytes no line may have.

use wide::u8x16;

use super::{InvalidLines, LINE_END};

/// In bytes: what is searched at once, a bit for each byte.
const BLOCK: usize = u64::BITS as usize;

const DELETE: u8 = 0x7f;

/// The lines of a head, one after another. Each ends in CR LF, and has no control characters but tabs.
#[derive(Debug)]
pub struct Lines<'r> {
    read: &'r [u8],
    /// Where the block begins that is searched next.
    next: usize,
    /// The control characters of the block before it that were not met yet, a bit for each. The lowest bit is its first byte.
    controls: u64,
}

impl<'r> Lines<'r> {
    /// The lines that begin with the first of these bytes.
    pub fn of(read: &'r [u8]) -> Self {
        Self { read, next: 0, controls: 0 }
    }

    /// Where the next line ends, before its CR LF. `None`: it is not complete.
    #[inline]
    pub fn next_end(&mut self) -> Result<Option<usize>, InvalidLines> {
        let Some(end) = self.next_control() else { return Ok(None) };
        match &self.read[end..] {
            [b'\r', b'\n', ..] => {
                let feed = self.next_control();
                debug_assert_eq!(feed, Some(end + LINE_END.len() - 1), "the LF is the next control character");
                Ok(Some(end))
            }
            b"\r" => Ok(None),
            _ => Err(InvalidLines::Malformed),
        }
    }

    #[inline]
    fn next_control(&mut self) -> Option<usize> {
        while self.controls == 0 {
            self.controls = controls(self.read.get(self.next..).filter(|rest| !rest.is_empty())?);
            self.next += BLOCK;
        }
        let position = self.next - BLOCK + self.controls.trailing_zeros() as usize;
        self.controls &= self.controls - 1;
        Some(position)
    }
}

/// The control characters but tabs among the first bytes, which are at least one.
#[inline(never)]
fn controls(bytes: &[u8]) -> u64 {
    if let Some(block) = bytes.first_chunk() {
        return controls_of(block);
    }
    let mut padded = [b' '; BLOCK];
    padded[..bytes.len()].copy_from_slice(bytes);
    controls_of(&padded)
}

#[inline]
fn controls_of(block: &[u8; BLOCK]) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    let bits = parts.iter().map(|part| {
        let bytes = u8x16::from(*part);
        let is_low = bytes.min(u8x16::splat(b' ' - 1)).simd_eq(bytes);
        let is_tab = bytes.simd_eq(u8x16::splat(b'\t'));
        let is_delete = bytes.simd_eq(u8x16::splat(DELETE));
        ((is_low & !is_tab) | is_delete).to_bitmask()
    });
    bits.rev().fold(0, |all, part| all << 16 | u64::from(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`Lines`] finds, byte by byte.
    fn model(read: &[u8]) -> (Vec<usize>, bool) {
        let (mut ends, mut at) = (Vec::new(), 0);
        loop {
            let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == DELETE;
            let Some(length) = read[at..].iter().position(is_control) else { return (ends, true) };
            let end = at + length;
            match &read[end..] {
                [b'\r'] => return (ends, true),
                [b'\r', b'\n', ..] => ends.push(end),
                _ => return (ends, false),
            }
            at = end + LINE_END.len();
        }
    }

    fn found(read: &[u8]) -> (Vec<usize>, bool) {
        let (mut lines, mut ends) = (Lines::of(read), Vec::new());
        loop {
            match lines.next_end() {
                Ok(Some(end)) => ends.push(end),
                Ok(None) => return (ends, true),
                Err(_) => return (ends, false),
            }
        }
    }

    /// Every byte at every place of a line, and line ends on both sides of a border between blocks.
    #[test]
    fn lines_end_where_the_model_says() {
        for length in 0..2 * BLOCK + 3 {
            let blank = [vec![b'a'; length], b"\r\nb\r\n".to_vec()].concat();
            assert_eq!(found(&blank), model(&blank), "{length}");
            assert_eq!(found(&blank[..=length]), (vec![], true), "{length}");
            for byte in 0..=u8::MAX {
                let mut read = blank.clone();
                read[length / 2] = byte;
                assert_eq!(found(&read), model(&read), "{byte:#x} at {} of {length}", length / 2);
            }
        }
    }
}
