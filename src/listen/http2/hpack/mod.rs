//! HPACK (RFC 7541), read: a client's fields out of their compression. Written to the letter, and bounded by the block
//! that is read and the table that both sides have.

mod field;
mod huffman;
mod table;

pub(super) use self::field::Field;
pub(super) use self::field::Name;

use self::table::Table;

/// What a client's connection knows of its fields.
#[derive(Debug)]
pub(super) struct Decoder {
    table: Table,
    /// What came in Huffman's code.
    text: Vec<u8>,
    /// No field of the block under way was read.
    may_resize: bool,
}

/// A block that is none. What follows on its connection could not be read either.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the fields cannot be unpacked")]
pub(super) struct Undecodable;

/// Why no field could be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Failed {
    /// More of it is to come, or should have.
    Short,
    Undecodable,
}

impl From<Undecodable> for Failed {
    fn from(_: Undecodable) -> Self {
        Self::Undecodable
    }
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { table: Table::new(), text: Vec::new(), may_resize: true }
    }

    /// Hands over each field of which all is here, and takes it off the front of the block.
    pub(super) fn decode(&mut self, block: &mut &[u8], mut each: impl FnMut(Field)) -> Result<(), Undecodable> {
        while !block.is_empty() {
            let mut rest = *block;
            match self.next(&mut rest) {
                Ok(Some(field)) => each(field),
                Ok(None) => {}
                Err(Failed::Short) => break,
                Err(Failed::Undecodable) => return Err(Undecodable),
            }
            *block = rest;
        }
        self.text.shrink_to(KEPT);
        Ok(())
    }

    /// A block was read to its end.
    pub(super) fn end(&mut self) {
        self.may_resize = true;
    }

    /// `None`: the size of the table, which may change before the first field.
    fn next(&mut self, rest: &mut &[u8]) -> Result<Option<Field>, Failed> {
        let first = rest.first().copied().ok_or(Failed::Short)?;
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
                    Err(Undecodable.into())
                };
            }
            // Never to be kept, or not now: the same to us.
            _ => self.literal(rest, 4)?,
        };
        self.may_resize = false;
        Ok(Some(field))
    }

    fn literal(&mut self, rest: &mut &[u8], prefix: u8) -> Result<Field, Failed> {
        let name = match integer(rest, prefix)? {
            0 => Name::read(string(rest, &mut self.text)?),
            index => self.table.get(index)?.name.clone(),
        };
        Ok(Field::new(name, string(rest, &mut self.text)?))
    }
}

/// A number that begins in the last bits of a byte.
fn integer(rest: &mut &[u8], prefix: u8) -> Result<usize, Failed> {
    let mask = u8::MAX >> (8 - prefix);
    let first = take(rest)? & mask;
    let mut number = usize::from(first);
    if first < mask {
        return Ok(number);
    }
    for shift in (0..MOST_BITS).step_by(7) {
        let byte = take(rest)?;
        number += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Failed::Undecodable)
}

/// A text, as it is or in Huffman's code.
fn string<'s, 'r: 's>(rest: &mut &'r [u8], text: &'s mut Vec<u8>) -> Result<&'s [u8], Failed> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(rest, 7)?;
    let (string, behind) = rest.split_at_checked(length).ok_or(Failed::Short)?;
    *rest = behind;
    if !is_coded {
        return Ok(string);
    }
    text.clear();
    huffman::decode(string, text)?;
    Ok(text)
}

fn take(rest: &mut &[u8]) -> Result<u8, Failed> {
    let (first, behind) = rest.split_first().ok_or(Failed::Short)?;
    *rest = behind;
    Ok(*first)
}

/// Of a number, behind its first byte: far more than any length.
const MOST_BITS: usize = 28;

/// Most texts are shorter. What a longer one needed is not kept.
const KEPT: usize = 512;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
