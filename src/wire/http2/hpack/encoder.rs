//! Encodes fields as HPACK: the names of the static table, and a dynamic table of values that come again.

use std::collections::VecDeque;
use std::mem;
use std::sync::LazyLock;

use http::StatusCode;

use crate::wire::head::{Field, KnownName, Name, NameSet};
use crate::wire::http2::hpack::table::STATIC_TEXTS;
use crate::wire::http2::hpack::{DEFAULT_TABLE_SIZE, OVERHEAD};
use crate::words::digits::push_decimal;

/// What a literal does to the tables: a prefix, and the bits above it (RFC 7541, section 6.2).
type LiteralKind = (u8, u8);

/// Both sides put it into their table.
const INDEXED: LiteralKind = (6, 0x40);

/// No table keeps it.
const NOT_INDEXED: LiteralKind = (4, 0);

/// Nor may that of any proxy on the way.
const NEVER_INDEXED: LiteralKind = (4, 0x10);

/// Encodes the blocks of one connection.
#[derive(Debug)]
pub struct HpackEncoder {
    /// `None`: no value is kept.
    table: Option<Box<SentTable>>,
    /// The next block tells that there is no table any more.
    tells_end: bool,
}

/// Uses a table of the size that both sides have by default. Where the other side has a larger one, it keeps more than it is
/// asked for.
impl Default for HpackEncoder {
    fn default() -> Self {
        Self { table: Some(Box::default()), tells_end: false }
    }
}

impl HpackEncoder {
    /// From the next block on there is no table.
    pub fn forgo_table(&mut self) {
        self.tells_end |= self.table.take().is_some();
    }

    /// Appends a block. `None`: trailers have no status.
    pub fn encode<'f>(
        &mut self,
        status: Option<StatusCode>,
        fields: impl Iterator<Item = Field<'f>>,
        block: &mut Vec<u8>,
    ) {
        if mem::take(&mut self.tells_end) {
            integer(0, 5, 0x20, block);
        }
        if let Some(status) = status {
            encode_status(status, block);
        }
        for Field { name, value } in fields {
            match name {
                Name::Known(name) => self.encode_known(name, value, block),
                Name::Other(name) => literal(name.as_bytes(), value, block),
            }
        }
    }

    fn encode_known(&mut self, name: KnownName, value: &[u8], block: &mut Vec<u8>) {
        let in_static_table = usize::from(STATIC_NAMES[name.number()]);
        let kind = if SECRET.has(name) { NEVER_INDEXED } else { NOT_INDEXED };
        let Some(table) = self.table.as_mut().filter(|_| kind == NOT_INDEXED) else {
            return literal_of(kind, in_static_table, name, value, block);
        };
        let named = if in_static_table > 0 { in_static_table } else { table.newest(name).unwrap_or(0) };
        // The first one is kept for its name, if that has no index yet.
        if VOLATILE.has(name) && named > 0 {
            return literal_of(kind, named, name, value, block);
        }
        if let Some(index) = table.find(name, value) {
            return integer(index, 7, 0x80, block);
        }
        let kind = if table.insert(name, value) { INDEXED } else { kind };
        literal_of(kind, named, name, value, block);
    }
}

/// Encodes a field that no table keeps.
pub fn literal(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    block.push(0);
    string(name, block);
    string(value, block);
}

/// `index`: the field in a table that has the name; zero: none has.
fn literal_of((prefix, kind): LiteralKind, index: usize, name: KnownName, value: &[u8], block: &mut Vec<u8>) {
    integer(index, prefix, kind, block);
    if index == 0 {
        string(name.as_str().as_bytes(), block);
    }
    string(value, block);
}

fn encode_status(status: StatusCode, block: &mut Vec<u8>) {
    let place = STATUSES.iter().position(|known| *known == status.as_u16());
    if let Some(place) = place {
        return integer(FIRST_STATUS + place, 7, 0x80, block);
    }
    integer(FIRST_STATUS, NOT_INDEXED.0, NOT_INDEXED.1, block);
    integer(3, 7, 0, block);
    push_decimal(block, status.as_u16().into());
}

/// The static table has these statuses, from this index on.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

const FIRST_STATUS: usize = 8;

/// Encodes a string without Huffman code (RFC 7541, section 5.2).
fn string(text: &[u8], block: &mut Vec<u8>) {
    integer(text.len(), 7, 0, block);
    block.extend_from_slice(text);
}

/// Encodes an integer (RFC 7541, section 5.1). `kind`: the bits above its prefix.
fn integer(mut number: usize, prefix: u8, kind: u8, block: &mut Vec<u8>) {
    let low = |number: usize| u8::try_from(number & 0x7f).unwrap_or_default();
    let mask = u8::MAX >> (8 - prefix);
    if number < usize::from(mask) {
        return block.push(kind | low(number));
    }
    block.push(kind | mask);
    number -= usize::from(mask);
    while number > 0x7f {
        block.push(low(number) | 0x80);
        number >>= 7;
    }
    block.push(low(number));
}

// The table of what was sent.

/// Values that no table keeps: how much of them is guessed could be seen from the length of answers.
const SECRET: NameSet = NameSet::of(&[
    KnownName::AUTHORIZATION,
    KnownName::PROXY_AUTHENTICATION_INFO,
    KnownName::SET_COOKIE,
    KnownName::X_CSRF_TOKEN,
]);

/// The values of these seldom come again.
const VOLATILE: NameSet = NameSet::of(&[
    KnownName::AGE,
    KnownName::CONTENT_LENGTH,
    KnownName::CONTENT_LOCATION,
    KnownName::CONTENT_RANGE,
    KnownName::ETAG,
    KnownName::EXPIRES,
    KnownName::GRPC_MESSAGE,
    KnownName::LAST_MODIFIED,
    KnownName::LOCATION,
    KnownName::RATELIMIT,
    KnownName::RETRY_AFTER,
    KnownName::SEC_WEBSOCKET_ACCEPT,
    KnownName::SERVER_TIMING,
    KnownName::X_RATELIMIT_REMAINING,
    KnownName::X_RATELIMIT_RESET,
    KnownName::X_REQUEST_ID,
]);

/// So many values of a name are compared: most fields have one or two.
const MOST_COMPARED: usize = 4;

/// The index of the newest field.
const FIRST_INDEX: usize = STATIC_TEXTS.len() + 1;

/// The dynamic table as the other side has it.
#[derive(Debug)]
struct SentTable {
    /// Newest first.
    entries: VecDeque<SentField>,
    size: usize,
    /// How many fields were ever inserted: the newest has this number.
    inserted: u64,
    /// By known name: the number of its newest field. Zero: it never had one.
    newest: [u64; KnownName::COUNT],
}

#[derive(Debug)]
struct SentField {
    value: Box<[u8]>,
    size: usize,
    /// The number of the field before with the same name; zero: there is none.
    previous: u64,
}

impl Default for SentTable {
    fn default() -> Self {
        Self { entries: VecDeque::new(), size: 0, inserted: 0, newest: [0; KnownName::COUNT] }
    }
}

impl SentTable {
    /// The place of a field. `None`: it was evicted, or never was there.
    fn place(&self, number: u64) -> Option<usize> {
        let place = usize::try_from(self.inserted - number).ok()?;
        (place < self.entries.len()).then_some(place)
    }

    /// The index of a field.
    fn find(&self, name: KnownName, value: &[u8]) -> Option<usize> {
        let mut number = self.newest[name.number()];
        for _ in 0..MOST_COMPARED {
            let place = self.place(number)?;
            let field = &self.entries[place];
            if *field.value == *value {
                return Some(FIRST_INDEX + place);
            }
            number = field.previous;
        }
        None
    }

    /// The index of the newest field with this name.
    fn newest(&self, name: KnownName) -> Option<usize> {
        Some(FIRST_INDEX + self.place(self.newest[name.number()])?)
    }

    /// `false`: the field is larger than the table, and is not put there.
    fn insert(&mut self, name: KnownName, value: &[u8]) -> bool {
        let size = name.as_str().len() + value.len() + OVERHEAD;
        if size > DEFAULT_TABLE_SIZE {
            return false;
        }
        while self.size + size > DEFAULT_TABLE_SIZE
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size;
        }
        let newest = &mut self.newest[name.number()];
        self.entries.push_front(SentField { value: value.into(), size, previous: *newest });
        self.size += size;
        self.inserted += 1;
        *newest = self.inserted;
        true
    }
}

/// By known name: its first index in the static table. Zero: it is not there.
static STATIC_NAMES: LazyLock<[u8; KnownName::COUNT]> = LazyLock::new(|| {
    let mut names = [0; KnownName::COUNT];
    for (index, (name, _)) in (1..).zip(STATIC_TEXTS) {
        if let Some(name) = KnownName::of(name.as_bytes())
            && names[name.number()] == 0
        {
            names[name.number()] = index;
        }
    }
    names
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::http2::hpack::{HpackDecoder, Name as DecodedName};

    type Line = (String, Vec<u8>);

    fn encode(encoder: &mut HpackEncoder, status: u16, lines: &[(&str, &[u8])]) -> Vec<u8> {
        let mut block = Vec::new();
        let fields = lines.iter().map(|(name, value)| Field { name: Name::of(name), value });
        encoder.encode(StatusCode::from_u16(status).ok(), fields, &mut block);
        block
    }

    fn decode(decoder: &mut HpackDecoder, mut block: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        decoder
            .decode(&mut block, |field| {
                let name = match field.name {
                    DecodedName::Field(name) => name.as_str().to_owned(),
                    DecodedName::Status => ":status".to_owned(),
                    other => panic!("{other:?}"),
                };
                lines.push((name, field.value.expect("a valid value").to_vec()));
            })
            .expect("HPACK");
        decoder.end().expect("a whole block");
        assert_eq!(block, b"");
        lines
    }

    #[test]
    fn a_value_that_comes_again_is_an_index() {
        let mut encoder = HpackEncoder::default();
        let lines: [(&str, &[u8]); 4] =
            [("server", b"a"), ("content-length", b"12"), ("x-own", b"b"), ("x-frame-options", b"DENY")];
        let first = b"\x88\x76\x01a\x0f\x0d\x0212\x00\x05x-own\x01b\x40\x0fx-frame-options\x04DENY";
        assert_eq!(encode(&mut encoder, 200, &lines), first);
        assert_eq!(encode(&mut encoder, 200, &lines), b"\x88\xbf\x0f\x0d\x0212\x00\x05x-own\x01b\xbe");
        // The name is where it was sent last.
        let other: [(&str, &[u8]); 1] = [("x-frame-options", b"SAMEORIGIN")];
        assert_eq!(encode(&mut encoder, 429, &other), b"\x08\x03429\x7e\x0aSAMEORIGIN");
        assert_eq!(encode(&mut encoder, 404, &lines[3..]), b"\x8d\xbf");
    }

    #[test]
    fn a_value_that_seldom_comes_again_is_kept_once_for_its_name() {
        let mut encoder = HpackEncoder::default();
        assert_eq!(encode(&mut encoder, 200, &[("x-request-id", b"a")]), b"\x88\x40\x0cx-request-id\x01a");
        assert_eq!(encode(&mut encoder, 200, &[("x-request-id", b"b")]), b"\x88\x0f\x2f\x01b");
        assert_eq!(encode(&mut encoder, 200, &[("x-request-id", b"a")]), b"\x88\x0f\x2f\x01a");
        // A secret is not, and its name stands there each time.
        for _ in 0..2 {
            assert_eq!(encode(&mut encoder, 200, &[("x-csrf-token", b"s")]), b"\x88\x10\x0cx-csrf-token\x01s");
        }
    }

    #[test]
    fn who_keeps_no_table_gets_literals() {
        let mut encoder = HpackEncoder::default();
        let lines: [(&str, &[u8]); 2] = [("server", b"a"), ("set-cookie", b"b")];
        assert_eq!(encode(&mut encoder, 200, &lines), b"\x88\x76\x01a\x1f\x28\x01b");
        encoder.forgo_table();
        encoder.forgo_table();
        assert_eq!(encode(&mut encoder, 200, &lines), b"\x20\x88\x0f\x27\x01a\x1f\x28\x01b");
        assert_eq!(encode(&mut encoder, 200, &lines[..1]), b"\x88\x0f\x27\x01a");
    }

    #[test]
    fn the_statuses_are_those_of_the_static_table() {
        for status in [100, 103, 200, 204, 206, 302, 304, 400, 404, 429, 500, 503] {
            let block = encode(&mut HpackEncoder::default(), status, &[]);
            let expected = vec![(":status".to_owned(), status.to_string().into_bytes())];
            assert_eq!(decode(&mut HpackDecoder::new(0), &block), expected);
        }
    }

    proptest! {
        /// Long values push out others; few different ones come again.
        #[test]
        fn what_was_encoded_is_decoded(
            blocks in prop::collection::vec(
                (
                    prop::sample::select(vec![103_u16, 200, 304, 429]),
                    prop::collection::vec(
                        (
                            prop::sample::select(vec!["server", "etag", "set-cookie", "vary", "x-own", "x-powered-by", "x-request-id"]),
                            prop::sample::select(vec![0_usize, 1, 2, 3, 130, 1500, 5000]),
                        ),
                        0..8,
                    ),
                ),
                1..30,
            ),
            forgone_at in 0..60_usize,
        ) {
            let (mut encoder, mut decoder) = (HpackEncoder::default(), HpackDecoder::new(0));
            for (number, (status, fields)) in blocks.into_iter().enumerate() {
                if number == forgone_at {
                    encoder.forgo_table();
                }
                let values: Vec<(&str, Vec<u8>)> = fields.iter().map(|(name, length)| (*name, vec![b'v'; *length])).collect();
                let lines: Vec<(&str, &[u8])> = values.iter().map(|(name, value)| (*name, &value[..])).collect();
                let block = encode(&mut encoder, status, &lines);
                let status = (":status".to_owned(), status.to_string().into_bytes());
                let fields = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
                prop_assert_eq!(decode(&mut decoder, &block), std::iter::once(status).chain(fields).collect::<Vec<_>>());
            }
        }
    }
}
