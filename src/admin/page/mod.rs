//! The dashboard: one page, its style and its scripts, as files in the binary.

mod files;
mod serve;

pub(super) use self::serve::routes;
