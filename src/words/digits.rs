//! Numbers, addresses and hashes as text, without the formatting machinery of the standard library: each request writes
//! some of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The two hexadecimal digits of each byte.
pub const HEX_PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Each octet in decimal with a dot behind it, and how many characters these are.
const OCTETS: [([u8; 4], u8); 256] = {
    let mut octets = [([b'.'; 4], 0); 256];
    let mut octet = 0;
    while octet < octets.len() {
        let [hundreds, tens, ones] = three_digits(octet as u64);
        octets[octet] = match octet {
            0..10 => ([ones, b'.', 0, 0], 2),
            10..100 => ([tens, ones, b'.', 0], 3),
            _ => ([hundreds, tens, ones, b'.'], 4),
        };
        octet += 1;
    }
    octets
};

/// Appends a number in decimal.
#[inline]
pub fn push_decimal(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The last three decimal digits of a number, zeros included.
#[inline]
pub const fn three_digits(value: u64) -> [u8; 3] {
    let below_1000 = (value % 1000).to_le_bytes();
    let below_1000 = u16::from_le_bytes([below_1000[0], below_1000[1]]);
    let [hundreds, tens, ones] = [below_1000 / 100, below_1000 / 10 % 10, below_1000 % 10];
    [b'0' + hundreds.to_le_bytes()[0], b'0' + tens.to_le_bytes()[0], b'0' + ones.to_le_bytes()[0]]
}

/// 32 hexadecimal digits, zeros included.
#[inline]
pub fn hex(value: u128) -> [u8; 32] {
    let mut text = [0; 32];
    for (digits, byte) in text.as_chunks_mut().0.iter_mut().zip(value.to_be_bytes()) {
        *digits = HEX_PAIRS[usize::from(byte)];
    }
    text
}

/// Appends an address in the form of its `Display`.
#[inline]
pub fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => push_v4(out, address),
        IpAddr::V6(address) => push_v6(out, address),
    }
}

fn push_v4(out: &mut Vec<u8>, address: Ipv4Addr) {
    // Blocks of a size that the compiler knows are copied without a call. What a block has too much is cut off.
    let (mut text, mut length) = ([0; 16], 0);
    for octet in address.octets() {
        let (digits, count) = OCTETS[usize::from(octet)];
        text[length..length + 4].copy_from_slice(&digits);
        length += usize::from(count);
    }
    let begin = out.len();
    out.extend_from_slice(&text);
    // Without the last dot.
    out.truncate(begin + length - 1);
}

/// As RFC 5952 recommends: the longest run of zeros is left out, the first of several.
fn push_v6(out: &mut Vec<u8>, address: Ipv6Addr) {
    if let Some(mapped) = address.to_ipv4_mapped() {
        out.extend_from_slice(b"::ffff:");
        return push_v4(out, mapped);
    }
    let segments = address.segments();
    let (mut run, mut longest) = (0..0, 0..0);
    for (at, segment) in segments.into_iter().enumerate() {
        run = if segment == 0 { run.start..at + 1 } else { at + 1..at + 1 };
        if run.len() > longest.len() {
            longest = run.clone();
        }
    }
    if longest.len() > 1 {
        push_segments(out, &segments[..longest.start]);
        out.extend_from_slice(b"::");
        push_segments(out, &segments[longest.end..]);
    } else {
        push_segments(out, &segments);
    }
}

fn push_segments(out: &mut Vec<u8>, segments: &[u16]) {
    for (position, segment) in segments.iter().enumerate() {
        if position > 0 {
            out.push(b':');
        }
        push_segment(out, *segment);
    }
}

/// Hexadecimal digits without leading zeros.
pub fn push_segment(out: &mut Vec<u8>, segment: u16) {
    let [high, low] = segment.to_be_bytes().map(|byte| HEX_PAIRS[usize::from(byte)]);
    let digits = [high[0], high[1], low[0], low[1]];
    let zeros = (segment | 1).leading_zeros() as usize / 4;
    out.extend_from_slice(&digits[zeros..]);
}

// Counts bytes, many at once.

const LANES: usize = 32;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_of_every_length_are_counted() {
        for length in (0..200).chain([LANES * 255 - 1, LANES * 255, LANES * 255 + 1, 3 * LANES * 255 + 7]) {
            let text = "ab".repeat(length);
            assert_eq!(count_bytes(&text.as_bytes()[..length], |byte| byte == b'a'), length.div_ceil(2), "{length}");
        }
    }

    fn pushed(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"before ".to_vec();
        push(&mut out);
        String::from_utf8(out).unwrap().strip_prefix("before ").unwrap().to_owned()
    }

    #[test]
    fn every_octet_and_every_three_digits_are_those_of_the_standard_library() {
        for octet in 0..=255 {
            let address = IpAddr::from([octet, 255 - octet, octet / 2, 7]);
            assert_eq!(pushed(|out| push_address(out, address)), address.to_string());
        }
        for number in 0..1000 {
            assert_eq!(std::str::from_utf8(&three_digits(number)).unwrap(), format!("{number:03}"));
        }
    }

    #[test]
    fn an_address_leaves_out_its_longest_run_of_zeros_as_the_standard_library_does() {
        let choices = [0, 1, 0xffff_u16];
        for mut number in 0..3_usize.pow(8) {
            let address = IpAddr::from([(); 8].map(|()| {
                let choice = choices[number % 3];
                number /= 3;
                choice
            }));
            assert_eq!(pushed(|out| push_address(out, address)), address.to_string());
        }
    }

    proptest! {
        #[test]
        fn numbers_addresses_and_hashes_are_those_of_the_standard_library(
            number: u64, hash: u128, v4: [u8; 4], v6: [u16; 8],
        ) {
            prop_assert_eq!(pushed(|out| push_decimal(out, number)), number.to_string());
            prop_assert_eq!(pushed(|out| push_decimal(out, number >> 40)), (number >> 40).to_string());
            prop_assert_eq!(hex(hash).to_vec(), format!("{hash:032x}").into_bytes());
            for address in [IpAddr::from(v4), IpAddr::from(v6)] {
                prop_assert_eq!(pushed(|out| push_address(out, address)), address.to_string());
            }
        }
    }
}
