//! A mistake or a warning: where it is, what it is, and what to write instead.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serializer;

use crate::config::secrets::{KnownSecrets, Place, SecretPart};
use crate::config::source::{SourceRange, SourceText};
use crate::words::secret;
use crate::words::units::counted;

/// Longer lines are written by programs, and showing them does not help.
const MAX_EXCERPT: usize = 2000;

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
    /// The configuration is used, but is probably a mistake.
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

// Diagnostics as compilers print them.

/// Diagnostics as text for people. `colours` is for terminals.
pub fn render(diagnostics: &[Diagnostic], colours: bool) -> String {
    let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&renderer.render(&[group(diagnostic)]));
        text.push_str("\n\n");
    }
    let counts = [(Severity::Error, "mistake"), (Severity::Warning, "warning")].map(|(severity, noun)| {
        let count = diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        (count > 0).then(|| counted(count, noun))
    });
    let counts: Vec<_> = counts.into_iter().flatten().collect();
    if !counts.is_empty() {
        let _ = writeln!(text, "{}", counts.join(", "));
    }
    text
}

fn group(diagnostic: &Diagnostic) -> Group<'_> {
    let file = diagnostic.file.to_string_lossy();
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()));
    group = match &diagnostic.excerpt {
        Some(line) => {
            let start = byte_of(line, diagnostic.column - 1);
            let end = byte_of(line, diagnostic.column - 1 + diagnostic.length);
            group.element(
                Snippet::source(line.as_str())
                    .path(file)
                    .line_start(diagnostic.line)
                    .annotation(AnnotationKind::Primary.span(start..end)),
            )
        }
        None => group.element(Origin::path(file).line(diagnostic.line).char_column(diagnostic.column)),
    };
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    }
}

/// The byte where a character of a line begins; beyond the last character, the end of the line.
fn byte_of(line: &str, character: usize) -> usize {
    line.char_indices().nth(character).map_or(line.len(), |(byte, _)| byte)
}

// Collects every mistake and warning of a configuration.

/// Every mistake found so far, and the sources that they point into.
#[derive(Debug, Default)]
pub struct Mistakes {
    sources: Vec<(SourceText, KnownSecrets)>,
    found: Vec<Found>,
    warnings: Vec<Found>,
    unknown: BTreeSet<SourceRange>,
    /// Maps with a key that was refused: what they seem to lack may be what it means.
    unsure: BTreeSet<SourceRange>,
    /// The places with a mistake: later mistakes at the same place follow from the first.
    reported: BTreeSet<SourceRange>,
}

/// The findings. Their text is made when all are taken, because the secrets of a line are known only then.
#[derive(Debug)]
enum Found {
    Here { at: SourceRange, message: String, help: String, is_certificate_mismatch: bool },
    Elsewhere(Diagnostic),
}

impl Mistakes {
    /// Registers a source. Every [`SourceRange`] of it holds the number that this returns.
    pub fn source(&mut self, source: SourceText) -> u16 {
        self.sources.push((source, KnownSecrets::default()));
        u16::try_from(self.sources.len() - 1).unwrap_or(u16::MAX)
    }

    /// Adds a mistake: the problem, and the text to write instead. A second mistake at the same place follows from the
    /// first and is left out.
    pub fn report(&mut self, at: SourceRange, message: impl Into<String>, help: impl Into<String>) {
        self.add(at, message.into(), help.into(), false);
    }

    /// Adds a mistake that leaves the value unknown. Further mistakes of that value are left out.
    pub fn report_unknown(&mut self, at: SourceRange, message: impl Into<String>, help: impl Into<String>) {
        self.report(at, message, help);
        self.unknown.insert(at);
    }

    /// Notes a value, so that the secret in it, if there is one, is not shown. `place` is where the value stands.
    pub(super) fn note_value(&mut self, at: SourceRange, text: &str, place: Place) {
        let part = place.secret_part(text);
        if part.starred(text) != text {
            self.note_secret(at, part, text);
        }
    }

    /// Notes where a value of several lines ends.
    pub(super) fn note_end(&mut self, at: SourceRange, line: u32, column: u32) {
        if let Some((_, secrets)) = self.sources.get_mut(usize::from(at.source)) {
            secrets.ends_at(at, line, column);
        }
    }

    /// Notes that a key of a map was refused. What the map lacks is not told any more.
    pub(super) fn note_unsure(&mut self, map: SourceRange) {
        self.unsure.insert(map);
    }

    /// Whether a map has a key that was refused.
    pub(super) fn is_unsure(&self, map: SourceRange) -> bool {
        self.unsure.contains(&map)
    }

    /// Notes that a source was read to its end, so that all its secrets are noted.
    pub(super) fn note_all_read(&mut self, source: u16) {
        if let Some((_, secrets)) = self.sources.get_mut(usize::from(source)) {
            secrets.are_all = true;
        }
    }

    fn note_secret(&mut self, at: SourceRange, part: SecretPart, text: &str) {
        if let Some((_, secrets)) = self.sources.get_mut(usize::from(at.source)) {
            secrets.insert(at, part, text);
        }
    }

    /// Adds a mistake of a URL that may hold a password. The text before its `@` is not shown, also if the URL is
    /// misspelt.
    pub fn report_secret(&mut self, at: SourceRange, message: impl Into<String>, help: impl Into<String>) {
        if let Some((_, secrets)) = self.sources.get_mut(usize::from(at.source)) {
            secrets.insert_url(at);
        }
        self.report(at, message, help);
    }

    /// Adds the mistake that a certificate and its key do not belong together.
    pub fn report_certificate_mismatch(
        &mut self,
        at: SourceRange,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(at, message.into(), help.into(), true);
    }

    /// A mistake without a message, for an error that may be found later.
    pub fn at(&self, at: SourceRange) -> Option<Diagnostic> {
        self.diagnostic(at, "", "")
    }

    /// Adds a mistake in another file.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(Found::Elsewhere(diagnostic));
    }

    /// Adds a warning: a setting that is valid but probably a mistake.
    pub fn warn(&mut self, at: SourceRange, message: impl Into<String>, help: impl Into<String>) {
        let (message, help) = (message.into(), help.into());
        self.warnings.push(Found::Here { at, message, help, is_certificate_mismatch: false });
    }

    /// All warnings so far, in the order of the files, each once.
    pub fn take_warnings(&mut self) -> Vec<Diagnostic> {
        let found = std::mem::take(&mut self.warnings);
        let warnings = self.sorted(found).into_iter();
        warnings.map(|warning| Diagnostic { severity: Severity::Warning, ..warning }).collect()
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
        let found = std::mem::take(&mut self.found);
        self.sorted(found)
    }

    fn sorted(&self, found: Vec<Found>) -> Vec<Diagnostic> {
        let shown = found.into_iter().filter_map(|found| match found {
            Found::Elsewhere(diagnostic) => Some(diagnostic),
            Found::Here { at, message, help, is_certificate_mismatch } => {
                let diagnostic = self.diagnostic(at, &message, &help)?;
                Some(Diagnostic { is_certificate_mismatch, ..diagnostic })
            }
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort();
        shown.dedup();
        shown
    }

    fn add(&mut self, at: SourceRange, message: String, help: String, is_certificate_mismatch: bool) {
        let has_source = usize::from(at.source) < self.sources.len();
        if has_source && !self.unknown.contains(&at) && !self.unsure.contains(&at) && self.reported.insert(at) {
            self.found.push(Found::Here { at, message, help, is_certificate_mismatch });
        }
    }

    fn diagnostic(&self, at: SourceRange, message: &str, help: &str) -> Option<Diagnostic> {
        let (source, secrets) = self.sources.get(usize::from(at.source))?;
        let (line, column) = (at.line.max(1), at.column.max(1));
        let text = source.line(line as usize);
        // If a text was not read to its end, the places of its other secrets are unknown.
        let may_hold_more = !secrets.are_all;
        let may_hold_webhook = may_hold_more
            && (text.is_some_and(secret::holds_webhook) || source.section(line as usize) == Some("notify"));
        let mask = |text: String| {
            let text = if may_hold_more { secret::masked(&text) } else { text };
            if may_hold_webhook { secret::without_paths(&text) } else { text }
        };
        let message = one_line(&mask(secrets.message(at, message)));
        let mut diagnostic = Diagnostic::new(source.name(), line as usize, column as usize, message);
        let help = secret::masked(&secrets.message(at, help));
        diagnostic.help = Some(one_line(&if may_hold_webhook { secret::without_paths(&help) } else { help }));
        if let Some(text) = text {
            diagnostic = diagnostic.excerpt(&mask(secrets.line(line, text)), at.length as usize);
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

    fn example() -> Diagnostic {
        Diagnostic::new("portcullis.yaml", 3, 5, "unknown key `kéy`")
            .excerpt("  - kéy: client_ip", 3)
            .help("did you mean `key`?")
    }

    #[test]
    fn a_person_sees_the_line_and_what_to_write_instead() {
        let expected = "\
error: unknown key `kéy`
 --> portcullis.yaml:3:5
  |
3 |   - kéy: client_ip
  |     ^^^
  |
  = help: did you mean `key`?

1 mistake
";
        assert_eq!(render(&[example()], false), expected);
    }

    #[test]
    fn a_warning_says_that_it_is_one() {
        let warning = Diagnostic { severity: Severity::Warning, ..example() };
        let text = render(&[warning.clone(), warning], false);
        assert!(text.starts_with("warning: unknown key `kéy`\n --> portcullis.yaml:3:5\n"), "{text}");
        assert!(text.ends_with("2 warnings\n"), "{text}");
    }

    #[test]
    fn a_mistake_without_a_line_still_says_where() {
        let text = render(&[Diagnostic::new("gone.yaml", 1, 1, "no such file")], false);
        assert_eq!(text, "error: no such file\n--> gone.yaml:1:1\n\n1 mistake\n");
    }

    #[test]
    fn a_caret_beyond_the_line_stays_at_its_end() {
        let diagnostic = Diagnostic::new("f", 1, 90, "m").excerpt("short", 400);
        assert!(render(&[diagnostic], false).contains("short"));
    }

    #[test]
    fn mistakes_come_in_the_order_of_the_file_each_once() {
        let mut mistakes = Mistakes::default();
        let source = mistakes.source(SourceText::new("f", "a\nb\n".to_owned()));
        let at = |line| SourceRange { source, line, column: 1, length: 1 };
        mistakes.report(at(2), "second", "help");
        mistakes.report(at(1), "first", "help");
        mistakes.report(at(2), "second", "help");
        let found: Vec<_> = mistakes.into_sorted().into_iter().map(|diagnostic| diagnostic.message).collect();
        assert_eq!(found, ["first", "second"]);
    }

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
