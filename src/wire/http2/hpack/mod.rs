//! Decodes fields from HPACK (RFC 7541), within the bounds of the block and of the dynamic table.

pub mod encoder;
mod huffman;
mod table;

use std::mem;
use std::ops::Range;

use crate::wire::head;
pub use crate::wire::http2::hpack::table::DEFAULT_TABLE_SIZE;
use crate::wire::http2::hpack::table::{Entry, Table};

/// The largest shift of an integer after its first byte. No length needs as many bits.
const MAX_BITS: usize = 28;

/// In bytes: no longer literal fits into the table, even where each byte of it has a code of 30 bits.
const MIN_LONGEST: usize = 16 * 1024;

/// In bytes: most texts are shorter. Larger buffers are not kept.
const MAX_KEPT_TEXT: usize = 512;

/// The state of one connection.
#[derive(Debug)]
pub struct HpackDecoder {
    table: Table,
    /// The texts of the last literal that were in Huffman code.
    text: Vec<u8>,
    /// No field of the current block was read yet.
    may_resize: bool,
    /// In bytes: literals with longer texts are skipped.
    longest: usize,
    /// The state of a long literal that is being skipped.
    long: Option<LongLiteral>,
    /// In bytes: the texts that were skipped and not told of yet.
    skipped: usize,
}

/// A literal that is too long to be kept. What is left of it may come in later frames.
#[derive(Clone, Copy, Debug)]
enum LongLiteral {
    /// So many bytes of its name.
    Name(usize),
    ValueLength,
    /// So many bytes of its value.
    Value(usize),
}

/// Why a field could not be decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FieldError {
    /// The field goes on behind the end of the block.
    Incomplete,
    Invalid,
}

impl From<InvalidHpack> for FieldError {
    fn from(_: InvalidHpack) -> Self {
        Self::Invalid
    }
}

impl HpackDecoder {
    /// Literals whose texts have more bytes than this are skipped, and the table is as if they had been read. For that it must be
    /// at least [`MIN_LONGEST`], and counts as that where it is less.
    pub fn new(longest: usize) -> Self {
        let longest = longest.max(MIN_LONGEST);
        Self { table: Table::new(), text: Vec::new(), may_resize: true, longest, long: None, skipped: 0 }
    }

    /// Passes each complete field to `each`, and takes it off the front of the block. A field that is too long is
    /// skipped as far as it has arrived, and [`Self::take_skipped`] returns its size.
    pub fn decode(&mut self, block: &mut &[u8], mut each: impl FnMut(Field<'_>)) -> Result<(), InvalidHpack> {
        while !block.is_empty() {
            let mut rest = *block;
            let read = match self.long {
                Some(long) => self.skip(long, &mut rest),
                None => self.next(&mut rest, &mut each),
            };
            match read {
                Ok(()) => *block = rest,
                Err(FieldError::Incomplete) => break,
                Err(FieldError::Invalid) => return Err(InvalidHpack),
            }
        }
        self.text.shrink_to(MAX_KEPT_TEXT);
        Ok(())
    }

    /// Decodes a block that comes in several parts. `rest` keeps the beginning of a field whose end is in the next part. Where the
    /// part is the last one, the block must be complete.
    pub fn decode_part(
        &mut self,
        rest: &mut Vec<u8>,
        part: &[u8],
        is_last: bool,
        each: impl FnMut(Field<'_>),
    ) -> Result<(), InvalidHpack> {
        let joined;
        let mut block = if rest.is_empty() {
            part
        } else {
            joined = [&mem::take(rest), part].concat();
            &joined[..]
        };
        self.decode(&mut block, each)?;
        if is_last {
            self.end()?;
            return if block.is_empty() { Ok(()) } else { Err(InvalidHpack) };
        }
        *rest = block.to_vec();
        Ok(())
    }

    /// The block is complete. Fails if a field that is skipped is not.
    pub fn end(&mut self) -> Result<(), InvalidHpack> {
        self.may_resize = true;
        if self.long.is_some() { Err(InvalidHpack) } else { Ok(()) }
    }

    /// In bytes: how long the texts are that were skipped since this was last called, as their lengths say.
    pub fn take_skipped(&mut self) -> usize {
        mem::take(&mut self.skipped)
    }

    /// Reads a field, a new size of the table, which may come before the first field, or the start of a field that is skipped.
    fn next(&mut self, rest: &mut &[u8], each: &mut impl FnMut(Field<'_>)) -> Result<(), FieldError> {
        let first = rest.first().copied().ok_or(FieldError::Incomplete)?;
        match first {
            0x80.. => each(self.table.get(integer(rest, 7)?)?),
            0x40.. => match self.literal(rest, 6)? {
                Some(literal) => {
                    // Its name may stand in an entry that makes room for it.
                    let entry = Entry::of(literal.field(&self.table, &self.text)?);
                    each(entry.field());
                    self.table.insert(entry);
                }
                // It is larger than the table.
                None => self.table.clear(),
            },
            0x20.. => {
                let size = integer(rest, 5)?;
                return if self.may_resize { Ok(self.table.resize(size)?) } else { Err(InvalidHpack.into()) };
            }
            // A literal that is never indexed, or not indexed here: the same to us.
            _ => {
                if let Some(literal) = self.literal(rest, 4)? {
                    each(literal.field(&self.table, &self.text)?);
                }
            }
        }
        self.may_resize = false;
        Ok(())
    }

    /// `None`: it is too long, and skipped from here on.
    fn literal<'r>(&mut self, rest: &mut &'r [u8], prefix: u8) -> Result<Option<Literal<'r>>, FieldError> {
        self.text.clear();
        let (name, length) = match integer(rest, prefix)? {
            0 => {
                let (length, behind) = coded_length(rest)?;
                if length > self.longest {
                    *rest = behind;
                    self.begin_to_skip(LongLiteral::Name(length), length);
                    return Ok(None);
                }
                (LiteralName::Written(string(rest, &mut self.text)?), length)
            }
            index => {
                self.table.get(index)?;
                (LiteralName::Indexed(index), 0)
            }
        };
        let (value, behind) = coded_length(rest)?;
        if length + value > self.longest {
            *rest = behind;
            self.begin_to_skip(LongLiteral::Value(value), length + value);
            return Ok(None);
        }
        Ok(Some(Literal { name, value: string(rest, &mut self.text)? }))
    }

    fn begin_to_skip(&mut self, long: LongLiteral, length: usize) {
        self.skipped = self.skipped.saturating_add(length);
        self.long = Some(long);
    }

    fn skip(&mut self, long: LongLiteral, rest: &mut &[u8]) -> Result<(), FieldError> {
        let skip = |left: usize, rest: &mut &[u8]| {
            let gone = left.min(rest.len());
            *rest = &rest[gone..];
            left - gone
        };
        self.long = match long {
            LongLiteral::Name(left) => match skip(left, rest) {
                0 => Some(LongLiteral::ValueLength),
                left => Some(LongLiteral::Name(left)),
            },
            LongLiteral::ValueLength => {
                let (length, text) = coded_length(rest)?;
                *rest = text;
                self.skipped = self.skipped.saturating_add(length);
                (length > 0).then_some(LongLiteral::Value(length))
            }
            LongLiteral::Value(left) => match skip(left, rest) {
                0 => None,
                left => Some(LongLiteral::Value(left)),
            },
        };
        Ok(())
    }
}

/// In bytes: the length of a string as it is coded, and what stands behind that length.
fn coded_length<'r>(rest: &&'r [u8]) -> Result<(usize, &'r [u8]), FieldError> {
    let mut behind = *rest;
    Ok((integer(&mut behind, 7)?, behind))
}

/// Decodes an integer (RFC 7541, section 5.1).
fn integer(rest: &mut &[u8], prefix: u8) -> Result<usize, FieldError> {
    let mask = u8::MAX >> (8 - prefix);
    let first = take(rest)? & mask;
    let mut number = usize::from(first);
    if first < mask {
        return Ok(number);
    }
    for shift in (0..MAX_BITS).step_by(7) {
        let byte = take(rest)?;
        number += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(FieldError::Invalid)
}

/// Decodes a string, plain or in Huffman code (RFC 7541, section 5.2). What was in Huffman code is appended to `text`.
fn string<'r>(rest: &mut &'r [u8], text: &mut Vec<u8>) -> Result<Text<'r>, FieldError> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(rest, 7)?;
    let (string, behind) = rest.split_at_checked(length).ok_or(FieldError::Incomplete)?;
    *rest = behind;
    if !is_coded {
        return Ok(Text::Plain(string));
    }
    let start = text.len();
    huffman::decode(string, text)?;
    Ok(Text::Decoded(start..text.len()))
}

fn take(rest: &mut &[u8]) -> Result<u8, FieldError> {
    let (first, behind) = rest.split_first().ok_or(FieldError::Incomplete)?;
    *rest = behind;
    Ok(*first)
}

/// A string of a literal: a part of the block, or of what was decoded from Huffman code.
enum Text<'r> {
    Plain(&'r [u8]),
    Decoded(Range<usize>),
}

impl<'r> Text<'r> {
    fn of(&self, decoded: &'r [u8]) -> &'r [u8] {
        match self {
            Self::Plain(text) => text,
            Self::Decoded(range) => &decoded[range.clone()],
        }
    }
}

/// A literal that was read to its end.
struct Literal<'r> {
    name: LiteralName<'r>,
    value: Text<'r>,
}

enum LiteralName<'r> {
    /// The name of a field in the table.
    Indexed(usize),
    Written(Text<'r>),
}

impl<'r> Literal<'r> {
    fn field(&self, table: &'r Table, decoded: &'r [u8]) -> Result<Field<'r>, InvalidHpack> {
        let name = match &self.name {
            LiteralName::Indexed(index) => table.get(*index)?.name,
            LiteralName::Written(name) => Name::parse(name.of(decoded)),
        };
        Ok(Field::new(name, self.value.of(decoded)))
    }
}

// One decoded field.

/// In bytes: what each field counts beside its text.
pub const OVERHEAD: usize = 32;

/// A name and a value: they stand in the block, in the table, or in the memory of the decoder. Invalid ones are marked, so that
/// the dynamic table can hold them like the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Field<'f> {
    pub name: Name<'f>,
    /// `None`: the value has bytes that no value may have.
    pub value: Option<&'f [u8]>,
    /// In bytes, as RFC 7541 (section 4.1) counts it.
    pub size: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Name<'f> {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
    Status,
    /// A name that no head may have: an unknown pseudo-header, capitals, bytes that HTTP/1.1 cannot carry. With its
    /// length.
    Invalid(usize),
    Field(head::Name<'f>),
}

impl<'f> Field<'f> {
    fn new(name: Name<'f>, value: &'f [u8]) -> Self {
        let size = name.length() + value.len() + OVERHEAD;
        // It may neither begin nor end with a blank (RFC 9113, section 8.2.1).
        let is_valid = !matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']) && head::is_value(value);
        Self { name, value: is_valid.then_some(value), size }
    }
}

impl<'f> Name<'f> {
    fn parse(name: &'f [u8]) -> Self {
        match name {
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b":path" => Self::Path,
            b":protocol" => Self::Protocol,
            b":status" => Self::Status,
            name => head::Name::parse(name).map_or(Self::Invalid(name.len()), Self::Field),
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::Method => ":method".len(),
            Self::Scheme => ":scheme".len(),
            Self::Authority => ":authority".len(),
            Self::Path => ":path".len(),
            Self::Protocol => ":protocol".len(),
            Self::Status => ":status".len(),
            Self::Invalid(length) => *length,
            Self::Field(name) => name.as_str().len(),
        }
    }
}

// Why a block of fields cannot be decoded.

/// The block is not HPACK. The blocks behind it on the same connection could not be decoded either.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the fields cannot be decoded")]
pub struct InvalidHpack;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz {
    //! The fuzz target of this parser.

    use super::{Entry, HpackDecoder, InvalidHpack};
    use crate::words::corpus;

    /// Blocks of fields are read the same however they are split into frames, and every field costs the client at least
    /// a byte.
    pub fn check(bytes: &[u8]) {
        let fields = corpus::same_for_every_split(bytes, |reads| {
            let mut decoder = HpackDecoder::new(0);
            let (mut fields, mut pending) = (Vec::new(), Vec::new());
            for read in reads {
                pending.extend_from_slice(read);
                let mut rest = &pending[..];
                decoder.decode(&mut rest, |field| fields.push(Entry::of(field)))?;
                pending = rest.to_vec();
            }
            Ok::<_, InvalidHpack>((fields, pending))
        });
        if let Ok((fields, _)) = fields {
            assert!(fields.len() <= bytes.len(), "{} fields of {} bytes", fields.len(), bytes.len());
        }
    }

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("hpack", check);
    }
}

#[cfg(test)]
mod tests;
