//! Where requests carry tokens.

use std::borrow::Cow;
use std::fmt;

use smallvec::SmallVec;

use crate::head::FieldName;
use crate::head::Fields;
use crate::head::KnownName;
use crate::request::header::header_values;
use crate::request::query::cookie_values;
use crate::request::query::judge_cookies;

/// Where the application looks for tokens.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum TokenPlace {
    /// `Authorization: Bearer`
    #[default]
    Bearer,
    Cookie(Box<str>),
    Header(FieldName),
}

/// What stands in the place of a token.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PresentedTokens<'h> {
    /// Each once, in order.
    pub tokens: SmallVec<[Cow<'h, str>; 1]>,
    /// Whether something else stands there too: credentials of another scheme, or more than are looked at.
    pub has_others: bool,
    /// Whether an application may find a token there that was not found.
    pub may_hide: bool,
}

/// Tokens of one request that are looked at. No honest client sends several.
const MAX_TOKENS: usize = 4;

impl TokenPlace {
    /// Everything in this place of a request with these header fields.
    pub fn presented<'h>(&'h self, fields: &'h Fields) -> PresentedTokens<'h> {
        let mut presented = PresentedTokens::default();
        match self {
            Self::Bearer => {
                header_values(fields, KnownName::AUTHORIZATION).for_each(|line| presented.add_credentials(line));
            }
            Self::Cookie(name) => {
                presented.may_hide = judge_cookies(fields, name).is_err();
                cookie_values(fields, name).for_each(|token| presented.add(token));
            }
            Self::Header(name) => header_values(fields, name).for_each(|token| presented.add(token)),
        }
        presented
    }

    /// The header that the configuration names here.
    pub fn header(&self) -> Option<&FieldName> {
        match self {
            Self::Header(name) => Some(name),
            Self::Bearer | Self::Cookie(_) => None,
        }
    }
}

impl fmt::Display for TokenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer => f.write_str("bearer"),
            Self::Cookie(name) => write!(f, "cookie.{name}"),
            Self::Header(name) => write!(f, "header.{name}"),
        }
    }
}

impl<'h> PresentedTokens<'h> {
    fn add(&mut self, token: Cow<'h, str>) {
        if self.tokens.contains(&token) {
            return;
        }
        if self.tokens.len() < MAX_TOKENS {
            self.tokens.push(token);
        } else {
            self.has_others = true;
        }
    }

    /// Adds the token of an `Authorization` line. The scheme is compared without case.
    fn add_credentials(&mut self, line: Cow<'h, str>) {
        let end = line.find(|letter: char| letter.is_ascii_whitespace()).unwrap_or(line.len());
        if !line[..end].eq_ignore_ascii_case("bearer") {
            self.has_others = true;
            return;
        }
        let is_blank = |letter: char| letter.is_ascii_whitespace();
        self.add(match line {
            Cow::Borrowed(line) => Cow::Borrowed(line[end..].trim_matches(is_blank)),
            Cow::Owned(line) => Cow::Owned(line[end..].trim_matches(is_blank).to_owned()),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(place: &TokenPlace, sent: &[(&str, &str)], expected: &[&str], has_others: bool) {
        let mut fields = Fields::default();
        for (name, value) in sent {
            fields.append(&name.parse::<FieldName>().unwrap(), value.as_bytes());
        }
        let presented = place.presented(&fields);
        assert_eq!(presented.tokens.as_slice(), expected);
        assert_eq!(presented.has_others, has_others);
    }

    #[test]
    fn every_bearer_token_is_found_and_other_credentials_are_seen() {
        let place = TokenPlace::Bearer;
        check(&place, &[], &[], false);
        check(&place, &[("authorization", "Bearer a.b.c")], &["a.b.c"], false);
        check(&place, &[("authorization", "bEARER \t a.b.c ")], &["a.b.c"], false);
        check(&place, &[("authorization", "Bearer a"), ("authorization", "Bearer a")], &["a"], false);
        check(&place, &[("authorization", "Bearer a"), ("authorization", "bearer b")], &["a", "b"], false);
        check(&place, &[("authorization", "Bearer a"), ("authorization", "Basic b")], &["a"], true);
        check(&place, &[("authorization", "Bearer")], &[""], false);
        check(&place, &[("authorization", "")], &[], true);
        let many: Vec<_> =
            ["Bearer a", "Bearer b", "Bearer c", "Bearer d", "Bearer e"].map(|line| ("authorization", line)).into();
        check(&place, &many, &["a", "b", "c", "d"], true);
    }

    #[test]
    fn a_cookie_or_another_header_may_carry_the_token() {
        let cookie = TokenPlace::Cookie("id".into());
        check(&cookie, &[("cookie", "x=1; id=a.b.c; id=d"), ("cookie", "id=e")], &["a.b.c", "d", "e"], false);
        check(&cookie, &[("cookie", "id=a%2Eb")], &["a%2Eb", "a.b"], false);
        let mut fields = Fields::default();
        fields.append(KnownName::COOKIE, b"x=1, id = a.b.c");
        assert!(cookie.presented(&fields).may_hide, "the line is not as clients write it");
        let header = TokenPlace::Header("x-token".parse().unwrap());
        check(&header, &[("x-token", " a.b.c "), ("authorization", "Bearer d")], &["a.b.c"], false);
    }
}
