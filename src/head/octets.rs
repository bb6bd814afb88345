//! The bytes that names and values of fields may have.

/// Whether this is a token (RFC 9110, section 5.6.2) without upper case.
pub(super) fn is_lower_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().fold(true, |all, byte| all & IN_NAMES[usize::from(*byte)])
}

/// Puts the bytes from `start` on into lower case up to the next colon, eight at a time, and returns where that stands.
/// `None`: there is no colon before `end`.
pub(super) fn lower_to_colon(text: &mut [u8], start: usize, end: usize) -> Option<usize> {
    let mut at = start;
    while let Some(chunk) = text[at..].first_chunk_mut::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let colons = zero_bytes(word ^ (EACH * u64::from(b':')));
        // The lowest marked byte is marked rightly; those above it may not be.
        let before = colons.trailing_zeros() / 8;
        let mask = if colons == 0 { u64::MAX } else { (1 << (before * 8)) - 1 };
        *chunk = (word | ((upper_bytes(word) >> 2) & mask)).to_le_bytes();
        if colons != 0 {
            at += before as usize;
            return (at < end).then_some(at);
        }
        at += 8;
        if at >= end {
            return None;
        }
    }
    let colon = at + text[at..end].iter().position(|byte| *byte == b':')?;
    text[at..colon].make_ascii_lowercase();
    Some(colon)
}

/// Marks the high bit of the lowest byte that is zero, and of some above it.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(EACH) & !word & HIGH_BITS
}

/// Marks the high bit of each letter in upper case.
fn upper_bytes(word: u64) -> u64 {
    let low_bits = word & !HIGH_BITS;
    let from_a = low_bits + EACH * (0x80 - u64::from(b'A'));
    let behind_z = low_bits + EACH * (0x7f - u64::from(b'Z'));
    (from_a ^ behind_z) & !word & HIGH_BITS
}

/// A one in each byte.
const EACH: u64 = u64::MAX / 0xff;
const HIGH_BITS: u64 = EACH * 0x80;

/// Whether the only control characters of whole lines are tabs, and a CR and an LF at the end of each. `lines` are the
/// lines. Each ends in CR LF: the caller has seen that.
pub(super) fn are_lines(text: &[u8], lines: usize) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && *byte != b'\t' || *byte == DELETE;
    // Counted in lanes, because the compiler counts many bytes at once only in arrays of a fixed length. No lane of a
    // block counts further than a byte holds.
    let mut controls = 0;
    for block in text.chunks(LANES * 255) {
        let (chunks, rest) = block.as_chunks::<LANES>();
        let mut counts = [0_u8; LANES];
        for chunk in chunks {
            for (count, byte) in counts.iter_mut().zip(chunk) {
                *count += u8::from(is_control(byte));
            }
        }
        controls += counts.iter().map(|count| usize::from(*count)).sum::<usize>();
        controls += rest.iter().filter(|byte| is_control(byte)).count();
    }
    controls == 2 * lines
}

const LANES: usize = 32;

/// Whether this may be the value of a field: visible characters, blanks, tabs, and bytes above 0x7f. Counted without a
/// branch, so that the compiler checks many bytes at once.
pub(super) fn is_value(value: &[u8]) -> bool {
    let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == DELETE;
    value.iter().fold(0_u8, |found, byte| found | u8::from(is_control(byte))) == 0
}

const DELETE: u8 = 0x7f;

const IN_NAMES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.')
            || matches!(byte, b'^' | b'_' | b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};
