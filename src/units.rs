//! Durations and sizes as people write them: `500ms`, `20s`, `7d`, `64KiB`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A span of time in a configuration: `500ms`, `20s`, `3m`, `1h`, `7d`; printed the same way.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = InvalidSpan;
    fn from_str(_text: &str) -> Result<Self, InvalidSpan> {
        todo!()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

/// A number of bytes in a configuration: `64KiB`, `10MiB`, `512B`, `0`; printed the same way.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = InvalidSize;
    fn from_str(_text: &str) -> Result<Self, InvalidSize> {
        todo!()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidSpan {
    #[error("`{0}` is not a duration, write a number and a unit such as `500ms`, `20s`, `3m`, `1h` or `7d`")]
    Malformed(String),
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidSize {
    #[error("`{0}` is not a size, write a number and a unit such as `64KiB` or `10MiB`")]
    Malformed(String),
}
