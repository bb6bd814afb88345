//! Decodes blocks of fields.

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
    pub(in crate::listen::http2) fn new() -> Self {
        Self { table: Table::new(), text: Vec::new(), may_resize: true }
    }

    /// Passes each complete field to `each`, and takes it off the front of the block.
    pub(in crate::listen::http2) fn decode(
        &mut self,
        block: &mut &[u8],
        mut each: impl FnMut(Field),
    ) -> Result<(), InvalidHpack> {
        while !block.is_empty() {
            let mut rest = *block;
            match self.next(&mut rest) {
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

    /// The block is complete.
    pub(in crate::listen::http2) fn end(&mut self) {
        self.may_resize = true;
    }

    /// `None`: a new size of the table, which may come before the first field.
    fn next(&mut self, rest: &mut &[u8]) -> Result<Option<Field>, FieldError> {
        let first = rest.first().copied().ok_or(FieldError::Incomplete)?;
        let field = match first {
            0x80.. => self.table.get(integer(rest, 7)?)?.clone(),
            0x40.. => {
                let field = self.literal(rest, 6)?;
                self.table.insert(field.clone());
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
        Ok(Some(field))
    }

    fn literal(&mut self, rest: &mut &[u8], prefix: u8) -> Result<Field, FieldError> {
        let name = match integer(rest, prefix)? {
            0 => Name::parse(string(rest, &mut self.text)?),
            index => self.table.get(index)?.name.clone(),
        };
        Ok(Field::new(name, string(rest, &mut self.text)?))
    }
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

/// In bytes: most texts are shorter. Larger buffers are not kept.
const MAX_KEPT_TEXT: usize = 512;
#[cfg(test)]
mod tests;
