//! Base64, read as forgivingly as the most forgiving application does.

/// Base64 in either alphabet, with or without padding; what belongs to neither alphabet is passed over.
pub(crate) fn decode(encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(encoded.len() / 4 * 3 + 3);
    let mut pending = 0_u32;
    let mut bits = 0;
    for &byte in encoded {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        pending = (pending << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            decoded.push((pending >> bits).to_le_bytes()[0]);
            pending &= (1 << bits) - 1;
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(encoded: &str, expected: &str) {
        assert_eq!(decode(encoded.as_bytes()), expected.as_bytes(), "{encoded:?}");
    }

    #[test]
    fn every_spelling_is_decoded() {
        check("YWxpY2U=", "alice");
        check("YWxpY2U", "alice");
        check("YWxp\r\n Y2U=", "alice");
        check("Y.W!xpY2U=", "alice");
        check("Pz8/Pj4+", "???>>>");
        check("Pz8_Pj4-", "???>>>");
        check("", "");
        check("Y", "");
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back_and_anything_is_decoded(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
            let digit = |six: &[u8]| (0..6).fold(0, |sum, at| sum << 1 | usize::from(*six.get(at).unwrap_or(&0)));
            let encoded: Vec<u8> = bits.chunks(6).map(|six| digits[digit(six)]).collect();
            prop_assert_eq!(decode(&encoded), bytes);
            prop_assert!(decode(&noise).len() <= noise.len() * 3 / 4);
        }
    }
}
