//! One path for every spelling of it.

use std::borrow::Cow;

/// A path with its spelling taken away: decoded, resolved, trimmed. Starts with `/`, ends in one only when it
/// is `/` itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CanonicalPath<'r> {
    cased: Cow<'r, str>,
    /// `None` when folding case changes nothing.
    folded: Option<String>,
}

impl<'r> CanonicalPath<'r> {
    pub fn new(_path: &'r str) -> Self {
        todo!()
    }

    /// With letters as they were sent.
    pub fn cased(&self) -> &str {
        &self.cased
    }

    /// With letters compared without case.
    pub fn folded(&self) -> &str {
        self.folded.as_deref().unwrap_or(&self.cased)
    }
}
