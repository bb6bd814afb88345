//! What the command line gives the gateway to run with.

use std::fmt;
use std::sync::Arc;

use crate::config::Diagnostic;
use crate::config::Settings;
use crate::record::Sinks;
use crate::record::log::OperationalLog;

/// How the configuration is read, at the start and for each reload.
pub type Load = dyn Fn() -> Result<Settings, Vec<Diagnostic>> + Send + Sync;

/// What an [`App`](super::App) uses and does not make itself.
pub struct ProcessContext {
    pub sinks: Sinks,
    /// `None`: the caller of the gateway logs.
    pub log: Option<Arc<OperationalLog>>,
    pub load: Arc<Load>,
}

impl fmt::Debug for ProcessContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessContext").finish_non_exhaustive()
    }
}
