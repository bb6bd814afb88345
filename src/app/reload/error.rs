//! Why the running configuration stays.

use tracing::error;

use crate::app::StartError;
use crate::app::diagnostics::log_mistakes;
use crate::config::Diagnostic;

/// Why the running configuration stays.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error("{}", count(.0))]
    Mistakes(Vec<Diagnostic>),
    #[error("{0}")]
    Start(StartError),
    /// A defect, and no reason to stop serving.
    #[error("reading the configuration panicked")]
    Panic,
}

impl ReloadError {
    /// The only mistakes are certificates and keys that do not belong together. They are two files, and perhaps only one
    /// of them has been renewed so far.
    pub(super) fn is_half_renewed(&self) -> bool {
        matches!(self, Self::Mistakes(mistakes) if mistakes.iter().all(|mistake| mistake.is_certificate_mismatch))
    }

    pub(super) fn log(&self) {
        match self {
            Self::Mistakes(mistakes) => {
                log_mistakes(mistakes);
                error!(mistakes = mistakes.len(), "configuration not reloaded, the running one stays in force");
            }
            Self::Start(error) => error!(%error, "configuration not reloaded, the running one stays in force"),
            Self::Panic => error!("configuration not reloaded: reading it panicked, the running one stays in force"),
        }
    }
}

impl From<StartError> for ReloadError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Mistakes(mistakes) => Self::Mistakes(mistakes),
            other => Self::Start(other),
        }
    }
}

fn count(mistakes: &[Diagnostic]) -> String {
    let (number, plural) = (mistakes.len(), if mistakes.len() == 1 { "" } else { "s" });
    let first = mistakes.first().map(|Diagnostic { file, line, column, message, .. }| {
        format!(", the first at {}:{line}:{column}: {message}", file.display())
    });
    format!("{number} mistake{plural}{}", first.unwrap_or_default())
}
