//! Mistakes and warnings, collected, and told to people and programs: where, what, and what to write instead.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::path::PathBuf;

use annotate_snippets::AnnotationKind;
use annotate_snippets::Group;
use annotate_snippets::Level;
use annotate_snippets::Origin;
use annotate_snippets::Renderer;
use annotate_snippets::Snippet;
use serde::Serializer;

use super::secret;
use super::source::Place;
use super::source::Source;

/// One mistake or warning: where it is, what it is, what to write instead.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, serde::Serialize)]
pub struct Diagnostic {
    /// As the user named it; the flag, such as `--limit`, for what stood on the command line.
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub severity: Severity,
    pub message: String,
    pub help: Option<String>,
    /// How many characters are meant.
    #[serde(skip)]
    pub length: usize,
    /// The line itself, where showing it tells no secret.
    #[serde(skip)]
    pub excerpt: Option<String>,
    /// Two files do not belong together; perhaps one of them is about to be renewed as well.
    #[serde(skip)]
    pub is_of_a_pair: bool,
}

/// What becomes of a configuration that has it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It is not used.
    Error,
    /// It is, and probably does not do what is meant.
    Warning,
}

impl Diagnostic {
    /// A mistake of a file as a whole, or one whose line is not shown.
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
            is_of_a_pair: false,
        }
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Shows the line that is meant.
    #[must_use]
    pub fn excerpt(mut self, line: &str, length: usize) -> Self {
        if line.len() <= MAX_EXCERPT {
            self.excerpt = Some(line.to_owned());
            self.length = length.max(1);
        }
        self
    }
}

/// Tells mistakes or warnings to a person, as compilers do. `colours` is for terminals.
pub fn render(diagnostics: &[Diagnostic], colours: bool) -> String {
    let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&renderer.render(&[group(diagnostic)]));
        text.push_str("\n\n");
    }
    if let [first, others @ ..] = diagnostics {
        let noun = match first.severity {
            Severity::Error => "mistake",
            Severity::Warning => "warning",
        };
        let plural = if others.is_empty() { "" } else { "s" };
        let _ = writeln!(text, "{} {noun}{plural}", diagnostics.len());
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

/// The byte at which a character of a line begins, the line's end beyond it.
fn byte_of(line: &str, character: usize) -> usize {
    line.char_indices().nth(character).map_or(line.len(), |(byte, _)| byte)
}

fn lossy<S: Serializer>(file: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&file.to_string_lossy())
}

/// Every mistake found so far, and the sources they point into.
#[derive(Debug, Default)]
pub struct Mistakes {
    sources: Vec<Source>,
    found: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    unknown: BTreeSet<Place>,
}

impl Mistakes {
    /// Makes a source known; its number goes into the places that point into it.
    pub fn source(&mut self, source: Source) -> u16 {
        self.sources.push(source);
        u16::try_from(self.sources.len() - 1).unwrap_or(u16::MAX)
    }

    /// Adds a mistake: what is wrong, and what to write instead.
    pub fn report(&mut self, at: Place, message: impl Into<String>, help: impl Into<String>) {
        if !self.unknown.contains(&at) {
            self.add(at, &message.into(), &help.into());
        }
    }

    /// Adds a mistake for which nobody knows what the value is. Nothing more is said of that value.
    pub fn report_unknown(&mut self, at: Place, message: impl Into<String>, help: impl Into<String>) {
        self.report(at, message, help);
        self.unknown.insert(at);
    }

    /// Adds a mistake of a value that may hold a password. Its line is shown only where the password can be masked.
    pub fn report_secret(&mut self, at: Place, message: impl Into<String>, help: impl Into<String>) {
        let before = self.found.len();
        self.report(at, message, help);
        for found in &mut self.found[before..] {
            if found.excerpt.as_ref().is_some_and(|line| line.contains('@') && !line.contains("*@")) {
                found.excerpt = None;
            }
        }
    }

    /// Adds a mistake of two files that do not belong together.
    pub fn report_pair(&mut self, at: Place, message: impl Into<String>, help: impl Into<String>) {
        let before = self.found.len();
        self.report(at, message, help);
        for found in &mut self.found[before..] {
            found.is_of_a_pair = true;
        }
    }

    /// A mistake that may turn up there later; its message is yet to come.
    pub fn at(&self, at: Place) -> Option<Diagnostic> {
        self.diagnostic(at, "", "")
    }

    /// Adds a mistake of another file.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Adds what is no mistake, and probably not meant.
    pub fn warn(&mut self, at: Place, message: impl Into<String>, help: impl Into<String>) {
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

    /// The text of every source.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(Source::text)
    }

    /// How many were found so far.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All mistakes in the order of the files, each once: what an alias repeats is one mistake.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        self.found
    }

    fn add(&mut self, at: Place, message: &str, help: &str) {
        let mistake = self.diagnostic(at, message, help);
        self.found.extend(mistake);
    }

    fn diagnostic(&self, at: Place, message: &str, help: &str) -> Option<Diagnostic> {
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

/// What a file or the environment put into a message cannot make it look like two.
fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for letter in message.chars() {
        if letter.is_control() { line.extend(letter.escape_default()) } else { line.push(letter) }
    }
    line
}

/// Longer lines are no one's handwriting, and no help when shown.
const MAX_EXCERPT: usize = 2000;

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
    fn programs_read_six_fields() {
        let json = serde_json::to_value(example()).expect("a diagnostic is JSON");
        let expected = serde_json::json!({
            "file": "portcullis.yaml", "line": 3, "column": 5, "severity": "error",
            "message": "unknown key `kéy`", "help": "did you mean `key`?",
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn mistakes_come_in_the_order_of_the_file_each_once() {
        let mut mistakes = Mistakes::default();
        let source = mistakes.source(Source::new("f", "a\nb\n".to_owned()));
        let at = |line| Place { source, line, column: 1, length: 1 };
        mistakes.report(at(2), "second", "help");
        mistakes.report(at(1), "first", "help");
        mistakes.report(at(2), "second", "help");
        let found: Vec<_> = mistakes.into_sorted().into_iter().map(|diagnostic| diagnostic.message).collect();
        assert_eq!(found, ["first", "second"]);
    }
}
