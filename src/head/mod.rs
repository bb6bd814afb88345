//! The head of a request or a response: one buffer of text, and a flat table of its fields.
//!
//! Every protocol fills the same table. Rules, framing and forwarding read it, and what goes on to the next hop is copied
//! from the buffer, line by line or many lines at once. The types of the library `http` begin where a library wants them.

mod convert;
mod field;
mod field_name;
mod fields;
mod known_name;
mod memory;
mod name_set;
mod octets;
mod request;
mod response;
mod span;
mod target;
mod token;

#[cfg(test)]
mod tests;

pub use self::field::Field;
pub use self::field_name::FieldName;
pub use self::field_name::InvalidFieldName;
pub use self::field_name::Name;
pub use self::fields::Fields;
pub use self::fields::InvalidField;
pub use self::fields::write_line;
pub use self::known_name::KnownName;
pub use self::name_set::NameSet;
pub use self::request::RequestHead;
pub use self::response::ResponseHead;
pub use self::span::Span;
pub use self::target::InvalidTarget;
pub use self::target::Scheme;
pub use self::target::Target;
pub use self::token::is_token_byte;
