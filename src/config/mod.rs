//! The configuration: from text to settings in which no error is left.
//!
//! The text becomes a tree that knows its places ([`yaml`]), the tree becomes the document as it was written ([`raw`]),
//! and the document becomes [`Settings`] ([`compile`]). Each step collects every mistake it finds, so that a person sees
//! them all at once.

pub mod compile;
pub mod diagnostic;
pub mod environment;
pub mod inline;
mod invalid_values;
mod load;
pub mod mistakes;
pub mod raw;
mod render;
pub mod schema;
mod settings;
mod shown;
pub mod source;
pub mod text_file;
pub mod yaml;

pub use self::diagnostic::Diagnostic;
pub use self::diagnostic::Severity;
pub use self::inline::inline;
pub use self::load::load;
pub use self::load::load_with;
pub use self::load::read;
pub use self::render::render;
pub use self::schema::schema;
pub use self::settings::OutputFile;
pub use self::settings::Settings;
pub use self::shown::ShownConfig;

#[cfg(test)]
mod tests;
