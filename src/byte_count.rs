//! Counts bytes, many at once.

/// How many bytes are in a class. The bytes are counted in lanes, because the compiler counts many at once only in arrays of a fixed
/// length.
#[inline]
pub fn count_bytes(text: &[u8], is_in_class: impl Fn(u8) -> bool) -> usize {
    let mut count = 0;
    // No lane of a block counts further than a byte holds.
    for block in text.chunks(LANES * 255) {
        let (chunks, rest) = block.as_chunks::<LANES>();
        let mut counts = [0_u8; LANES];
        for chunk in chunks {
            for (count, byte) in counts.iter_mut().zip(chunk) {
                *count += u8::from(is_in_class(*byte));
            }
        }
        count += counts.iter().map(|count| usize::from(*count)).sum::<usize>();
        count += rest.iter().filter(|byte| is_in_class(**byte)).count();
    }
    count
}

const LANES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_are_counted() {
        for length in (0..200).chain([LANES * 255 - 1, LANES * 255, LANES * 255 + 1, 3 * LANES * 255 + 7]) {
            let text = "ab".repeat(length);
            assert_eq!(count_bytes(&text.as_bytes()[..length], |byte| byte == b'a'), length.div_ceil(2), "{length}");
        }
    }
}
