//! The head of a request or a response: one buffer of text, and a flat table of its fields.
//!
//! Every protocol fills the same table. Rules, framing and forwarding read it, and what goes on to the next hop is copied
//! from the buffer, line by line or many lines at once. The types of the library `http` begin where a library wants them.

mod convert;
mod field;
mod field_name;
mod fields;
mod known_name;
mod request;

pub use self::field::{Field, Span};
pub use self::field_name::{FieldName, InvalidFieldName, Name, is_token_byte, is_value};
pub use self::fields::{FieldBlock, Fields, InvalidField, write_line};
pub use self::known_name::{KnownName, NameSet};
pub use self::request::{InvalidTarget, RequestHead, ResponseHead, Scheme, Target};

#[cfg(test)]
mod tests;
