//! A line that is of no known format.

use std::sync::Arc;

use serde::Serialize;

/// A line that could not be read.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct UnreadableLine {
    pub file: Arc<str>,
    /// From 1.
    pub line: u64,
    /// Its start, with everything escaped that is not plain text.
    pub text: String,
}
