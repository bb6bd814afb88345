//! Exactly what well-behaved clients write: browsers, curl, and the HTTP libraries of programming languages.
//!
//! The lenient readers beside this module find every value that some application is known to read. The grammars here
//! say whether these are surely all values: text outside the grammar is not understood, and some application may read
//! another value in it. The grammars are small and closed, so every new trick is outside of them.

pub(super) mod body;
pub(super) mod content_type;
pub(super) mod cookies;
mod json;
mod multipart;
pub(super) mod pairs;
mod xml_rpc;

pub(super) use self::body::Presence;
