//! Regular expressions over the canonical path.

use std::borrow::Cow;
use std::fmt;

use caseless::default_case_fold_str;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::pattern::Case;
use crate::rules::key::Captures;
use crate::rules::request::CanonicalPath;
use crate::words::regular_expression::{InvalidRegularExpression, RegularExpression, Subject, parse};
use crate::words::word::Help;

/// A compiled expression larger than this is a mistake.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// The memory of one letter of a text in the index of routes.
const BYTES_PER_LETTER: usize = 16;

/// A `path_regex`. Without anchors it may match anywhere in the path, as in nginx. Named groups capture.
#[derive(Clone, Debug)]
pub struct PathRegex {
    text: Box<str>,
    regex: RegularExpression,
    case: Case,
    required: Box<[AnyOf]>,
}

impl PathRegex {
    pub fn new(text: &str, case: Case) -> Result<Self, InvalidPathRegex> {
        let parsed = parse(text, Subject::ShortText, case == Case::Ignored)?;
        let regex = RegularExpression::compile(&parsed, Subject::ShortText, MAX_COMPILED_BYTES)?;
        Ok(Self { text: text.into(), regex, case, required: required_texts(&parsed, case) })
    }

    /// In bytes: the memory that it takes, with its texts in the index of routes.
    pub fn memory_usage(&self) -> usize {
        let texts = self.required.iter().flatten().map(|text| text.len()).sum::<usize>();
        self.regex.memory_usage() + texts * BYTES_PER_LETTER
    }

    pub fn matches(&self, path: &CanonicalPath<'_>) -> bool {
        self.matching(path).is_some()
    }

    /// Adds what the named groups match in `path`. Values are case-folded where case is ignored.
    pub fn capture<'a>(&'a self, path: &'a CanonicalPath<'_>, captures: &mut Captures<'a>) {
        if self.names().next().is_none() {
            return;
        }
        let Some(text) = self.matching(path) else { return };
        captures.extend(self.regex.captures(text).map(|(name, value)| match self.case {
            Case::Ignored => (name, Cow::Owned(default_case_fold_str(value))),
            Case::Sensitive => (name, Cow::Borrowed(value)),
        }));
    }

    /// Whether captured values keep their case.
    pub fn case(&self) -> Case {
        self.case
    }

    /// As it is written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Sets of texts: every matching path contains one text of each set.
    pub(super) fn required(&self) -> &[AnyOf] {
        &self.required
    }

    /// Whether both have the same text and the same case.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.text == other.text && self.case == other.case
    }

    /// The names of the groups that capture.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.regex.names()
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
        f.write_str(&self.text)
    }
}

/// Why this is no such expression.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct InvalidPathRegex(#[from] pub InvalidRegularExpression);

impl Help for InvalidPathRegex {
    fn help(&self) -> String {
        let help = match self.0 {
            InvalidRegularExpression::Syntax(_) => {
                "write one such as `^/v[0-9]+/`; write a `\\` before a bracket or a dot that is meant literally"
            }
            InvalidRegularExpression::TooLarge => "lower the counts in its braces, or split it into two routes",
        };
        help.to_owned()
    }
}

// Texts that are in every path that a regular expression matches. Most expressions need not be tried on a path without
// them.

/// More alternatives are not told apart.
const MAX_TEXTS: usize = 16;

/// Longer texts are cut.
const MAX_LENGTH: usize = 64;

/// One letter, such as `/`, is in too many paths.
const MIN_LENGTH: usize = 2;

/// A class of more letters is of any.
const MAX_LETTERS: usize = 4;

/// Every matching path contains one of these texts. All are ASCII letters. If case is ignored they are in lower case,
/// and the folded path contains one, whichever spelling of the path matches.
pub(in crate::rules::route) type AnyOf = Box<[Box<str>]>;

/// Everything that is known to stand in a matching path, in the order of the path.
pub(super) fn required_texts(parsed: &Hir, case: Case) -> Box<[AnyOf]> {
    let found = Reader { case }.required(parsed);
    found.into_iter().map(|texts| texts.into_iter().map(String::into_boxed_str).collect()).collect()
}

struct Reader {
    case: Case,
}

impl Reader {
    fn required(&self, part: &Hir) -> Vec<Vec<String>> {
        if let Some(texts) = self.whole(part) {
            return useful(texts).into_iter().collect();
        }
        match part.kind() {
            HirKind::Capture(group) => self.required(&group.sub),
            HirKind::Repetition(repetition) if repetition.min > 0 => self.required(&repetition.sub),
            HirKind::Concat(parts) => self.of_sequence(parts),
            HirKind::Alternation(branches) => self.of_branches(branches).into_iter().collect(),
            HirKind::Literal(literal) => {
                let ascii = literal.0.iter().take_while(|byte| byte.is_ascii()).take(MAX_LENGTH);
                let text = ascii.map(|byte| self.folded(char::from(*byte)).unwrap_or_default()).collect();
                useful(vec![text]).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Neighbours whose texts are known make longer texts.
    fn of_sequence(&self, parts: &[Hir]) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        let mut run = vec![String::new()];
        for part in parts {
            let texts = self.whole(part);
            if let Some(longer) = texts.as_ref().and_then(|texts| joined(&run, texts)) {
                run = longer;
                continue;
            }
            found.extend(useful(std::mem::replace(&mut run, vec![String::new()])));
            match texts {
                Some(texts) => run = texts,
                None => found.extend(self.required(part)),
            }
        }
        found.extend(useful(run));
        found
    }

    /// The longest texts of each branch; `None`: one branch has none.
    fn of_branches(&self, branches: &[Hir]) -> Option<Vec<String>> {
        let mut all = Vec::new();
        for branch in branches {
            all.extend(self.required(branch).into_iter().max_by_key(|texts| shortest(texts))?);
        }
        if all.len() > MAX_TEXTS { None } else { useful(all) }
    }

    /// Every text that this part matches; `None`: they are too many, or too long.
    fn whole(&self, part: &Hir) -> Option<Vec<String>> {
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Some(vec![String::new()]),
            HirKind::Literal(literal) => {
                let text: Option<String> = literal.0.iter().map(|byte| self.folded(char::from(*byte))).collect();
                text.filter(|text| literal.0.is_ascii() && text.len() <= MAX_LENGTH).map(|text| vec![text])
            }
            HirKind::Class(class) => self.letters(class),
            HirKind::Capture(group) => self.whole(&group.sub),
            HirKind::Repetition(repetition) => self.repeated(repetition),
            HirKind::Concat(parts) => {
                let parts = parts.iter().map(|part| self.whole(part));
                parts.into_iter().try_fold(vec![String::new()], |texts, part| joined(&texts, &part?))
            }
            HirKind::Alternation(branches) => {
                let mut all = Vec::new();
                for branch in branches {
                    all.extend(self.whole(branch)?);
                }
                bounded(all)
            }
        }
    }

    fn repeated(&self, repetition: &Repetition) -> Option<Vec<String>> {
        match (repetition.min, repetition.max?) {
            (0, 1) => {
                let mut texts = self.whole(&repetition.sub)?;
                texts.push(String::new());
                bounded(texts)
            }
            (min, max) if min == max && max as usize <= MAX_LENGTH => {
                let texts = self.whole(&repetition.sub)?;
                (0..max).try_fold(vec![String::new()], |repeated, _| joined(&repeated, &texts))
            }
            _ => None,
        }
    }

    fn letters(&self, class: &Class) -> Option<Vec<String>> {
        let mut letters = Vec::new();
        let mut add = |from: char, to: char| {
            for letter in from..=to {
                let letter = self.folded(letter)?.to_string();
                if !letters.contains(&letter) {
                    letters.push(letter);
                }
                if letters.len() > MAX_LETTERS {
                    return None;
                }
            }
            Some(())
        };
        match class {
            Class::Unicode(class) => class.ranges().iter().try_for_each(|range| add(range.start(), range.end()))?,
            Class::Bytes(class) => {
                let ascii = class.is_ascii().then(|| class.ranges())?;
                ascii.iter().try_for_each(|range| add(char::from(range.start()), char::from(range.end())))?;
            }
        }
        Some(letters).filter(|letters| !letters.is_empty())
    }

    /// A letter of ASCII as the compared path has it; `None`: it may be of another script there.
    fn folded(&self, letter: char) -> Option<char> {
        match (self.case, letter) {
            (Case::Ignored, 'ſ') => Some('s'),
            // The sign of the unit Kelvin.
            (Case::Ignored, '\u{212a}') => Some('k'),
            (Case::Ignored, letter) => letter.is_ascii().then(|| letter.to_ascii_lowercase()),
            (Case::Sensitive, letter) => letter.is_ascii().then_some(letter),
        }
    }
}

/// Each text followed by each of the others; `None`: they are too many, or too long.
fn joined(texts: &[String], others: &[String]) -> Option<Vec<String>> {
    if texts.len() * others.len() > MAX_TEXTS {
        return None;
    }
    bounded(texts.iter().flat_map(|text| others.iter().map(move |other| format!("{text}{other}"))).collect())
}

fn bounded(texts: Vec<String>) -> Option<Vec<String>> {
    Some(texts).filter(|texts| texts.len() <= MAX_TEXTS && texts.iter().all(|text| text.len() <= MAX_LENGTH))
}

/// Drops texts that contain another text. `None`: a text is in too many paths.
fn useful(mut texts: Vec<String>) -> Option<Vec<String>> {
    if texts.is_empty() || shortest(&texts) < MIN_LENGTH {
        return None;
    }
    texts.sort_unstable_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        if !kept.iter().any(|shorter| text.contains(shorter.as_str())) {
            kept.push(text);
        }
    }
    Some(kept)
}

fn shortest(texts: &[String]) -> usize {
    texts.iter().map(String::len).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::regular_expression::{Subject, parse};

    fn texts_in(expression: &str, case: Case) -> Box<[AnyOf]> {
        required_texts(&parse(expression, Subject::ShortText, case == Case::Ignored).unwrap(), case)
    }

    #[track_caller]
    fn check(expression: &str, case: Case, expected: &[&[&str]]) {
        let found = texts_in(expression, case);
        let found: Vec<Vec<&str>> = found.iter().map(|texts| texts.iter().map(|text| &**text).collect()).collect();
        assert_eq!(found, expected, "{expression}");
    }

    #[test]
    fn what_every_matching_path_has_is_found() {
        check("^/shop-7/[0-9]+$", Case::Ignored, &[&["/shop-7/"]]);
        check("^/Shop/(?P<id>[^/]+)/Item$", Case::Ignored, &[&["/shop/"], &["/item"]]);
        check("^/Shop/(?P<id>[^/]+)/Item$", Case::Sensitive, &[&["/Shop/"], &["/Item"]]);
        check("/item-7[.]html?$", Case::Ignored, &[&["/item-7.htm"]]);
        check("^/admin(?:/|$)", Case::Ignored, &[&["/admin"]]);
        check("^/(en|de)/shop", Case::Ignored, &[&["/de/shop", "/en/shop"]]);
        check("^/(?:a[0-9]+/edit|b[0-9]+/delete)", Case::Ignored, &[&["/edit", "/delete"]]);
        check("^/v[12]/users(?:/[0-9]+)?$", Case::Ignored, &[&["/v1/users", "/v2/users"]]);
        check("(?:/ab){2}(?:/cd)+", Case::Ignored, &[&["/ab/ab"], &["/cd"]]);
        check("(?i)/KISS", Case::Sensitive, &[]);
        check("(?i)/KISS", Case::Ignored, &[&["/kiss"]]);
        check("^/straße/b", Case::Ignored, &[&["/stra"], &["e/b"]]);
    }

    #[test]
    fn what_may_be_missing_is_not_required() {
        check("^/", Case::Ignored, &[]);
        check("^/[a-z]+/?", Case::Ignored, &[]);
        check("(?:login)?", Case::Ignored, &[]);
        check("(?:login)*/", Case::Ignored, &[]);
        check("login|[0-9]+", Case::Ignored, &[]);
        check("login|", Case::Ignored, &[]);
        check("", Case::Ignored, &[]);
        check("[^a]{5}", Case::Ignored, &[]);
    }

    #[test]
    fn long_texts_and_many_are_bounded() {
        let long = "/ab".repeat(100);
        check(&long, Case::Sensitive, &[&[&long[..MAX_LENGTH]]]);
        assert!(texts_in(&long, Case::Ignored).iter().flatten().all(|text| text.len() <= MAX_LENGTH));
        let many: Vec<String> = (10..40).map(|n| format!("/{n}")).collect();
        check(&format!("(?:{})x+", many.join("|")), Case::Ignored, &[]);
    }

    #[track_caller]
    fn check_path_regex(regex: &str, case: Case, path: &str, expected: bool) {
        let regex = PathRegex::new(regex, case).unwrap();
        assert_eq!(regex.matches(&CanonicalPath::new(path)), expected, "{path} under {regex}");
    }

    #[test]
    fn an_expression_is_searched_for_unless_it_is_anchored() {
        check_path_regex("/v[0-9]+/", Case::Ignored, "/api/v2/users", true);
        check_path_regex("^/v[0-9]+/", Case::Ignored, "/api/v2/users", false);
        check_path_regex("^/login$", Case::Ignored, "/login/", true);
        check_path_regex("^/login$", Case::Ignored, "/x/../LOGIN", true);
        check_path_regex("^/login$", Case::Sensitive, "/LOGIN", false);
        check_path_regex("^/Straße$", Case::Ignored, "/straße", true);
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
        assert_eq!(refused("/(login"), InvalidRegularExpression::Syntax("unclosed group".into()).into());
        assert_eq!(refused(r"(\w{100}){100}"), InvalidRegularExpression::TooLarge.into());
    }
}
