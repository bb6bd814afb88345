//! The texts that mistakes point into: files and flags.

use std::path::Path;
use std::path::PathBuf;

/// A range of a source, within one line.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct SourceRange {
    /// The number of the source.
    pub source: u16,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// In characters; at least 1 when shown.
    pub length: u32,
}

/// A text, and the file name or flag it comes from.
#[derive(Clone, Debug)]
pub struct Source {
    name: PathBuf,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    pub fn new(name: impl Into<PathBuf>, text: String) -> Self {
        let line_starts =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1)).collect();
        Self { name: name.into(), text, line_starts }
    }

    pub fn name(&self) -> &Path {
        &self.name
    }

    /// A line without its end; `number` counts from 1.
    pub fn line(&self, number: usize) -> Option<&str> {
        let start = *self.line_starts.get(number.checked_sub(1)?)?;
        let end = self.line_starts.get(number).map_or(self.text.len(), |next| next - 1);
        Some(self.text.get(start..end)?.trim_end_matches('\r'))
    }
}

impl Source {
    /// The top-level key that a line belongs to.
    pub fn section(&self, number: usize) -> Option<&str> {
        let mut lines = (1..=number).rev().filter_map(|number| self.line(number));
        let key = lines.find(|line| line.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '"' | '\'')))?;
        Some(key.split(':').next().unwrap_or(key).trim().trim_matches(['"', '\'']))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_number() {
        let source = Source::new("f", "a\r\nbé\n\nc".to_owned());
        let lines: Vec<_> = (0..6).map(|number| source.line(number)).collect();
        assert_eq!(lines, [None, Some("a"), Some("bé"), Some(""), Some("c"), None]);
    }
}
