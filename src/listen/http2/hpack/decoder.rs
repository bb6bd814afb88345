//! Decodes blocks of fields.

use std::mem;

use super::error::InvalidHpack;
use super::field::Field;
use super::field::Name;
use super::huffman;
use super::table::Table;

/// The state of one connection.
#[derive(Debug)]
pub(in crate::listen::http2) struct HpackDecoder {
    table: Table,
    /// The last text that was decoded from Huffman code.
    text: Vec<u8>,
    /// No field of the current block was read yet.
    may_resize: bool,
    /// In bytes: literals with longer texts are skipped.
    longest: usize,
    /// What comes next of a literal that is skipped.
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
    pub(in crate::listen::http2) fn new(longest: usize) -> Self {
        let longest = longest.max(MIN_LONGEST);
        Self { table: Table::new(), text: Vec::new(), may_resize: true, longest, long: None, skipped: 0 }
    }

    /// Passes each complete field to `each`, and takes it off the front of the block. Of one that is too long, it takes off as
    /// much as there is, and [`Self::take_skipped`] tells of it.
    pub(in crate::listen::http2) fn decode(
        &mut self,
        block: &mut &[u8],
        mut each: impl FnMut(Field),
    ) -> Result<(), InvalidHpack> {
        while !block.is_empty() {
            let mut rest = *block;
            let read = match self.long {
                Some(long) => self.skip(long, &mut rest).map(|()| None),
                None => self.next(&mut rest),
            };
            match read {
                Ok(Some(field)) => each(field),
                Ok(None) => {}
                Err(FieldError::Incomplete) => break,
                Err(FieldError::Invalid) => return Err(InvalidHpack),
            }
            *block = rest;
        }
        self.text.shrink_to(MAX_KEPT_TEXT);
        Ok(())
    }

    /// The block is complete. Fails if a field that is skipped is not.
    pub(in crate::listen::http2) fn end(&mut self) -> Result<(), InvalidHpack> {
        self.may_resize = true;
        if self.long.is_some() { Err(InvalidHpack) } else { Ok(()) }
    }

    /// In bytes: how long the texts are that were skipped since this was last called, as their lengths say.
    pub(in crate::listen::http2) fn take_skipped(&mut self) -> usize {
        mem::take(&mut self.skipped)
    }

    /// `None`: a new size of the table, which may come before the first field, or the start of a field that is skipped.
    fn next(&mut self, rest: &mut &[u8]) -> Result<Option<Field>, FieldError> {
        let first = rest.first().copied().ok_or(FieldError::Incomplete)?;
        let field = match first {
            0x80.. => Some(self.table.get(integer(rest, 7)?)?.clone()),
            0x40.. => {
                let field = self.literal(rest, 6)?;
                match &field {
                    Some(field) => self.table.insert(field.clone()),
                    // It is larger than the table.
                    None => self.table.clear(),
                }
                field
            }
            0x20.. => {
                let size = integer(rest, 5)?;
                return if self.may_resize {
                    Ok(self.table.resize(size).map(|()| None)?)
                } else {
                    Err(InvalidHpack.into())
                };
            }
            // A literal that is never indexed, or not indexed here: the same to us.
            _ => self.literal(rest, 4)?,
        };
        self.may_resize = false;
        Ok(field)
    }

    /// `None`: it is too long, and skipped from here on.
    fn literal(&mut self, rest: &mut &[u8], prefix: u8) -> Result<Option<Field>, FieldError> {
        let (name, length) = match integer(rest, prefix)? {
            0 => {
                let (length, text) = coded_length(rest)?;
                if length > self.longest {
                    *rest = text;
                    self.begin_to_skip(LongLiteral::Name(length), length);
                    return Ok(None);
                }
                (Name::parse(string(rest, &mut self.text)?), length)
            }
            index => (self.table.get(index)?.name.clone(), 0),
        };
        let (value, text) = coded_length(rest)?;
        if length + value > self.longest {
            *rest = text;
            self.begin_to_skip(LongLiteral::Value(value), length + value);
            return Ok(None);
        }
        Ok(Some(Field::new(name, string(rest, &mut self.text)?)))
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

/// Decodes a string, plain or in Huffman code (RFC 7541, section 5.2).
fn string<'s, 'r: 's>(rest: &mut &'r [u8], text: &'s mut Vec<u8>) -> Result<&'s [u8], FieldError> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(rest, 7)?;
    let (string, behind) = rest.split_at_checked(length).ok_or(FieldError::Incomplete)?;
    *rest = behind;
    if !is_coded {
        return Ok(string);
    }
    text.clear();
    huffman::decode(string, text)?;
    Ok(text)
}

fn take(rest: &mut &[u8]) -> Result<u8, FieldError> {
    let (first, behind) = rest.split_first().ok_or(FieldError::Incomplete)?;
    *rest = behind;
    Ok(*first)
}

/// Of an integer behind its first byte. No length needs as many.
const MAX_BITS: usize = 28;

/// In bytes: no longer literal fits into the table, even where each byte of it has a code of 30 bits.
const MIN_LONGEST: usize = 16 * 1024;

/// In bytes: most texts are shorter. Larger buffers are not kept.
const MAX_KEPT_TEXT: usize = 512;
#[cfg(test)]
mod tests;
