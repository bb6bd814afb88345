//! Diagnostics as compilers print them.

use std::fmt::Write;

use annotate_snippets::AnnotationKind;
use annotate_snippets::Group;
use annotate_snippets::Level;
use annotate_snippets::Origin;
use annotate_snippets::Renderer;
use annotate_snippets::Snippet;

use super::diagnostic::Diagnostic;
use super::diagnostic::Severity;

/// Diagnostics as text for people. `colours` is for terminals.
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

/// The byte where a character of a line begins; beyond the last character, the end of the line.
fn byte_of(line: &str, character: usize) -> usize {
    line.char_indices().nth(character).map_or(line.len(), |(byte, _)| byte)
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
}
