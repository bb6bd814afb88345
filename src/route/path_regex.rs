//! Regular expressions over the canonical path.

use std::borrow::Cow;
use std::fmt;

use caseless::default_case_fold_str;
use regex::Regex;
use regex::RegexBuilder;

use super::pattern::Case;
use super::required_texts::AnyOf;
use super::required_texts::required_texts;
use crate::key::Captures;
use crate::regular_expression::compile_within;
use crate::regular_expression::syntax_mistake;
use crate::request::CanonicalPath;

/// A `path_regex`. Without anchors it may match anywhere in the path, as in nginx. Named groups capture.
#[derive(Clone, Debug)]
pub struct PathRegex {
    regex: Regex,
    case: Case,
    required: Box<[AnyOf]>,
    compiled_bytes: usize,
}

/// A compiled expression larger than this is a mistake.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// What one letter of a text takes in the index of routes.
const BYTES_PER_LETTER: usize = 16;

impl PathRegex {
    pub fn new(text: &str, case: Case) -> Result<Self, InvalidPathRegex> {
        let compile = |bound| RegexBuilder::new(text).case_insensitive(case == Case::Ignored).size_limit(bound).build();
        let (regex, compiled_bytes) =
            compile_within(MAX_COMPILED_BYTES, compile).map_err(|error| InvalidPathRegex::from(&error))?;
        let required = required_texts(text, case);
        let texts = required.iter().flatten().map(|text| text.len()).sum::<usize>();
        // The smaller of the two is at most as much again.
        let compiled_bytes = compiled_bytes.max(texts * BYTES_PER_LETTER);
        Ok(Self { regex, case, required, compiled_bytes })
    }

    /// So much memory it takes at most.
    pub fn compiled_bytes(&self) -> usize {
        self.compiled_bytes
    }

    pub fn matches(&self, path: &CanonicalPath<'_>) -> bool {
        self.matching(path).is_some()
    }

    /// Adds what the named groups match in `path`. Values are case-folded where case is ignored.
    pub fn capture<'a>(&'a self, path: &'a CanonicalPath<'_>, captures: &mut Captures<'a>) {
        if self.regex.captures_len() == 1 {
            return;
        }
        let Some(groups) = self.matching(path).and_then(|text| self.regex.captures(text)) else { return };
        for name in self.names() {
            let Some(value) = groups.name(name) else { continue };
            let value = match self.case {
                Case::Ignored => Cow::Owned(default_case_fold_str(value.as_str())),
                Case::Sensitive => Cow::Borrowed(value.as_str()),
            };
            captures.push((name, value));
        }
    }

    /// Whether captured values keep their case.
    pub fn case(&self) -> Case {
        self.case
    }

    /// As it is written.
    pub(super) fn text(&self) -> &str {
        self.regex.as_str()
    }

    /// Of each of these, every matching path has one text.
    pub(super) fn required(&self) -> &[AnyOf] {
        &self.required
    }

    /// Whether both have the same text and the same case.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str() && self.case == other.case
    }

    /// The names of the groups that capture.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.regex.capture_names().flatten()
    }

    /// The spelling of the path that the expression matches. Where case is ignored it tries the folded and the written
    /// path, because folding changes some letters that an expression may spell out, such as `ß`.
    fn matching<'p>(&self, path: &'p CanonicalPath<'_>) -> Option<&'p str> {
        let compared = self.case.of(path);
        if self.regex.is_match(compared) {
            return Some(compared);
        }
        (compared != path.cased() && self.regex.is_match(path.cased())).then(|| path.cased())
    }
}

impl fmt::Display for PathRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.regex.as_str())
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidPathRegex {
    #[error("not a regular expression: {0}")]
    Syntax(String),
    #[error("the regular expression is too large")]
    TooLarge,
}

impl From<&regex::Error> for InvalidPathRegex {
    fn from(error: &regex::Error) -> Self {
        syntax_mistake(error).map_or(Self::TooLarge, Self::Syntax)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(regex: &str, case: Case, path: &str, expected: bool) {
        let regex = PathRegex::new(regex, case).unwrap();
        assert_eq!(regex.matches(&CanonicalPath::new(path)), expected, "{path} under {regex}");
    }

    #[test]
    fn an_expression_is_searched_for_unless_it_is_anchored() {
        check("/v[0-9]+/", Case::Ignored, "/api/v2/users", true);
        check("^/v[0-9]+/", Case::Ignored, "/api/v2/users", false);
        check("^/login$", Case::Ignored, "/login/", true);
        check("^/login$", Case::Ignored, "/x/../LOGIN", true);
        check("^/login$", Case::Sensitive, "/LOGIN", false);
        check("^/Straße$", Case::Ignored, "/straße", true);
    }

    #[test]
    fn named_groups_capture() {
        let regex = PathRegex::new("^/u/(?P<id>[^/]+)(?:/(?P<rest>.*))?$", Case::Ignored).unwrap();
        let path = CanonicalPath::new("/U/Seven");
        let mut captures = Captures::new();
        regex.capture(&path, &mut captures);
        assert_eq!(captures.as_slice(), [("id", Cow::Borrowed("seven"))]);
    }

    #[test]
    fn what_does_not_compile_says_why() {
        let refused = |text| PathRegex::new(text, Case::Ignored).unwrap_err();
        assert_eq!(refused("/(login"), InvalidPathRegex::Syntax("unclosed group".into()));
        assert_eq!(refused(r"(\w{100}){100}"), InvalidPathRegex::TooLarge);
    }
}
