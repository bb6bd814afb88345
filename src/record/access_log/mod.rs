//! The request log: one line for each request. Every format has the same fields, under its own names.

mod ecs;
mod fields;
mod human;
mod json;
mod otel;
mod write;

pub(super) use self::write::{LineContext, write};
