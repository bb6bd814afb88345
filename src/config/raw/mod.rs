//! The document as it was written, with the place of every part. Reading it finds every mistake at once.
//!
//! One definition per section (the [`section!`](section::section) macro) makes the struct, its reader and its JSON Schema,
//! so that the three cannot disagree.

pub mod client;
pub mod document;
pub mod field;
pub mod forms;
pub mod invalid_value;
pub mod jwt;
pub mod limit;
pub mod list;
pub mod listen_address;
pub mod outcome;
pub mod record;
pub mod route;
pub mod scalar;
mod section;
pub mod server;
pub mod sessions;
pub mod store;
pub mod then;
pub mod upstream;
mod value;
mod words;

pub use self::document::Document;
pub use self::field::Field;
pub use self::invalid_value::InvalidValue;
pub use self::value::RawValue;
pub use self::value::Spanned;
pub use self::value::Text;
