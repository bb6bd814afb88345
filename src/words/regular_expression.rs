//! Regular expressions that are compiled within a bound, and fast: a configuration may have thousands.

use std::fmt;

use regex_automata::meta::{Builder, Config, Regex};
use regex_automata::{Input, PatternID};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

/// An expression of the syntax that `regex-syntax` documents. It takes time in proportion to the text that it is tried on.
#[derive(Clone)]
pub struct RegularExpression {
    regex: Regex,
}

/// The kind of text that expressions are matched with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Subject {
    /// A path or a name.
    ShortText,
    /// Bytes of any length, which need not be UTF-8.
    Body,
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidRegularExpression {
    /// With the mistake, in one line.
    #[error("not a regular expression: {0}")]
    Syntax(String),
    #[error("the regular expression is too large")]
    TooLarge,
}

/// Parses an expression, for [`RegularExpression::compile`].
pub fn parse(text: &str, subject: Subject, ignores_case: bool) -> Result<Hir, InvalidRegularExpression> {
    let mut parser = ParserBuilder::new();
    parser.utf8(subject != Subject::Body).case_insensitive(ignores_case);
    parser.build().parse(text).map_err(|error| {
        // The lines before the last one show the expression and a caret.
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default().trim();
        InvalidRegularExpression::Syntax(last.strip_prefix("error: ").unwrap_or(last).to_owned())
    })
}

impl RegularExpression {
    /// `largest`, in bytes: what its automaton takes at most.
    pub fn compile(parsed: &Hir, subject: Subject, largest: usize) -> Result<Self, InvalidRegularExpression> {
        // Neither of these would be faster on a short text, and building all three takes ten times as long as the rest.
        let config = Config::new().dfa(false).onepass(false).auto_prefilter(subject == Subject::Body);
        let config = config.nfa_size_limit(Some(largest)).utf8_empty(subject != Subject::Body);
        let regex = Builder::new().configure(config).build_from_hir(parsed);
        regex.map(|regex| Self { regex }).map_err(|_| InvalidRegularExpression::TooLarge)
    }

    /// In bytes: the memory that it takes.
    pub fn memory_usage(&self) -> usize {
        self.regex.memory_usage()
    }

    pub fn is_match(&self, text: impl AsRef<[u8]>) -> bool {
        self.regex.is_match(Input::new(&text))
    }

    /// The names of the groups that capture.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.regex.group_info().pattern_names(PatternID::ZERO).flatten()
    }

    /// The texts of the named groups in the first match, if they match.
    pub fn captures<'r, 't>(&'r self, text: &'t str) -> impl Iterator<Item = (&'r str, &'t str)> {
        let mut captures = self.regex.create_captures();
        self.regex.captures(text, &mut captures);
        self.names().filter_map(move |name| Some((name, &text[captures.get_group_by_name(name)?.range()])))
    }
}

impl fmt::Debug for RegularExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegularExpression").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(text: &str, largest: usize) -> Result<RegularExpression, InvalidRegularExpression> {
        RegularExpression::compile(&parse(text, Subject::ShortText, false)?, Subject::ShortText, largest)
    }

    #[test]
    fn the_size_of_an_expression_is_known_and_bounded() {
        let size = |text: &str| compile(text, 1 << 20).unwrap().memory_usage();
        assert!(size("^/v[12]/") < 4 << 10, "{}", size("^/v[12]/"));
        assert!(size(r"\w") > size("^/v[12]/") && size(r"\w{4}") > 2 * size(r"\w"));
        assert_eq!(compile(r"(\w+){1,50}{1,50}", 1 << 20).unwrap_err(), InvalidRegularExpression::TooLarge);
        assert_eq!(compile("/(a", 1 << 20).unwrap_err(), InvalidRegularExpression::Syntax("unclosed group".into()));
    }

    #[test]
    fn named_groups_capture_what_they_match() {
        let expression = compile("^/(?<id>[0-9]+)(?:/(?<rest>.*))?(x)?", 1 << 20).unwrap();
        assert!(expression.names().eq(["id", "rest"]));
        assert!(expression.captures("/7/a/b").eq([("id", "7"), ("rest", "a/b")]));
        assert!(expression.captures("/7").eq([("id", "7")]));
        assert_eq!(expression.captures("/").count(), 0);
    }

    #[test]
    fn a_body_need_not_be_text() {
        let parsed = parse("(?s-u:b.d)", Subject::Body, false).unwrap();
        let expression = RegularExpression::compile(&parsed, Subject::Body, 1 << 20).unwrap();
        assert!(expression.is_match(b"ab\xffd") && !expression.is_match(b"abd"));
    }
}
