//! Writes the parts of a log line: JSON without an intermediate value, and text that is safe on a terminal.

mod text;
mod time;

pub(super) use self::text::escaped;
pub(super) use self::text::escaped_bytes;
pub(super) use self::text::plain;
pub(super) use self::text::put;
pub(super) use self::text::quoted;
pub(super) use self::text::raw;
pub(super) use self::time::millis;
pub(super) use self::time::nanos;
pub(super) use self::time::time;
