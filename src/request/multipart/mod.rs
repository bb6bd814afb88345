//! Reads multipart bodies as lenient applications do.

mod field_values;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod parts;
#[cfg(test)]
mod tests;

pub(crate) use self::field_values::scan;
pub(crate) use self::field_values::values;
