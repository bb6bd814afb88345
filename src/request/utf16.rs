//! Transcodes JSON and XML from UTF-16 and UTF-32, which some libraries recognise by the positions of NULs.

/// The text in UTF-8, if its first bytes show that it is in UTF-16 or UTF-32.
pub(crate) fn transcode(text: &[u8]) -> Option<Vec<u8>> {
    let (width, order, mark): (usize, ByteOrder, usize) = match text {
        [0xff, 0xfe, 0, 0, ..] => (4, ByteOrder::Little, 4),
        [0, 0, 0xfe, 0xff, ..] => (4, ByteOrder::Big, 4),
        [0xff, 0xfe, ..] => (2, ByteOrder::Little, 2),
        [0xfe, 0xff, ..] => (2, ByteOrder::Big, 2),
        [0, 0, 0, 1..=0xff, ..] => (4, ByteOrder::Big, 0),
        [1..=0xff, 0, 0, 0, ..] => (4, ByteOrder::Little, 0),
        [0, 1..=0xff, ..] => (2, ByteOrder::Big, 0),
        [1..=0xff, 0, ..] => (2, ByteOrder::Little, 0),
        _ => return None,
    };
    let units = text[mark..].chunks_exact(width).map(|unit| {
        let append = |sum: u32, byte: &u8| (sum << 8) | u32::from(*byte);
        match order {
            ByteOrder::Little => unit.iter().rev().fold(0, append),
            ByteOrder::Big => unit.iter().fold(0, append),
        }
    });
    let plain: String = if width == 4 {
        units.map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    } else {
        let units = units.map(|unit| u16::try_from(unit).unwrap_or_default());
        char::decode_utf16(units).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    Some(plain.into_bytes())
}

#[derive(Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "{\"u\":\"é😀\"}";

    #[track_caller]
    fn check(bytes: &[u8]) {
        assert_eq!(transcode(bytes).as_deref(), Some(TEXT.as_bytes()), "{bytes:?}");
    }

    #[test]
    fn a_text_is_recognised_by_its_mark_or_by_its_nuls() {
        let narrow = |order: fn(u16) -> [u8; 2]| TEXT.encode_utf16().flat_map(order).collect::<Vec<_>>();
        let wide = |order: fn(u32) -> [u8; 4]| TEXT.chars().flat_map(|char| order(char.into())).collect::<Vec<_>>();
        check(&narrow(u16::to_le_bytes));
        check(&narrow(u16::to_be_bytes));
        check(&wide(u32::to_le_bytes));
        check(&wide(u32::to_be_bytes));
        check(&[&[0xff, 0xfe], &narrow(u16::to_le_bytes)[..]].concat());
        check(&[&[0xfe, 0xff], &narrow(u16::to_be_bytes)[..]].concat());
        check(&[&[0xff, 0xfe, 0, 0], &wide(u32::to_le_bytes)[..]].concat());
        check(&[&[0, 0, 0xfe, 0xff], &wide(u32::to_be_bytes)[..]].concat());
    }

    #[test]
    fn other_text_is_left_alone() {
        assert_eq!(transcode(b"{}"), None);
        assert_eq!(transcode(b""), None);
        assert_eq!(transcode(b"{"), None);
        assert_eq!(transcode(b"\0\0\0\0"), None);
    }

    #[test]
    fn half_a_character_is_dropped_and_a_lone_surrogate_replaced() {
        assert_eq!(transcode(b"{\0}\0x").as_deref(), Some(&b"{}"[..]));
        assert_eq!(transcode(b"{\0\0\xd8").as_deref(), Some("{\u{fffd}".as_bytes()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_transcoded_or_left_alone(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(transcode(&bytes).is_none_or(|text| text.len() <= bytes.len() * 2 && str::from_utf8(&text).is_ok()));
        }

        #[test]
        fn a_text_with_its_mark_comes_back(text in "[ -~\u{e9}\u{1f600}]{0,20}", is_little in any::<bool>()) {
            let bytes: Vec<u8> = std::iter::once(0xfeff)
                .chain(text.encode_utf16())
                .flat_map(|unit| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() })
                .collect();
            let read = transcode(&bytes).expect("it has a mark");
            let read = String::from_utf8_lossy(&read).into_owned();
            prop_assert_eq!(read.trim_start_matches('\u{feff}'), text);
        }
    }
}
