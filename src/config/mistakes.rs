//! Collects every mistake and warning of a configuration.

use std::collections::BTreeSet;

use super::diagnostic::Diagnostic;
use super::diagnostic::Severity;
use super::source::Source;
use super::source::SourceRange;
use crate::secret;

/// Every mistake found so far, and the sources that they point into.
#[derive(Debug, Default)]
pub struct Mistakes {
    sources: Vec<Source>,
    found: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    unknown: BTreeSet<SourceRange>,
}

impl Mistakes {
    /// Registers a source. Every [`SourceRange`] of it holds the number that this returns.
    pub fn source(&mut self, source: Source) -> u16 {
        self.sources.push(source);
        u16::try_from(self.sources.len() - 1).unwrap_or(u16::MAX)
    }

    /// Adds a mistake: what is wrong, and what to write instead.
    pub fn report(&mut self, at: SourceRange, message: impl Into<String>, help: impl Into<String>) {
        if !self.unknown.contains(&at) {
            self.add(at, &message.into(), &help.into());
        }
    }

    /// Adds a mistake that leaves the value unknown. Further mistakes of that value are left out.
    pub fn report_unknown(&mut self, at: SourceRange, message: impl Into<String>, help: impl Into<String>) {
        self.report(at, message, help);
        self.unknown.insert(at);
    }

    /// Adds a mistake of a value that may hold a password. Its line is shown only if the password can be masked.
    pub fn report_secret(&mut self, at: SourceRange, message: impl Into<String>, help: impl Into<String>) {
        let before = self.found.len();
        self.report(at, message, help);
        for found in &mut self.found[before..] {
            if found.excerpt.as_ref().is_some_and(|line| line.contains('@') && !line.contains("*@")) {
                found.excerpt = None;
            }
        }
    }

    /// Adds the mistake that a certificate and its key do not belong together.
    pub fn report_certificate_mismatch(
        &mut self,
        at: SourceRange,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let before = self.found.len();
        self.report(at, message, help);
        for found in &mut self.found[before..] {
            found.is_certificate_mismatch = true;
        }
    }

    /// A mistake without a message, for an error that may be found later.
    pub fn at(&self, at: SourceRange) -> Option<Diagnostic> {
        self.diagnostic(at, "", "")
    }

    /// Adds a mistake in another file.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Adds a warning: what is valid and probably not meant.
    pub fn warn(&mut self, at: SourceRange, message: impl Into<String>, help: impl Into<String>) {
        let warning = self.diagnostic(at, &message.into(), &help.into());
        self.warnings.extend(warning.map(|warning| Diagnostic { severity: Severity::Warning, ..warning }));
    }

    /// All warnings so far, in the order of the files, each once.
    pub fn take_warnings(&mut self) -> Vec<Diagnostic> {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.sort();
        warnings.dedup();
        warnings
    }

    /// How many were found so far.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All mistakes in the order of the files, each once, though an alias repeats them.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        self.found
    }

    fn add(&mut self, at: SourceRange, message: &str, help: &str) {
        let mistake = self.diagnostic(at, message, help);
        self.found.extend(mistake);
    }

    fn diagnostic(&self, at: SourceRange, message: &str, help: &str) -> Option<Diagnostic> {
        let source = self.sources.get(usize::from(at.source))?;
        let (line, column) = (at.line.max(1) as usize, at.column.max(1) as usize);
        let text = source.line(line);
        let holds_webhook = text.is_some_and(secret::holds_webhook) || source.section(line) == Some("notify");
        let mask = |text: &str| {
            let text = secret::masked(text);
            if holds_webhook { secret::without_paths(&text) } else { text }
        };
        let mut diagnostic = Diagnostic::new(source.name(), line, column, one_line(&mask(message)));
        diagnostic.help = Some(one_line(&secret::masked(help)));
        if let Some(text) = text {
            diagnostic = diagnostic.excerpt(&mask(text), at.length as usize);
        }
        Some(diagnostic)
    }
}

/// Escapes control characters, so that text from a file or the environment cannot make one message look like two.
fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for letter in message.chars() {
        if letter.is_control() { line.extend(letter.escape_default()) } else { line.push(letter) }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_come_in_the_order_of_the_file_each_once() {
        let mut mistakes = Mistakes::default();
        let source = mistakes.source(Source::new("f", "a\nb\n".to_owned()));
        let at = |line| SourceRange { source, line, column: 1, length: 1 };
        mistakes.report(at(2), "second", "help");
        mistakes.report(at(1), "first", "help");
        mistakes.report(at(2), "second", "help");
        let found: Vec<_> = mistakes.into_sorted().into_iter().map(|diagnostic| diagnostic.message).collect();
        assert_eq!(found, ["first", "second"]);
    }
}
