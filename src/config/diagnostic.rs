//! A mistake or a warning: where it is, what it is, and what to write instead.

use std::path::Path;
use std::path::PathBuf;

use serde::Serializer;

/// One mistake or warning: where it is, what it is, what to write instead.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, serde::Serialize)]
pub struct Diagnostic {
    /// As the user named it; for the command line the flag, such as `--limit`.
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub severity: Severity,
    pub message: String,
    pub help: Option<String>,
    /// How many characters are marked.
    #[serde(skip)]
    pub length: usize,
    /// The line itself, unless it would show a secret.
    #[serde(skip)]
    pub excerpt: Option<String>,
    /// A certificate and its key do not belong together; perhaps one of the two is about to be renewed.
    #[serde(skip)]
    pub is_certificate_mismatch: bool,
}

/// Whether a configuration that has it is used.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The configuration is not used.
    Error,
    /// The configuration is used, and probably does not do what is meant.
    Warning,
}

impl Diagnostic {
    /// A mistake in a file as a whole, or a mistake whose line is not shown.
    pub fn new(file: impl Into<PathBuf>, line: usize, column: usize, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line,
            column,
            severity: Severity::Error,
            message: message.into(),
            help: None,
            length: 1,
            excerpt: None,
            is_certificate_mismatch: false,
        }
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Shows the line.
    #[must_use]
    pub fn excerpt(mut self, line: &str, length: usize) -> Self {
        if line.len() <= MAX_EXCERPT {
            self.excerpt = Some(line.to_owned());
            self.length = length.max(1);
        }
        self
    }
}

fn lossy<S: Serializer>(file: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&file.to_string_lossy())
}

/// Longer lines are written by programs, and showing them does not help.
const MAX_EXCERPT: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_six_fields() {
        let diagnostic = Diagnostic::new("portcullis.yaml", 3, 5, "unknown key `kéy`").help("did you mean `key`?");
        let json = serde_json::to_value(diagnostic).expect("a diagnostic is JSON");
        let expected = serde_json::json!({
            "file": "portcullis.yaml", "line": 3, "column": 5, "severity": "error",
            "message": "unknown key `kéy`", "help": "did you mean `key`?",
        });
        assert_eq!(json, expected);
    }
}
