//! The `store.memory` section.

use std::path::PathBuf;

/// The `store.memory` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub max_keys: usize,
    pub max_sessions: usize,
    /// The file that keeps what has to survive a restart; `None`: it is lost with the process.
    pub snapshot: Option<PathBuf>,
}
