//! Patterns that names must match.

use std::fmt;
use std::hash::{Hash, Hasher};

use regex_syntax::hir::{Hir, HirKind, Look};

use crate::words::regular_expression::{InvalidRegularExpression, RegularExpression, Subject, parse};
use crate::words::word::Help;

/// A regular expression that must match a whole value.
#[derive(Clone)]
pub struct NamePattern {
    text: Box<str>,
    regex: RegularExpression,
    can_match: bool,
}

impl NamePattern {
    pub fn new(text: &str) -> Result<Self, InvalidNamePattern> {
        let parsed = parse(text, Subject::ShortText, false)?;
        let can_match = !after(&parsed, Places::BEGINNING).is_empty();
        let whole = Hir::concat(vec![Hir::look(Look::Start), parsed, Hir::look(Look::End)]);
        let regex = RegularExpression::compile(&whole, Subject::ShortText, MAX_COMPILED_BYTES)?;
        Ok(Self { text: text.into(), regex, can_match })
    }

    /// In bytes: the memory that it takes.
    pub fn memory_usage(&self) -> usize {
        self.regex.memory_usage()
    }

    pub fn matches(&self, value: &str) -> bool {
        self.regex.is_match(value)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether there is a value that matches, as far as its anchors and classes tell.
    pub fn can_match(&self) -> bool {
        self.can_match
    }
}

/// Why this is no such expression.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct InvalidNamePattern(#[from] pub InvalidRegularExpression);

impl Help for InvalidNamePattern {
    fn help(&self) -> String {
        let help = match self.0 {
            InvalidRegularExpression::Syntax(_) => {
                "write one such as `[a-z][a-z0-9._-]*`; write a `\\` before a bracket or a dot that is meant literally"
            }
            InvalidRegularExpression::TooLarge => "lower the counts in its braces",
        };
        help.to_owned()
    }
}

/// Where in a value a match may stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Places(u8);

impl Places {
    const NONE: Self = Self(0);
    const BEGINNING: Self = Self(1);
    const INSIDE: Self = Self(2);
    /// At the end of an empty value.
    const EMPTY_END: Self = Self(4);
    const END: Self = Self(8);

    fn is_empty(self) -> bool {
        self == Self::NONE
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// After one more character.
    fn consumed(self) -> Self {
        if self.only(Self::BEGINNING.and(Self::INSIDE)).is_empty() { Self::NONE } else { Self::INSIDE }
    }

    /// Where nothing may follow.
    fn ended(self) -> Self {
        let empty = self.only(Self::BEGINNING.and(Self::EMPTY_END));
        let full = self.only(Self::INSIDE.and(Self::END));
        let mut ended = if empty.is_empty() { Self::NONE } else { Self::EMPTY_END };
        if !full.is_empty() {
            ended = ended.and(Self::END);
        }
        ended
    }
}

/// Where a match may stand after this expression.
fn after(hir: &Hir, before: Places) -> Places {
    if before.is_empty() {
        return before;
    }
    match hir.kind() {
        HirKind::Class(class) if class.is_empty() => Places::NONE,
        HirKind::Literal(_) | HirKind::Class(_) => before.consumed(),
        HirKind::Look(Look::Start) => before.only(Places::BEGINNING.and(Places::EMPTY_END)),
        HirKind::Look(Look::End) => before.ended(),
        // The characters beside it are ignored.
        HirKind::Empty | HirKind::Look(_) => before,
        HirKind::Capture(capture) => after(&capture.sub, before),
        HirKind::Concat(parts) => parts.iter().fold(before, |before, part| after(part, before)),
        HirKind::Alternation(parts) => parts.iter().fold(Places::NONE, |places, part| places.and(after(part, before))),
        HirKind::Repetition(repetition) => {
            // There are so few places that more rounds add none.
            let rounds = repetition.min.min(ROUNDS);
            let least = (0..rounds).fold(before, |before, _| after(&repetition.sub, before));
            let most = repetition.max.map_or(ROUNDS, |most| most.min(ROUNDS));
            let mut places = least;
            for _ in rounds..most {
                places = places.and(after(&repetition.sub, places));
            }
            places
        }
    }
}

const ROUNDS: u32 = 4;

/// More than any pattern of names needs.
const MAX_COMPILED_BYTES: usize = 1 << 20;

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

impl Hash for NamePattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamePattern").field(&self.text).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_value_must_match() {
        let pattern = NamePattern::new("[a-z]+|x1").expect("a pattern");
        for (value, matches) in [("alice", true), ("x1", true), ("alice1", false), ("", false), ("alice\n", false)] {
            assert_eq!(pattern.matches(value), matches, "{value:?}");
        }
        assert!(NamePattern::new("(").is_err() && NamePattern::new("a)(?:b").is_err());
        assert!(NamePattern::new("(?x) a # comment").expect("a pattern").matches("a"));
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_known() {
        let can_match = |text| NamePattern::new(text).expect("a pattern").can_match();
        for text in ["a^b", "a$b", "[^\\s\\S]", "x\\z.", "(a|b)\\Ac", "(?:a^b|c$d)+"] {
            assert!(!can_match(text), "{text}");
        }
        for text in ["", "a", "^a$", "^$", "a*^b", "a$|b", "(a^)?b", "\\bx", "a{3}", "^^a$$", "(?m)a$\\n^b"] {
            assert!(can_match(text), "{text}");
        }
    }
}
