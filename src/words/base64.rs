//! Base64 (RFC 4648). [`decode`] is as lenient as the most lenient application, so that no spelling hides a value.
//! [`decode_url`] is strict, so that a value has one spelling.

use std::borrow::Cow;

/// The standard alphabet.
const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The alphabet for URLs and cookies.
pub const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes in the standard alphabet, with padding.
pub fn encode(content: &[u8]) -> String {
    let mut text = digits(content, STANDARD);
    text.extend((0..(3 - content.len() % 3) % 3).map(|_| '='));
    text
}

/// Encodes in the alphabet for URLs, without padding.
pub fn encode_url(content: &[u8]) -> String {
    digits(content, URL)
}

fn digits(content: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::with_capacity(content.len().div_ceil(3) * 4);
    for group in content.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        let digit = |place: usize| char::from(alphabet[(bits >> (18 - 6 * place)) as usize & 63]);
        text.extend((0..=group.len()).map(digit));
    }
    text
}

/// Decodes either alphabet, with or without padding. Bytes of neither alphabet are skipped.
pub fn decode(encoded: &[u8]) -> Vec<u8> {
    Decoder { is_url: true, stops_at_padding: false, stops_at_others: false }.decode(encoded)
}

/// Decodes the one spelling that RFC 4648 has for a content: the standard alphabet with padding. `None`: it is another
/// spelling.
pub fn decode_strict(encoded: &[u8]) -> Option<Vec<u8>> {
    let decoded = decode(encoded);
    (encode(&decoded).as_bytes() == encoded).then_some(decoded)
}

/// Decodes the alphabet for URLs, without padding, strictly.
pub fn decode_url_strict(encoded: &[u8]) -> Option<Vec<u8>> {
    let decoded = decode(encoded);
    (encode_url(&decoded).as_bytes() == encoded).then_some(decoded)
}

/// The contents that decoders of applications read from a text: one content if it is spelled strictly.
pub fn readings(encoded: &[u8]) -> Vec<Vec<u8>> {
    if let Some(decoded) = decode_strict(encoded) {
        return vec![decoded];
    }
    let mut readings = Vec::new();
    for choice in 0..8_u8 {
        let decoder =
            Decoder { is_url: choice & 1 == 0, stops_at_padding: choice & 2 != 0, stops_at_others: choice & 4 != 0 };
        let content = decoder.decode(encoded);
        if !readings.contains(&content) {
            readings.push(content);
        }
    }
    readings
}

/// A value with fewer digits is compared as it is: such a one may be a number in a row.
const MIN_DIGITS: usize = 22;

/// The spelling of a long value that it shares with all others that decoders take for the same: its digits in one alphabet,
/// without those at the end that hold no whole byte. A short value has its own alone.
pub fn one_spelling(value: &str) -> Cow<'_, str> {
    folded(value).map_or(Cow::Borrowed(value), Cow::Owned)
}

/// Further spellings of the same, as one spelling each: decoders stop at padding or at what is no digit, in the whole value or
/// behind its last dot, and some pass over `-` and `_`.
pub fn other_spellings(value: &str) -> Vec<String> {
    if value.bytes().all(|byte| STANDARD.contains(&byte)) {
        return Vec::new();
    }
    let behind_dot = value.rfind('.').map_or(0, |dot| dot + 1);
    let cut = |from: usize, end: Option<usize>| end.map(|end| &value[..from + end]);
    let parts = [0, behind_dot].into_iter().flat_map(|from| {
        let part = &value[from..];
        [cut(from, part.find('=')), cut(from, part.find(|digit| standard_digit(digit).is_none()))]
    });
    let mut spellings = Vec::new();
    for part in std::iter::once(value).chain(parts.flatten()) {
        let found = [folded(part), folded(&part.replace(['-', '_'], ""))].into_iter().flatten();
        found.for_each(|one| _ = (!spellings.contains(&one)).then(|| spellings.push(one)));
    }
    spellings
}

fn folded(value: &str) -> Option<String> {
    let mut digits = String::with_capacity(value.len());
    digits.extend(value.chars().filter_map(standard_digit));
    if digits.len() < MIN_DIGITS {
        return None;
    }
    // The last digit may have bits too many, and one that is alone in its group has nothing else.
    let most = digits.len() - 1 - usize::from(digits.len() % 4 == 1);
    digits.truncate(most);
    Some(digits)
}

/// This digit of either alphabet, in the standard one.
fn standard_digit(digit: char) -> Option<char> {
    match digit {
        '-' | '+' => Some('+'),
        '_' | '/' => Some('/'),
        'A'..='Z' | 'a'..='z' | '0'..='9' => Some(digit),
        _ => None,
    }
}

/// One lenient way to decode.
struct Decoder {
    /// Whether it knows `-` and `_`.
    is_url: bool,
    stops_at_padding: bool,
    /// Whether it stops at a byte that it does not know, or skips it.
    stops_at_others: bool,
}

impl Decoder {
    fn decode(&self, encoded: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::with_capacity(encoded.len() / 4 * 3 + 3);
        let mut pending = 0_u32;
        let mut bits = 0;
        for &byte in encoded {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'-' if self.is_url => 62,
                b'_' if self.is_url => 63,
                b'=' if self.stops_at_padding => break,
                b'=' => continue,
                _ if self.stops_at_others => break,
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
}

/// Decodes the alphabet for URLs strictly (RFC 7515): no padding, no other character, and no bit behind the last byte.
pub fn decode_url(encoded: &[u8]) -> Option<Vec<u8>> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let decoded = encoded.iter().all(is_digit).then(|| decode(encoded))?;
    // The rest is a digit without a partner, or bits that fill no byte.
    (encode_url(&decoded).as_bytes() == encoded).then_some(decoded)
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

    #[test]
    fn one_spelling_is_written() {
        assert_eq!(encode(b"alice"), "YWxpY2U=");
        assert_eq!([encode(b"???>>>"), encode_url(b"???>>>")], ["Pz8/Pj4+", "Pz8_Pj4-"]);
        assert_eq!([encode(b""), encode(b"a"), encode_url(b"a")], ["", "YQ==", "YQ"]);
    }

    #[test]
    fn only_one_spelling_is_strict() {
        assert_eq!(decode_strict(b"YWxpY2U=").as_deref(), Some(&b"alice"[..]));
        assert_eq!(decode_url_strict(b"YWxpY2U").as_deref(), Some(&b"alice"[..]));
        for text in ["YWxpY2U", "YWxpY2V=", "YWxp Y2U=", "YWxpY2U==", "Pz8_", "Y"] {
            assert_eq!(decode_strict(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_decoder_has_its_reading() {
        let readings = |text: &str| {
            let texts =
                readings(text.as_bytes()).into_iter().map(|reading| String::from_utf8_lossy(&reading).into_owned());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(readings("YWxpY2U="), ["alice"]);
        assert_eq!(readings("YWxp!Y2U="), ["alice", "ali"]);
        assert_eq!(readings("YWxp=Y2U="), ["alice", "ali"]);
        assert_eq!(readings("YWxp-Y2U="), ["ali\u{fffd}\u{fffd}\u{fffd}", "alice", "ali"]);
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back_and_anything_is_decoded(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            prop_assert_eq!(&decode(encode(&bytes).as_bytes()), &bytes);
            prop_assert_eq!(decode(encode_url(&bytes).as_bytes()), bytes);
            prop_assert!(decode(&noise).len() <= noise.len() * 3 / 4);
        }
    }
}
