//! Inspects the body of an answer while it streams.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use memchr::memmem;
use serde_json::Value;

use crate::rules::outcome::{Matchers, Outcome, OutcomeRule, Side, SideMatch};
use crate::rules::request::encoding::ContentCodings;
use crate::wire::head::Fields;
use crate::words::clock::Timestamp;
use crate::words::coalesce::BodyBuffer;
use crate::words::regular_expression::{InvalidRegularExpression, RegularExpression, Subject, parse};
use crate::words::word::Help;

/// An answer whose head does not decide the outcome. The inspection keeps little more of the body than its bound, and
/// reads at most that much decoded text.
#[derive(Debug)]
pub struct Inspection {
    rule: Arc<OutcomeRule>,
    /// Dotted paths of tokens in a JSON body.
    tokens: Arc<[Box<str>]>,
    /// How the head matches: the success side, then the failure side.
    sides: (SideMatch, SideMatch),
    codings: ContentCodings,
    bound: usize,
    read: BodyBuffer,
    /// The body was longer than may be kept.
    is_full: bool,
    /// The answer is partial content, so its body is never complete.
    is_part: bool,
}

/// The outcome of an answer that was read to its end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inspected {
    /// `None` when it cannot be decided.
    pub outcome: Option<Outcome>,
    /// The tokens in the body.
    pub tokens: Vec<Box<str>>,
    /// The body broke off before its end, and may have had tokens there.
    pub may_lack_tokens: bool,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyEnd {
    Whole,
    /// The rest of the body, or all of it, was not sent.
    Cut,
}

/// How much of a text was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Coverage {
    All,
    /// The start of the body, up to the bound.
    Start,
    /// The text before the body broke off or could not be decoded.
    Fragment,
}

impl Inspection {
    /// Begins when the head does not decide the outcome, or where the body may have tokens. `bound` is in bytes of decoded
    /// text, `now` the moment of the answer by the wall clock.
    pub fn begin(
        rule: Arc<OutcomeRule>,
        tokens: Option<Arc<[Box<str>]>>,
        status: StatusCode,
        fields: &Fields,
        now: Timestamp,
        bound: usize,
    ) -> Self {
        let sides = rule.sides_of_head(status, fields, now);
        let is_part = status == StatusCode::PARTIAL_CONTENT;
        let read = BodyBuffer::expecting(room(bound));
        Self {
            rule,
            tokens: tokens.unwrap_or_default(),
            sides,
            codings: ContentCodings::of(fields),
            bound,
            read,
            is_full: false,
            is_part,
        }
    }

    /// Takes the next bytes of the body, as they came.
    pub fn feed(&mut self, data: &[u8]) {
        let room = room(self.bound).saturating_sub(self.read.len());
        self.read.copy(&data[..data.len().min(room)]);
        self.is_full |= data.len() > room;
    }

    /// Whether more bytes of the body would be ignored.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The outcome, and the tokens in the body.
    pub fn conclude(self, ending: BodyEnd) -> Inspected {
        let decoded = if self.codings.is_none() {
            DecodedTexts { bodies: vec![Cow::Borrowed(self.read.as_slice())], seen: Coverage::All }
        } else {
            let decoded = self.codings.decode(self.read.as_slice(), self.bound);
            let seen = if decoded.whole { Coverage::All } else { Coverage::Fragment };
            DecodedTexts { bodies: decoded.bodies, seen }
        };
        let texts = decoded.bounded(self.bound, self.is_full, ending == BodyEnd::Cut || self.is_part);
        let documents = if self.reads_json() { texts.documents() } else { Vec::new() };
        let ask = |head, matchers: &Option<Matchers>, side| match (head, matchers) {
            (SideMatch::Unsure, Some(matchers)) => texts.ask(&documents, matchers, side),
            (known, _) => known,
        };
        let success = ask(self.sides.0, &self.rule.success, Side::Success);
        let failure = ask(self.sides.1, &self.rule.failure, Side::Failure);
        Inspected {
            outcome: self.rule.resolve(success, failure),
            tokens: self.tokens.iter().flat_map(|path| texts_at(&documents, path)).collect(),
            may_lack_tokens: !self.tokens.is_empty() && texts.seen == Coverage::Fragment,
        }
    }

    fn reads_json(&self) -> bool {
        let mut sides = [&self.rule.success, &self.rule.failure].into_iter().flatten();
        !self.tokens.is_empty() || sides.any(|matchers| !matchers.json.is_empty())
    }
}

/// The bytes that an inspection may keep: a compressed body may be a little longer than its text.
pub fn room(bound: usize) -> usize {
    bound.saturating_add(bound / 16).saturating_add(1024)
}

/// The decoded body.
struct DecodedTexts<'b> {
    /// Several where the body can be decoded in several ways.
    bodies: Vec<Cow<'b, [u8]>>,
    seen: Coverage,
}

impl DecodedTexts<'_> {
    fn bounded(mut self, bound: usize, is_full: bool, is_cut: bool) -> Self {
        let is_long = self.bodies.iter().any(|body| body.len() > bound);
        let fills_it = self.bodies.iter().any(|body| body.len() >= bound);
        for body in &mut self.bodies {
            *body = match std::mem::take(body) {
                Cow::Borrowed(text) => Cow::Borrowed(&text[..text.len().min(bound)]),
                Cow::Owned(mut text) => {
                    text.truncate(bound);
                    Cow::Owned(text)
                }
            };
        }
        self.seen = match self.seen {
            _ if is_long => Coverage::Start,
            Coverage::All if !is_full && !is_cut => Coverage::All,
            // It broke off after the bound.
            _ if is_full || fills_it => Coverage::Start,
            _ => Coverage::Fragment,
        };
        self
    }

    /// The bodies that are JSON.
    fn documents(&self) -> Vec<Value> {
        let document = |body: &Cow<'_, [u8]>| {
            let text = String::from_utf8_lossy(body);
            serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
        };
        self.bodies.iter().filter_map(document).collect()
    }

    fn ask(&self, documents: &[Value], matchers: &Matchers, side: Side) -> SideMatch {
        let unless_found = match (self.seen, side) {
            (Coverage::All, _) | (Coverage::Start, Side::Success) => SideMatch::No,
            // A client that makes a page longer must not hide the mark of a failure behind the bound.
            (Coverage::Start, Side::Failure) | (Coverage::Fragment, _) => SideMatch::Unsure,
        };
        let mut all = SideMatch::Yes;
        if let Some(pattern) = &matchers.body
            && !self.bodies.iter().any(|body| pattern.is_in(body))
        {
            all = unless_found;
        }
        for (path, expected) in &matchers.json {
            if documents.iter().any(|document| matches(document, path, expected)) {
                continue;
            }
            let is_decided = !documents.is_empty() || unless_found == SideMatch::No;
            all = if is_decided || all == SideMatch::No { SideMatch::No } else { SideMatch::Unsure };
        }
        all
    }
}

// Patterns for the body of an answer.

/// An expression that compiles to more than this is a mistake.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A text that a body contains, letter for letter, or a `/regular expression/` that matches in it.
#[derive(Clone, Debug)]
pub struct BodyPattern {
    text: Box<str>,
    matcher: BodyMatcher,
}

#[derive(Clone, Debug)]
enum BodyMatcher {
    Text(Box<memmem::Finder<'static>>),
    Regex(RegularExpression),
}

impl BodyPattern {
    /// `text`, or `/regex/` between slashes.
    pub fn parse(text: &str) -> Result<Self, InvalidBodyPattern> {
        let regex = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let matcher = match regex {
            _ if text.is_empty() => return Err(InvalidBodyPattern::Empty),
            Some("") => return Err(InvalidBodyPattern::Empty),
            Some(regex) => {
                let parsed = parse(regex, Subject::Body, false)?;
                BodyMatcher::Regex(RegularExpression::compile(&parsed, Subject::Body, MAX_COMPILED_BYTES)?)
            }
            None => BodyMatcher::Text(Box::new(memmem::Finder::new(text).into_owned())),
        };
        Ok(Self { text: text.into(), matcher })
    }

    /// In bytes: the memory that its regular expression takes.
    pub fn memory_usage(&self) -> usize {
        match &self.matcher {
            BodyMatcher::Text(_) => 0,
            BodyMatcher::Regex(regex) => regex.memory_usage(),
        }
    }

    pub fn is_in(&self, body: &[u8]) -> bool {
        match &self.matcher {
            BodyMatcher::Text(finder) => finder.find(body).is_some(),
            BodyMatcher::Regex(regex) => regex.is_match(body),
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
    #[error(transparent)]
    Expression(#[from] InvalidRegularExpression),
}

impl Help for InvalidBodyPattern {
    fn help(&self) -> String {
        let help = match self {
            Self::Empty => "write a text that only such answers contain, or remove `body`",
            Self::Expression(InvalidRegularExpression::Syntax(_)) => {
                "write one such as `/invalid (user|password)/`; a literal text has no slashes around it"
            }
            Self::Expression(InvalidRegularExpression::TooLarge) => "lower the counts in its braces",
        };
        help.to_owned()
    }
}

// Reads the value at a dotted path of a JSON answer.

/// Whether the value at a dotted path equals `expected`: strings without their quotes, `true`, `false` and `null` as in
/// JSON, numbers by their value. Array elements are named by their position, from 0.
pub fn matches(document: &Value, path: &str, expected: &str) -> bool {
    at(document, path).is_some_and(|value| is_spelt(value, expected))
}

/// The text at a dotted path, of each document that has one there.
pub fn texts_at(documents: &[Value], path: &str) -> impl Iterator<Item = Box<str>> {
    let text = |document| match at(document, path)? {
        Value::String(text) if !text.is_empty() => Some(text.as_str().into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    };
    documents.iter().filter_map(text)
}

fn at<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(document, |value, name| match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(elements) => elements.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

fn is_spelt(value: &Value, expected: &str) -> bool {
    match value {
        Value::Null => expected == "null",
        Value::Bool(value) => expected == if *value { "true" } else { "false" },
        Value::Number(number) => {
            let same = || {
                number
                    .as_f64()
                    .zip(expected.parse::<f64>().ok())
                    .is_some_and(|(one, other)| one.total_cmp(&other).is_eq())
            };
            number.to_string() == expected || same()
        }
        Value::String(text) => text == expected,
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod json_tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(document: &str, path: &str, expected: &str, expected_match: bool) {
        let document = serde_json::from_str(document).expect("JSON");
        assert_eq!(matches(&document, path, expected), expected_match, "{path}: {expected}");
    }

    #[test]
    fn a_value_is_found_at_its_path_alone() {
        check(r#"{"ok": false}"#, "ok", "false", true);
        check(r#"{"ok": true}"#, "ok", "false", false);
        check(r#"{"OK": false}"#, "ok", "false", false);
        check(r#"{"error": {"code": "bad_password"}}"#, "error.code", "bad_password", true);
        check(r#"{"user": {"ok": true}, "ok": false}"#, "ok", "true", false);
        check(r#"{"errors": [{"code": 7}]}"#, "errors.0.code", "7", true);
        check(r#"{"errors": []}"#, "errors.0.code", "7", false);
        check(r#"{"token": null}"#, "token", "null", true);
        check("{}", "token", "null", false);
        check(r#"{"code": 1.0}"#, "code", "1", true);
        check(r#"{"code": {"a": 1}}"#, "code", "1", false);
    }

    proptest! {
        #[test]
        fn any_path_of_any_document_is_looked_at(path in "[a.0-9]{0,12}", value in "[a-z0-9.e+-]{0,8}") {
            let document = serde_json::json!({"a": [{"a": 1.0}, true, null, "x", 1e300], "": {"": "y"}, "0": [[2]]});
            prop_assert!(!matches(&document, &path, &value) || !value.is_empty());
        }
    }
}

#[cfg(test)]
mod body_tests {
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
        assert_eq!(refused("/(/"), InvalidRegularExpression::Syntax("unclosed group".into()).into());
        assert_eq!(refused("/(a{1000}){1000}/"), InvalidRegularExpression::TooLarge.into());
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

#[cfg(test)]
mod tests;
