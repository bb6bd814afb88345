//! The gateway's own answers: denials in their configured form, and errors.

pub mod page;
pub mod refusal;
pub mod reply;
