//! The path of a request: one canonical form for all its spellings, and the other paths that applications may read it
//! as.

mod authority;
mod canonical;
mod classify;
mod decode;
mod readings;
mod request_path;
pub(crate) mod script;
mod windows;

pub use self::canonical::CanonicalPath;
pub(in crate::request) use self::decode::queries_within;
pub use self::request_path::RequestPath;

#[cfg(test)]
mod tests;
