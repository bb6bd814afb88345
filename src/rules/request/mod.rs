//! The head and body of a request in canonical form, so that no spelling slips past a rule.
//!
//! The readers here are our own: a standard parser reads a request in one way, and a rule must see every value that
//! some application may read. What they read is never all: [`strict`] says where it surely is.

mod content_type;
pub(crate) mod encoding;
pub mod fields;
pub mod head;
pub(crate) mod json;
pub(crate) mod multipart;
mod not_understood;
pub mod path;
pub mod query;
mod strict;
pub mod text;
mod urlencoded;
mod xml;

pub use self::fields::BodyFields;
pub use self::head::{CanonicalHead, CanonicalHost};
pub use self::not_understood::NotUnderstood;
pub use self::path::{CanonicalPath, RequestPath};
