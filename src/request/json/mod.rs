//! Reads JSON bodies as lenient applications do.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod scalars;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use self::scalars::JsonLeaf;
pub(crate) use self::scalars::JsonPiece;
pub(crate) use self::scalars::scan;
pub(crate) use self::scalars::values;
