//! The claims of verified tokens.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use smallvec::SmallVec;

use crate::rules::jwt::Unverified;
use crate::rules::request::head::{header_values, judge_bearer};
use crate::rules::request::query::{cookie_values, judge_cookies};
use crate::wire::head::{FieldName, Fields, KnownName};
use crate::words::clock::Timestamp;

/// Paths and values of one token together, in bytes. A long name repeats with each element of a list in it.
const MAX_SIZE: usize = 32 * 1024;

/// The claims of a verified token: texts, numbers and booleans by their dotted paths.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claims {
    /// In the order of the names. Elements of a list have the path of the list.
    leaves: Box<[Leaf]>,
    /// By the wall clock. `None`: it does not end.
    pub ends: Option<Timestamp>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Leaf {
    path: Box<str>,
    value: Box<str>,
}

impl Claims {
    /// The claims of a token that was verified; `None`: there are too many to keep.
    pub fn new(payload: &Map<String, Value>, ends: Option<Timestamp>) -> Option<Self> {
        let mut leaves = Leaves::default();
        leaves.add_members("", payload);
        (leaves.size <= MAX_SIZE).then(|| Self { leaves: leaves.found.into(), ends })
    }

    /// Every value at a dotted path: of a list each element. A name may have dots itself, as in
    /// `https://example.com/plan`.
    pub fn values<'c>(&'c self, path: &'c str) -> impl Iterator<Item = &'c str> {
        self.leaves.iter().filter(move |leaf| *leaf.path == *path).map(|leaf| &*leaf.value)
    }

    /// How much memory it takes, in bytes, about.
    pub fn weight(&self) -> usize {
        let leaf = |leaf: &Leaf| size_of::<Leaf>() + leaf.path.len() + leaf.value.len();
        size_of::<Self>() + self.leaves.iter().map(leaf).sum::<usize>()
    }
}

/// The claims found so far.
#[derive(Default)]
struct Leaves {
    found: Vec<Leaf>,
    size: usize,
}

impl Leaves {
    fn add_members(&mut self, path: &str, members: &Map<String, Value>) {
        for (name, value) in members {
            if self.size > MAX_SIZE {
                return;
            }
            if path.is_empty() {
                self.add(name, value);
            } else {
                self.add(&format!("{path}.{name}"), value);
            }
        }
    }

    fn add(&mut self, path: &str, value: &Value) {
        if self.size > MAX_SIZE {
            return;
        }
        let text = match value {
            Value::Null => return,
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            Value::Array(elements) => return elements.iter().for_each(|element| self.add(path, element)),
            Value::Object(members) => return self.add_members(path, members),
        };
        self.size += path.len() + text.len();
        self.found.push(Leaf { path: path.into(), value: text.into() });
    }
}

// The claims of the tokens of one request.

/// The claims of the verified tokens in a request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RequestClaims {
    verified: SmallVec<[Arc<Claims>; 1]>,
    /// Whether something beside them may be taken for a valid token.
    may_hide: bool,
}

impl RequestClaims {
    /// The claims of a request without a token.
    pub const NONE: &'static Self = &Self { verified: SmallVec::new_const(), may_hide: false };

    /// Verifies everything that a request presents.
    pub fn of(
        presented: &PresentedTokens<'_>,
        mut verify: impl FnMut(&str) -> Result<Arc<Claims>, Unverified>,
    ) -> Self {
        let mut claims = Self { may_hide: presented.may_hide, ..Self::default() };
        let mut has_unverified = presented.has_others;
        for token in &presented.tokens {
            match verify(token) {
                Ok(verified) => claims.verified.push(verified),
                Err(reason) => {
                    has_unverified = true;
                    claims.may_hide |= reason.may_hide_claims();
                }
            }
        }
        // An application that reads another token than the verified one may take the client for another user.
        claims.may_hide |= has_unverified && !claims.verified.is_empty();
        claims
    }

    /// The values of a claim in every verified token.
    pub fn values<'c>(&'c self, path: &'c str) -> impl Iterator<Item = &'c str> {
        self.verified.iter().flat_map(move |claims| claims.values(path))
    }

    /// Whether an application may read a claim there that is not among its [`values`](Self::values): beside the verified
    /// token stands something else, or a verified token lacks the claim that another has.
    pub fn may_hide(&self, path: &str) -> bool {
        let lacks = |claims: &Arc<Claims>| claims.values(path).next().is_none();
        self.may_hide || (self.verified.len() > 1 && self.verified.iter().any(lacks))
    }

    /// Whether a token was verified.
    pub fn is_verified(&self) -> bool {
        !self.verified.is_empty()
    }
}

// Where requests carry tokens.

/// Tokens of one request that are looked at. No honest client sends several.
const MAX_TOKENS: usize = 4;

/// Where the application looks for tokens.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum TokenPlace {
    /// `Authorization: Bearer`
    #[default]
    Bearer,
    Cookie(Box<str>),
    Header(FieldName),
}

/// The content at the place of a token.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PresentedTokens<'h> {
    /// Each once, in order.
    pub tokens: SmallVec<[Cow<'h, str>; 1]>,
    /// Whether something else stands there too: credentials of another scheme, or more than are looked at.
    pub has_others: bool,
    /// Whether an application may find a token there that was not found.
    pub may_hide: bool,
}

impl TokenPlace {
    /// Everything in this place of a request with these header fields.
    pub fn presented<'h>(&'h self, fields: &'h Fields) -> PresentedTokens<'h> {
        let mut presented = PresentedTokens::default();
        match self {
            Self::Bearer => {
                presented.may_hide = judge_bearer(fields).is_err();
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
    use serde_json::json;

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
    fn an_authorization_that_is_not_as_clients_write_it_may_hide_a_token() {
        let may_hide = |lines: &[&str]| {
            let fields: Fields = lines.iter().map(|line| (KnownName::AUTHORIZATION, line)).collect();
            TokenPlace::Bearer.presented(&fields).may_hide
        };
        for line in
            ["Bearer a.b.c", "bearer a.b.c", "Basic eDp5", "Digest username=\"x\", realm=\"y\"", "Negotiate YQ=="]
        {
            assert!(!may_hide(&[line]), "{line}");
        }
        assert!(!may_hide(&[]));
        for line in [
            "X,Bearer a.b.c",
            "Basic eDp5, Bearer a.b.c",
            "Basic eDp5,bEARER a.b.c",
            "Digest username=\"Bearer a.b.c\"",
            "Bearer a.b.c, Basic eDp5",
            "Bearer a.b.c d.e.f",
            "\u{a0}Bearer a.b.c",
            "a.b.c, x",
            "",
        ] {
            assert!(may_hide(&[line]), "{line}");
        }
        assert!(may_hide(&["Basic eDp5", "Digest x"]));
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

    fn claims(payload: &Value) -> Option<Claims> {
        Claims::new(payload.as_object().unwrap(), None)
    }

    #[test]
    fn values_have_dotted_paths_and_of_a_list_each_counts() {
        let claims = claims(&json!({
            "sub": "alice",
            "level": 3,
            "ratio": 1.5,
            "admin": true,
            "nothing": null,
            "empty": {},
            "realm_access": {"roles": ["user", "admin", ["nested"], null]},
            "groups": [{"id": 1}, {"id": 2}],
            "https://example.com/plan": "gold",
            "a": {"b": "inner"},
            "a.b": "outer",
        }))
        .unwrap();
        let values = |path| claims.values(path).collect::<Vec<_>>();
        assert_eq!(values("sub"), ["alice"]);
        assert_eq!(values("level"), ["3"]);
        assert_eq!(values("ratio"), ["1.5"]);
        assert_eq!(values("admin"), ["true"]);
        assert_eq!(values("realm_access.roles"), ["user", "admin", "nested"]);
        assert_eq!(values("groups.id"), ["1", "2"]);
        assert_eq!(values("https://example.com/plan"), ["gold"]);
        assert_eq!(values("a.b"), ["inner", "outer"]);
        for path in ["nothing", "empty", "realm_access", "SUB", "", "sub.x"] {
            assert!(values(path).is_empty(), "{path}");
        }
    }

    #[test]
    fn more_claims_than_can_be_kept_are_none() {
        let name = "n".repeat(4000);
        assert!(claims(&json!({ &name: [1, 2, 3] })).is_some());
        assert!(claims(&json!({ &name: vec![1; 1000] })).is_none());
    }
}
