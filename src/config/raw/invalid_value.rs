//! Why a text is not valid for its key, and what to write instead.

use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;

/// Why a text is not valid for its key, and what to write instead.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidValue {
    pub message: String,
    pub help: String,
}

impl InvalidValue {
    pub fn report(self, at: SourceRange, mistakes: &mut Mistakes) {
        mistakes.report(at, self.message, self.help);
    }

    /// The error for a text that looks like a glob where none is allowed.
    pub fn of_glob(text: &str, what: &str, help: impl Into<String>) -> Self {
        Self::with(format!("`{text}` looks like a glob, and {what} is taken literally"), help)
    }

    pub fn with(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}
