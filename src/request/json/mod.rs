//! Reads JSON bodies as lenient applications do.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod scalars;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use self::scalars::WellFormed;
pub(crate) use self::scalars::values;
pub(crate) use self::scalars::well_formed;
