//! Patterns for values of headers, query parameters and cookies, and for names of cookies: `*` is any text, `?` any one
//! character. In entries of descriptors `[*]` and `[?]` are these characters themselves.

use std::fmt;
use std::str::Chars;

use caseless::default_case_fold_str;

/// A pattern for a whole text.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Glob {
    text: Box<str>,
    tokens: Box<[Token]>,
    /// Letters are compared without case.
    folds: bool,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Token {
    AnyText,
    AnyOne,
    Letter(char),
}

impl Glob {
    /// A pattern for values. Letters are compared without case, so that no spelling of a value slips past a route.
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), tokens: tokens(&default_case_fold_str(text)), folds: true }
    }

    /// A pattern for names of cookies, which are compared with case.
    pub fn cased(text: &str) -> Self {
        Self { text: text.into(), tokens: tokens(text), folds: false }
    }

    /// A pattern for entries of descriptors, which are compared with case. `[*]` and `[?]` stand for these characters
    /// themselves.
    pub fn of_entry(text: &str) -> Self {
        Self { text: text.into(), tokens: entry_tokens(text), folds: false }
    }

    /// Whether a text has a wildcard, and so is probably meant as a pattern.
    pub fn looks_like_glob(text: &str) -> bool {
        text.contains(['*', '?'])
    }

    /// Whether the pattern matches the whole value.
    pub fn matches(&self, value: &str) -> bool {
        if !self.folds || value.is_ascii() {
            self.fits(value.chars())
        } else {
            self.fits(default_case_fold_str(value).chars())
        }
    }

    /// Backtracks to the last `*` only, because no earlier one can match more.
    fn fits(&self, mut rest: Chars<'_>) -> bool {
        let mut at = 0;
        let mut retry: Option<(usize, Chars<'_>)> = None;
        loop {
            let before = rest.clone();
            let letter = rest.next().map(|letter| if self.folds { letter.to_ascii_lowercase() } else { letter });
            match (self.tokens.get(at), letter) {
                (Some(Token::AnyText), _) => {
                    at += 1;
                    retry = Some((at, before.clone()));
                    rest = before;
                    continue;
                }
                (Some(Token::AnyOne), Some(_)) => {
                    at += 1;
                    continue;
                }
                (Some(Token::Letter(expected)), Some(letter)) if *expected == letter => {
                    at += 1;
                    continue;
                }
                (None, None) => return true,
                _ => {}
            }
            // The last `*` takes one character more, until there is none.
            let Some((after_star, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            at = *after_star;
            rest = from.clone();
        }
    }
}

fn tokens(text: &str) -> Box<[Token]> {
    let mut tokens = Vec::new();
    for letter in text.chars() {
        match letter {
            '*' if tokens.last() == Some(&Token::AnyText) => {}
            '*' => tokens.push(Token::AnyText),
            '?' => tokens.push(Token::AnyOne),
            letter => tokens.push(Token::Letter(letter)),
        }
    }
    tokens.into()
}

fn entry_tokens(text: &str) -> Box<[Token]> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let literal = LITERALS.iter().find_map(|(letter, written)| Some((*letter, rest.strip_prefix(written)?)));
        if let Some((letter, after)) = literal {
            tokens.push(Token::Letter(letter));
            rest = after;
        } else {
            let (letter, after) = rest.split_at(rest.chars().next().map_or(rest.len(), char::len_utf8));
            tokens.extend(self::tokens(letter));
            rest = after;
        }
    }
    tokens.dedup_by(|next, token| *next == Token::AnyText && *token == Token::AnyText);
    tokens.into()
}

/// Characters of an entry's pattern that would stand for others, and how they are written to stand for themselves.
pub const LITERALS: [(char, &str); 2] = [('*', "[*]"), ('?', "[?]")];

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(pattern: &str, value: &str, expected: bool) {
        assert_eq!(Glob::new(pattern).matches(value), expected, "{value:?} under {pattern:?}");
    }

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        check("*", "", true);
        check("*", "anything", true);
        check("", "", true);
        check("", "x", false);
        check("a*c", "abbbc", true);
        check("a*c", "abbbcd", false);
        check("a?c", "abc", true);
        check("a?c", "ac", false);
        check("?", "é", true);
        check("*.jpg", "x.jpg.jpg", true);
        check("*a*b", "aab", true);
        check("*ab*", "aaab!", true);
        check("?*", "", false);
        check("text/*", "text/html", true);
    }

    #[test]
    fn letters_are_compared_without_case() {
        check("Login", "lOGIN", true);
        check("straße", "STRASSE", true);
        check("ÉTÉ*", "été 24", true);
    }

    #[test]
    fn names_of_cookies_are_compared_with_case() {
        let glob = Glob::cased("Session_*");
        assert!(glob.matches("Session_é"));
        assert!(!glob.matches("session_x"));
    }

    #[test]
    fn wildcards_in_brackets_are_themselves_in_entries_of_descriptors() {
        for (pattern, value, expected) in [
            ("a[*]b", "a*b", true),
            ("a[*]b", "axb", false),
            ("a[*]b*", "a*bc", true),
            ("[?]", "?", true),
            ("[?]", "x", false),
            ("[[*]]", "[*]", true),
            ("[[*]]", "[x]", false),
            ("[a]*", "[a]b", true),
            ("**[", "x[", true),
            ("A*", "a", false),
        ] {
            assert_eq!(Glob::of_entry(pattern).matches(value), expected, "{value:?} under {pattern:?}");
        }
    }

    /// Matches a glob by trying every possibility.
    fn matches_by_trying(pattern: &[char], value: &[char]) -> bool {
        match pattern.split_first() {
            None => value.is_empty(),
            Some(('*', rest)) => (0..=value.len()).any(|taken| matches_by_trying(rest, &value[taken..])),
            Some(('?', rest)) => !value.is_empty() && matches_by_trying(rest, &value[1..]),
            Some((letter, rest)) => value.first() == Some(letter) && matches_by_trying(rest, &value[1..]),
        }
    }

    proptest! {
        #[test]
        fn a_glob_matches_what_trying_every_possibility_matches(pattern in "[ab*?]{0,8}", value in "[ab]{0,10}") {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(Glob::new(&pattern).matches(&value), matches_by_trying(&letters(&pattern), &letters(&value)));
        }
    }
}
