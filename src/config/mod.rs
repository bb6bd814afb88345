//! The configuration: from text to settings in which no error is left.
//!
//! The text becomes a tree that knows its places ([`yaml`]), the tree becomes the document as it was written ([`raw`]),
//! and the document becomes [`Settings`] ([`compile`]). Each step collects every mistake it finds, so that a person sees
//! them all at once.

pub mod compile;
pub mod diagnostic;
pub mod inline;
pub mod load;
pub mod raw;
mod secrets;
mod shown;
pub mod source;
pub mod yaml;

pub use self::diagnostic::{Diagnostic, Severity, render};
pub use self::inline::inline;
pub use self::load::{NamedAddress, OutputFile, Settings, load, load_with, read, schema};
pub use self::shown::ShownConfig;

#[cfg(test)]
mod tests;
