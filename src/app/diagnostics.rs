//! Mistakes and warnings of the configuration in the operational log, with the place as fields for programs that read it.

use tracing::error;
use tracing::warn;

use crate::config::Diagnostic;

/// Logs each mistake as `check` prints it.
pub(super) fn log_mistakes(mistakes: &[Diagnostic]) {
    for Diagnostic { file, line, column, message, help, .. } in mistakes {
        let file = file.display();
        let help = help.as_deref();
        error!(%file, line, column, help, "{file}:{line}:{column}: {message}");
    }
}

/// Logs what is valid and probably not meant.
pub(super) fn log_warnings<'w>(warnings: impl IntoIterator<Item = &'w Diagnostic>) {
    for Diagnostic { file, line, column, message, help, .. } in warnings {
        let file = file.display();
        let help = help.as_deref();
        warn!(%file, line, column, help, "{file}:{line}:{column}: {message}");
    }
}
