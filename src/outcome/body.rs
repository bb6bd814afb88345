//! Patterns for the body of an answer.

use std::fmt;

use memchr::memmem;
use regex::bytes::Regex;
use regex::bytes::RegexBuilder;

use crate::regular_expression::compile_within;
use crate::regular_expression::syntax_mistake;

/// A text that a body contains, letter for letter, or a `/regular expression/` that matches in it.
#[derive(Clone, Debug)]
pub struct BodyPattern {
    text: Box<str>,
    matcher: BodyMatcher,
}

#[derive(Clone, Debug)]
enum BodyMatcher {
    Text(Box<memmem::Finder<'static>>),
    Regex { regex: Regex, compiled_bytes: usize },
}

/// An expression that compiles to more than this is a mistake.
const MAX_COMPILED_BYTES: usize = 1 << 20;

impl BodyPattern {
    /// `text`, or `/regex/` between slashes.
    pub fn parse(text: &str) -> Result<Self, InvalidBodyPattern> {
        let regex = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let matcher = match regex {
            _ if text.is_empty() => return Err(InvalidBodyPattern::Empty),
            Some("") => return Err(InvalidBodyPattern::Empty),
            Some(regex) => {
                let compile = |bound| RegexBuilder::new(regex).size_limit(bound).build();
                let built = compile_within(MAX_COMPILED_BYTES, compile);
                let (regex, compiled_bytes) = built.map_err(|error| InvalidBodyPattern::from(&error))?;
                BodyMatcher::Regex { regex, compiled_bytes }
            }
            None => BodyMatcher::Text(Box::new(memmem::Finder::new(text).into_owned())),
        };
        Ok(Self { text: text.into(), matcher })
    }

    /// So much memory its regular expression takes at most.
    pub fn compiled_bytes(&self) -> usize {
        match self.matcher {
            BodyMatcher::Text(_) => 0,
            BodyMatcher::Regex { compiled_bytes, .. } => compiled_bytes,
        }
    }

    pub fn is_in(&self, body: &[u8]) -> bool {
        match &self.matcher {
            BodyMatcher::Text(finder) => finder.find(body).is_some(),
            BodyMatcher::Regex { regex, .. } => regex.is_match(body),
        }
    }
}

impl fmt::Display for BodyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidBodyPattern {
    #[error("an empty text is in every body")]
    Empty,
    #[error("not a regular expression: {0}")]
    Syntax(String),
    #[error("the regular expression is too large")]
    TooLarge,
}

impl From<&regex::Error> for InvalidBodyPattern {
    fn from(error: &regex::Error) -> Self {
        syntax_mistake(error).map_or(Self::TooLarge, Self::Syntax)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(pattern: &str, body: &[u8], expected: bool) {
        assert_eq!(BodyPattern::parse(pattern).expect("a pattern").is_in(body), expected, "{pattern}");
    }

    #[test]
    fn a_text_matches_letter_for_letter_and_slashes_make_an_expression() {
        check("invalid password", b"<p>invalid password</p>", true);
        check("invalid password", b"<p>Invalid Password</p>", false);
        check("a.c", b"abc", false);
        check("/a.c/", b"xabcx", true);
        check("/(?i)invalid\\s+password/", b"INVALID \n Password", true);
        check("/account", b"see /account", true);
        check("caf\u{e9}", "un café".as_bytes(), true);
        check("ok", b"\xff\xfeok\xff", true);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let refused = |text: &str| BodyPattern::parse(text).expect_err("no pattern");
        assert_eq!(refused(""), InvalidBodyPattern::Empty);
        assert_eq!(refused("//"), InvalidBodyPattern::Empty);
        assert_eq!(refused("/(/"), InvalidBodyPattern::Syntax("unclosed group".into()));
        assert_eq!(refused("/(a{1000}){1000}/"), InvalidBodyPattern::TooLarge);
    }

    proptest! {
        #[test]
        fn any_pattern_is_looked_for_or_refused(text in "/?[ -~]{0,12}/?", body in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(pattern) = BodyPattern::parse(&text) {
                pattern.is_in(&body);
                prop_assert_eq!(pattern.to_string(), text);
            }
        }

        #[test]
        fn a_text_is_found_wherever_it_stands(text in "[a-z]{1,8}", before in "[ -~]{0,20}", behind in "[ -~]{0,20}") {
            let pattern = BodyPattern::parse(&text).expect("a text");
            let body = format!("{before}{text}{behind}");
            prop_assert!(pattern.is_in(body.as_bytes()));
        }
    }
}
