//! Where the configuration of a process comes from.

use std::path::PathBuf;

/// Where the configuration of a process comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A file, which is watched.
    File(PathBuf),
    /// The command line, which cannot change.
    Flags,
    /// A stream, which can be read only once.
    StandardInput,
}
