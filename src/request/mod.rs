//! The head and body of a request in canonical form, so that no spelling slips past a rule.
//!
//! The readers here are our own: a standard parser reads a request in one way, and a rule must see every value that
//! some application may read. What they read is never all: [`strict`] says where it surely is.

mod content_type;
pub(crate) mod encoding;
pub mod fields;
pub mod head;
pub mod header;
pub mod host;
pub(crate) mod json;
pub mod method;
pub(crate) mod multipart;
mod name;
mod not_understood;
pub mod nul;
pub mod path;
mod percent;
pub mod query;
mod strict;
pub mod text;
mod urlencoded;
mod utf16;
mod xml;

pub use self::fields::BodyFields;
pub use self::head::RequestHead;
pub use self::host::CanonicalHost;
pub use self::not_understood::NotUnderstood;
pub use self::path::CanonicalPath;
pub use self::path::RequestPath;
