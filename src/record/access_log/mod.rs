//! The request log: one line for each request. Every format has the same fields, under its own names.

mod fields;
mod formats;
mod write;

pub(super) use self::write::{LineContext, write};
