//! The document as it was written, with the place of every part. Reading it finds every mistake at once.
//!
//! One definition per section (the [`section!`](field::section) macro) makes the struct, its reader and its JSON Schema,
//! so that the three cannot disagree.

pub mod document;
pub mod field;
pub mod forms;
pub mod grammar;
pub mod limit;
pub mod record;
pub mod route;
pub mod scalar;
pub mod server;
pub mod store;
pub mod then;

pub use self::document::Document;
pub use self::field::Field;
pub use self::forms::{BoundedValue, InvalidValue, RawValue, Spanned, Text};
pub use self::grammar::Bounds;
