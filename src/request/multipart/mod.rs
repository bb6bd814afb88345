//! Reads multipart bodies as lenient applications do.

mod field_values;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod parts;
#[cfg(test)]
mod tests;

pub(crate) use self::field_values::MAX_VALUES;
pub(crate) use self::field_values::values;
pub(crate) use self::parts::names_a_part;
