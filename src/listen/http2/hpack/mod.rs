//! Decodes the fields of requests from HPACK (RFC 7541), within the bounds of the block and of the dynamic table.

mod decoder;
mod error;
mod field;
mod huffman;
mod table;

pub(super) use self::decoder::HpackDecoder;
pub(super) use self::field::Field;
pub(super) use self::field::Name;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
