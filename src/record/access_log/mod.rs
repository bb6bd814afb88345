//! The request log: one line for each request. Every format has the same fields, under its own names.

mod ecs;
mod fields;
mod human;
mod json;
mod line_context;
mod message;
mod otel;
mod value;
mod write;

pub(super) use self::line_context::LineContext;
pub(super) use self::write::write;
