//! Decodes the Huffman code of HPACK (RFC 7541, appendix B). The code is canonical: the lengths of the codes define it.

use crate::wire::http2::hpack::InvalidHpack;

/// Appends what the code stands for. What fills the last byte is fewer than eight ones.
pub(super) fn decode(code: &[u8], text: &mut Vec<u8>) -> Result<(), InvalidHpack> {
    // The bits that were read and are not used yet, from the highest down. Behind `count` of them may stand what comes next.
    let (mut rest, mut bits, mut count) = (code, 0_u64, 0_usize);
    let mut end = text.len();
    // Room for the most that the code may stand for.
    text.resize(end + code.len() * 8 / SHORTEST + AT_ONCE, 0);
    while let (Some(word), Some(place)) = (rest.first_chunk(), text[end..].first_chunk_mut::<AT_ONCE>()) {
        bits |= u64::from_be_bytes(*word) >> count;
        let bytes = (u64::BITS as usize - 1 - count) / 8;
        rest = &rest[bytes..];
        count += bytes * 8;
        let before = count;
        for symbol in place {
            let length;
            (*symbol, length) = short(bits);
            bits <<= length;
            count -= length;
            // From a longer code on nothing is found any more.
            end += usize::from(length > 0);
        }
        if count == before {
            let (symbol, length) = long(bits).ok_or(InvalidHpack)?;
            text[end] = symbol;
            end += 1;
            bits <<= length;
            count -= length;
        }
    }
    text.truncate(end);
    loop {
        while count <= 56
            && let Some((byte, behind)) = rest.split_first()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
            rest = behind;
        }
        let (symbol, length) = match short(bits) {
            (_, 0) => match long(bits) {
                Some(found) => found,
                None => break,
            },
            found => found,
        };
        if length > count {
            break;
        }
        text.push(symbol);
        bits <<= length;
        count -= length;
    }
    let is_padding = |bits: u64| bits.leading_ones() as usize >= count;
    if count < 8 && is_padding(bits) { Ok(()) } else { Err(InvalidHpack) }
}

/// The byte that these bits begin with, and the length of its code. Length zero: the code is longer than the table
/// covers.
fn short(bits: u64) -> (u8, usize) {
    let (symbol, length) = SHORT[usize::try_from(bits >> (64 - FEW)).unwrap_or_default()];
    (symbol, usize::from(length))
}

/// A code of more bits than the table knows, the first of these.
fn long(bits: u64) -> Option<(u8, usize)> {
    (FEW + 1..LONGEST).find_map(|length| {
        let behind = (bits >> (64 - length)).checked_sub(u64::from(FIRST[length]))?;
        let behind = u16::try_from(behind).ok().filter(|behind| *behind < COUNT[length])?;
        Some((SYMBOLS[usize::from(BEFORE[length] + behind)], length))
    })
}

/// Bits that are looked up at once. Codes of rare bytes are longer.
const FEW: usize = 10;

/// So many codes that the table knows are found in the bits of seven bytes.
const AT_ONCE: usize = 56 / FEW;

/// The length of the shortest codes.
const SHORTEST: usize = 5;

/// The length of the longest codes. One of them is the end-of-string symbol, which must not stand in a text.
const LONGEST: usize = 31;

/// The bytes in the order of their codes.
#[expect(clippy::cast_possible_truncation, reason = "a byte, counted")]
const SYMBOLS: [u8; 256] = {
    let mut symbols = [0; 256];
    let (mut found, mut length) = (0, 0);
    while length < LONGEST {
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                symbols[found] = symbol as u8;
                found += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    symbols
};

/// How many codes have this length.
const COUNT: [u16; LONGEST] = {
    let mut count = [0; LONGEST];
    let mut symbol = 0;
    while symbol < 256 {
        count[LENGTHS[symbol] as usize] += 1;
        symbol += 1;
    }
    count
};

/// How many codes are shorter.
const BEFORE: [u16; LONGEST] = {
    let mut before = [0; LONGEST];
    let mut length = 1;
    while length < LONGEST {
        before[length] = before[length - 1] + COUNT[length - 1];
        length += 1;
    }
    before
};

/// The first code of this length.
const FIRST: [u32; LONGEST] = {
    let mut first = [0; LONGEST];
    let mut length = 1;
    while length < LONGEST {
        first[length] = (first[length - 1] + COUNT[length - 1] as u32) << 1;
        length += 1;
    }
    first
};

/// Which byte these bits begin with, and how many of them it takes; none: more than there are.
#[expect(clippy::cast_possible_truncation, reason = "a length below eleven")]
static SHORT: [(u8, u8); 1 << FEW] = {
    let mut short = [(0, 0); 1 << FEW];
    let mut length = 1;
    while length <= FEW {
        let mut at = 0;
        while at < COUNT[length] as usize {
            let begin = (FIRST[length] as usize + at) << (FEW - length);
            let mut behind = 0;
            while behind < 1 << (FEW - length) {
                short[begin + behind] = (SYMBOLS[BEFORE[length] as usize + at], length as u8);
                behind += 1;
            }
            at += 1;
        }
        length += 1;
    }
    short
};

/// How many bits the code of each byte has.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28,
    28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15,
    6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22,
    20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23,
    23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22,
    22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26,
    27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27,
    26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(code: &[u8]) -> Result<Vec<u8>, InvalidHpack> {
        let mut text = Vec::new();
        decode(code, &mut text).map(|()| text)
    }

    /// The code of a text, from the same lengths.
    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut bits = Vec::new();
        for byte in text {
            let length = usize::from(LENGTHS[usize::from(*byte)]);
            let place = SYMBOLS.iter().position(|symbol| symbol == byte).unwrap() - usize::from(BEFORE[length]);
            let code = FIRST[length] + u32::try_from(place).unwrap();
            bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
        }
        bits.resize(bits.len().next_multiple_of(8), true);
        bits.chunks(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | u8::from(*bit))).collect()
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // RFC 7541, C.4 and C.6.
        let examples: [(&[u8], &[u8]); 4] = [
            (b"www.example.com", &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]),
            (b"no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (b"custom-value", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf]),
            (b"307", &[0x64, 0x0e, 0xff]),
        ];
        for (text, code) in examples {
            assert_eq!(decoded(code).as_deref(), Ok(text));
        }
    }

    #[test]
    fn every_byte_has_a_code() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encoded(&all)), Ok(all));
        for byte in 0..=255 {
            assert_eq!(decoded(&encoded(&[byte])), Ok(vec![byte]));
        }
    }

    #[test]
    fn the_padding_is_ones_and_shorter_than_a_byte() {
        assert_eq!(decoded(b""), Ok(Vec::new()));
        for wrong in
            [&[0xff][..], &[0x1f, 0xff], &[0x18], &[0x64, 0x0e], &[0xff; 4], &[0xff; 8], &[0xff, 0xff, 0xff, 0xfc]]
        {
            assert_eq!(decoded(wrong), Err(InvalidHpack), "{wrong:x?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_was_encoded_is_decoded(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100)) {
            proptest::prop_assert_eq!(decoded(&encoded(&text)), Ok(text));
        }

        #[test]
        fn no_code_makes_it_panic(code in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100)) {
            let _ = decoded(&code);
        }
    }
}
