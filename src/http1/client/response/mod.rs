//! Reads the head of an application's response: strictly, and where that fails, as most clients read it.

mod error;
mod framing;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod lines;
mod parse;
mod repair;
mod strict;
mod tolerant;

pub use self::error::InvalidResponse;
pub use self::parse::ParsedResponse;
pub use self::parse::could_begin;
pub use self::parse::parse;
pub use self::repair::Repairs;
