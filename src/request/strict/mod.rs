//! Exactly what well-behaved clients write: browsers, curl, and the HTTP libraries of programming languages.
//!
//! The lenient readers beside this module find every value that some application is known to read. The grammars here say
//! whether that is surely all: what they do not allow is not understood, and some application may read another value in it.
//! They are small and closed. A new trick is outside of them, whatever it is.

pub(super) mod body;
pub(super) mod content_type;
pub(super) mod cookies;
pub(super) mod credentials;
mod json;
mod multipart;
mod name;
pub(super) mod pairs;
mod presence;
mod xml;

pub(super) use self::presence::Presence;
