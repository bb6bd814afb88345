//! Reads XML bodies as lenient applications do.
//!
//! No text is an error: what is not XML is read as far as possible and reported.

mod element_path;
#[cfg(test)]
mod tests;
mod texts;
mod walk;

pub(crate) use self::element_path::ElementPath;
pub(crate) use self::texts::is_multicall;
pub(crate) use self::texts::texts;
pub(crate) use self::walk::declared_encoding;
pub(crate) use self::walk::is_well_formed;
