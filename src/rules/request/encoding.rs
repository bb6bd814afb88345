//! Decodes compressed bodies, up to a bound.

use std::borrow::Cow;
use std::io::Read;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use smallvec::SmallVec;

use crate::wire::head::{Fields, KnownName};

const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// More layers than this are a decompression bomb.
const MAX_CODINGS: usize = 3;

/// The largest window that RFC 9659 allows.
const MAX_ZSTD_WINDOW: u64 = 8 * 1024 * 1024;

/// Each block costs the building of its tables; honest blocks hold up to 128 KiB.
const MAX_ZSTD_BLOCKS: usize = 256;

const MAX_ZSTD_FRAMES: usize = 16;

/// An empty last block with room for a checksum: the decoder hands out all data of a frame only when the frame ends.
const END_OF_FRAME: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

/// A body without its encodings.
#[derive(Debug)]
pub(crate) struct DecodedBody<'b> {
    /// Several where the body can be decoded in several ways; none where it cannot be decoded.
    pub(crate) bodies: Vec<Cow<'b, [u8]>>,
    /// Whether every encoding was known and the body was decoded to its end.
    pub(crate) whole: bool,
}

/// Decodes what `Content-Encoding` lists, the last encoding first, to at most `bound` bytes each.
///
/// A body without that header is taken as it is; if it begins like gzip or zstd, it is decoded as well.
pub(crate) fn decode<'b>(fields: &Fields, body: &'b [u8], bound: usize) -> DecodedBody<'b> {
    let mut decoded = ContentCodings::of(fields).decode(body, bound);
    if let [Cow::Borrowed(_)] = &decoded.bodies[..]
        && let Some(coding) = ContentCoding::of(body)
    {
        let found = coding.decode(body, bound);
        decoded.whole = found.whole;
        decoded.bodies.extend(found.bodies);
    }
    decoded
}

/// Whether `Content-Encoding` is as clients write it: none, or one encoding that is known here.
pub(crate) fn is_strict(fields: &Fields) -> bool {
    let mut lines = fields.get_all(KnownName::CONTENT_ENCODING);
    lines.next().is_none_or(|line| matches!(line, b"gzip" | b"deflate" | b"br" | b"zstd" | b"identity"))
        && lines.next().is_none()
}

/// The encodings that all `Content-Encoding` lines list; `None` stands for an unknown one.
#[derive(Clone, Debug)]
pub(crate) struct ContentCodings(SmallVec<[Option<ContentCoding>; 1]>);

impl ContentCodings {
    pub(crate) fn of(fields: &Fields) -> Self {
        let lines = fields.get_all(KnownName::CONTENT_ENCODING);
        let codings = lines
            .flat_map(|line| line.split(|byte| *byte == b','))
            .map(|coding| coding.trim_ascii().to_ascii_lowercase())
            .filter(|coding| !matches!(&coding[..], b"" | b"identity"))
            .map(|coding| ContentCoding::named(&coding));
        Self(codings.collect())
    }

    /// Whether the body is not encoded.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Decodes the body, the last encoding first, to at most `bound` bytes each. Without encodings the body stays as it
    /// is.
    pub(crate) fn decode<'b>(&self, body: &'b [u8], bound: usize) -> DecodedBody<'b> {
        let mut decoded = DecodedBody { bodies: vec![Cow::Borrowed(body)], whole: self.0.len() <= MAX_CODINGS };
        for coding in self.0.iter().rev().take(MAX_CODINGS) {
            let Some(coding) = coding else {
                return DecodedBody { bodies: Vec::new(), whole: false };
            };
            let mut next = Vec::new();
            for body in &decoded.bodies {
                let found = coding.decode(body, bound);
                decoded.whole &= found.whole;
                next.extend(found.bodies.into_iter().map(|body| Cow::Owned(body.into_owned())));
            }
            decoded.bodies = next;
        }
        decoded
    }
}

/// Whether the gateway can decode this encoding.
pub(crate) fn is_known(coding: &[u8]) -> bool {
    coding.eq_ignore_ascii_case(b"identity") || ContentCoding::named(&coding.to_ascii_lowercase()).is_some()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ContentCoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl ContentCoding {
    /// By its name in lower case.
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"gzip" | b"x-gzip" => Some(Self::Gzip),
            b"deflate" => Some(Self::Deflate),
            b"br" => Some(Self::Brotli),
            b"zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The encoding that the first bytes of a body announce.
    fn of(body: &[u8]) -> Option<Self> {
        match body {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            _ if body.starts_with(ZSTD_MAGIC) => Some(Self::Zstd),
            _ => None,
        }
    }

    fn decode(self, body: &[u8], bound: usize) -> DecodedBody<'static> {
        match self {
            Self::Gzip => DecodedBody::read(MultiGzDecoder::new(body), bound),
            Self::Brotli => brotli(body, bound),
            Self::Zstd => zstd(body, bound),
            Self::Deflate => {
                // With the zlib header as the standard says, or without as some clients send it; applications accept
                // both.
                let wrapped = DecodedBody::read(ZlibDecoder::new(body), bound);
                let bare = DecodedBody::read(DeflateDecoder::new(body), bound);
                let whole = wrapped.whole || bare.whole;
                DecodedBody { bodies: wrapped.bodies.into_iter().chain(bare.bodies).collect(), whole }
            }
        }
    }
}

impl DecodedBody<'static> {
    fn new(mut body: Vec<u8>, whole: bool, bound: usize) -> Self {
        let whole = whole && body.len() <= bound;
        body.truncate(bound);
        // The vector grew by doubling, and is kept while the request lasts.
        body.shrink_to_fit();
        let bodies = if body.is_empty() && !whole { Vec::new() } else { vec![Cow::Owned(body)] };
        Self { bodies, whole }
    }

    /// Reads from a decoder until it fails, ends, or exceeds the bound.
    fn read(decoder: impl Read, bound: usize) -> Self {
        let mut body = Vec::new();
        let ended = decoder.take(beyond(bound)).read_to_end(&mut body).is_ok();
        Self::new(body, ended, bound)
    }
}

/// One byte beyond the bound shows that the body is longer.
fn beyond(bound: usize) -> u64 {
    u64::try_from(bound).unwrap_or(u64::MAX).saturating_add(1)
}

fn brotli(body: &[u8], bound: usize) -> DecodedBody<'static> {
    // Strict: a stream with a large window may ask for a gigabyte.
    let mut state =
        BrotliState::new_strict(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
    let (mut available_in, mut read, mut total) = (body.len(), 0, 0);
    let mut plain = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let (mut available_out, mut written) = (chunk.len(), 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut read,
            body,
            &mut available_out,
            &mut written,
            &mut chunk,
            &mut total,
            &mut state,
        );
        plain.extend_from_slice(&chunk[..written]);
        match result {
            BrotliResult::NeedsMoreOutput if plain.len() <= bound => {}
            BrotliResult::ResultSuccess => return DecodedBody::new(plain, available_in == 0, bound),
            _ => return DecodedBody::new(plain, false, bound),
        }
    }
}

fn zstd(body: &[u8], bound: usize) -> DecodedBody<'static> {
    let mut rest = body;
    let mut plain = Vec::new();
    let mut whole = true;
    let mut frames = 0;
    while whole && !rest.is_empty() && plain.len() <= bound {
        if let Some(length) = skippable_frame(rest) {
            whole = length <= rest.len();
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        frames += 1;
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_ZSTD_WINDOW);
        if frames > MAX_ZSTD_FRAMES || decoder.init(&mut rest).is_err() {
            whole = false;
            break;
        }
        let (mut blocks, others) = rest.split_at(length_of_blocks(rest));
        let enough = BlockDecodingStrategy::UptoBytes(bound.saturating_add(1));
        whole = decoder.decode_blocks(&mut blocks, enough).is_ok() && decoder.is_finished();
        if !whole && decoder.decode_blocks(END_OF_FRAME, BlockDecodingStrategy::UptoBlocks(1)).is_err() {
            break;
        }
        plain.extend(decoder.collect().unwrap_or_default());
        rest = &rest[rest.len() - others.len() - blocks.len()..];
    }
    DecodedBody::new(plain, whole, bound)
}

/// The length of the skippable frame at the start of `bytes`, if there is one.
fn skippable_frame(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] => {
            usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok()?.checked_add(8)
        }
        _ => None,
    }
}

/// The length of the blocks of a frame and of the checksum behind them. It stops at the number of blocks that honest
/// clients send.
fn length_of_blocks(bytes: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..MAX_ZSTD_BLOCKS {
        let Some([low, middle, high]) = bytes.get(at..at + 3) else { return bytes.len() };
        let size = usize::from(*low >> 3) | (usize::from(*middle) << 5) | (usize::from(*high) << 13);
        let repeats_one_byte = (low >> 1) & 3 == 1;
        at += 3 + if repeats_one_byte { 1 } else { size };
        if low & 1 == 1 {
            return bytes.len();
        }
    }
    at.min(bytes.len())
}

// Transcodes JSON and XML from UTF-16 and UTF-32, which some libraries recognise by the positions of NULs.

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
mod utf16_tests {
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

#[cfg(test)]
mod tests;
