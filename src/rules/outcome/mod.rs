//! Decides what an application's answer means: success, failure, or neither.
//!
//! [`OutcomeRule::of_head`] decides by the head of the answer. If the head is not enough, an [`Inspection`] reads the
//! body while it streams.

pub mod inspection;
pub mod set_cookie;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use http::StatusCode;
use smallvec::SmallVec;

pub use self::inspection::{BodyPattern, Inspected, Inspection, InvalidBodyPattern};
use crate::wire::head::{FieldName, Fields};
use crate::words::clock::Timestamp;
use crate::words::glob::Glob;
use crate::words::word::{Help, words};

// The `outcome` section of a route: the rule that decides what an answer means.

words! {
    /// The meaning of an answer.
    pub enum Outcome {
        Success = "success",
        Failure = "failure",
        Neither = "neither",
    }
}

/// The `outcome` section of a route. When both sides match, the outcome is a failure.
#[derive(Clone, Debug)]
pub struct OutcomeRule {
    pub success: Option<Matchers>,
    pub failure: Option<Matchers>,
    /// The outcome of answers that match neither side.
    pub otherwise: Outcome,
}

impl OutcomeRule {
    /// The default of `otherwise` is the opposite of the only side, or neither when there are two sides.
    pub fn new(success: Option<Matchers>, failure: Option<Matchers>, otherwise: Option<Outcome>) -> Self {
        let otherwise = otherwise.unwrap_or(match (&success, &failure) {
            (Some(_), None) => Outcome::Failure,
            (None, Some(_)) => Outcome::Success,
            _ => Outcome::Neither,
        });
        Self { success, failure, otherwise }
    }

    /// The outcome, if the head of the answer decides it. `now` is the moment of the answer by the wall clock.
    pub fn of_head(&self, status: StatusCode, fields: &Fields, now: Timestamp) -> Option<Outcome> {
        let (success, failure) = self.sides_of_head(status, fields, now);
        self.resolve(success, failure)
    }

    /// Whether the outcome may depend on the body.
    pub fn needs_body(&self) -> bool {
        [&self.success, &self.failure].into_iter().flatten().any(Matchers::needs_body)
    }

    /// How a head matches the success side and the failure side; unsure when the body decides.
    pub(super) fn sides_of_head(&self, status: StatusCode, fields: &Fields, now: Timestamp) -> (SideMatch, SideMatch) {
        let ask = |matchers: &Option<Matchers>, side| {
            matchers.as_ref().map_or(SideMatch::No, |matchers| matchers.of_head(side, status, fields, now))
        };
        (ask(&self.success, Side::Success), ask(&self.failure, Side::Failure))
    }

    /// `None` when the outcome depends on something unknown.
    pub(super) fn resolve(&self, success: SideMatch, failure: SideMatch) -> Option<Outcome> {
        match (failure, success) {
            (SideMatch::Yes, _) => Some(Outcome::Failure),
            (SideMatch::No, SideMatch::Yes) => Some(Outcome::Success),
            (SideMatch::No, SideMatch::No) => Some(self.otherwise),
            (SideMatch::No, SideMatch::Unsure) => Some(Outcome::Success).filter(|it| *it == self.otherwise),
            (SideMatch::Unsure, SideMatch::No) => Some(Outcome::Failure).filter(|it| *it == self.otherwise),
            (SideMatch::Unsure, _) => None,
        }
    }
}

// One side of an outcome: the conditions that an answer must all meet.

/// Conditions that must all hold. Without any, every answer matches.
#[derive(Clone, Debug, Default)]
pub struct Matchers {
    pub status: Option<StatusSet>,
    /// A header with this name and a value that matches.
    pub headers: Vec<(FieldName, Glob)>,
    /// A cookie whose name matches is set.
    pub cookies: Vec<Glob>,
    pub body: Option<BodyPattern>,
    /// A dotted path, and the value at it.
    pub json: Vec<(Box<str>, Box<str>)>,
}

/// Whether a side matches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SideMatch {
    Yes,
    No,
    /// It cannot be decided yet.
    Unsure,
}

/// The side that is matched. In doubt the outcome is the worse one for the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Success,
    Failure,
}

impl Matchers {
    pub fn needs_body(&self) -> bool {
        self.body.is_some() || !self.json.is_empty()
    }

    pub(super) fn of_head(&self, side: Side, status: StatusCode, fields: &Fields, now: Timestamp) -> SideMatch {
        let matches = self.status.as_ref().is_none_or(|set| set.contains(status))
            && self
                .headers
                .iter()
                .all(|(name, glob)| fields.get_all(name).any(|value| glob.matches(&String::from_utf8_lossy(value))))
            && self.cookies.iter().all(|name| match side {
                // An application that deletes a cookie has not logged the client in.
                Side::Success => set_cookie::sets(fields, name, now),
                Side::Failure => set_cookie::names(fields, name),
            });
        match matches {
            false => SideMatch::No,
            true if self.needs_body() => SideMatch::Unsure,
            true => SideMatch::Yes,
        }
    }
}

// Sets of status codes: `401`, `4xx`, `400-499`, and lists of them.

/// Any of some status codes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatusSet {
    text: Box<str>,
    ranges: SmallVec<[RangeInclusive<u16>; 2]>,
}

impl StatusSet {
    pub fn contains(&self, status: StatusCode) -> bool {
        self.ranges.iter().any(|range| range.contains(&status.as_u16()))
    }
}

impl FromStr for StatusSet {
    type Err = InvalidStatus;

    /// One of the three forms, or several with commas between.
    fn from_str(text: &str) -> Result<Self, InvalidStatus> {
        let ranges = text.split(',').map(range).collect::<Option<_>>();
        let ranges = ranges.ok_or_else(|| InvalidStatus(text.to_owned()))?;
        Ok(Self { text: text.into(), ranges })
    }
}

/// Any code of any of them.
impl FromIterator<StatusSet> for StatusSet {
    fn from_iter<I: IntoIterator<Item = Self>>(sets: I) -> Self {
        let (mut texts, mut ranges) = (Vec::new(), SmallVec::new());
        for set in sets {
            texts.push(set.text);
            ranges.extend(set.ranges);
        }
        Self { text: texts.join(", ").into(), ranges }
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a status")]
pub struct InvalidStatus(String);

impl Help for InvalidStatus {
    fn help(&self) -> String {
        "write `401`, `4xx` or `400-499`".to_owned()
    }
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let text = text.trim();
    if let [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] = text.as_bytes() {
        let first = u16::from(class - b'0') * 100;
        return Some(first..=first + 99);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (code(first)?, code(last)?);
    (first <= last).then_some(first..=last)
}

fn code(text: &str) -> Option<u16> {
    let text = text.trim();
    let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|code| is_number && (100..=599).contains(code))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BodyPattern, *};
    use crate::wire::head::{KnownName, Name};
    use crate::words::clock::Timestamp;
    use crate::words::glob::Glob;

    #[track_caller]
    fn check(text: &str, inside: &[u16], outside: &[u16]) {
        let set: StatusSet = text.parse().expect("a set");
        let contains = |code: u16| set.contains(StatusCode::from_u16(code).expect("a status"));
        assert!(inside.iter().copied().all(contains), "{text}");
        assert!(!outside.iter().copied().any(contains), "{text}");
        assert_eq!(set.to_string(), text);
    }

    #[test]
    fn a_status_is_a_code_a_class_a_span_or_a_list() {
        check("401", &[401], &[400, 402, 200]);
        check("4xx", &[400, 451, 499], &[399, 500]);
        check("400-403", &[400, 403], &[399, 404]);
        check("200, 30X, 401".replace("30X", "302").as_str(), &[200, 302, 401], &[201, 400]);
        let several: StatusSet = ["401", "5xx"].iter().map(|one| one.parse::<StatusSet>().expect("a set")).collect();
        assert!(several.contains(StatusCode::BAD_GATEWAY) && several.contains(StatusCode::UNAUTHORIZED));
        assert!(!several.contains(StatusCode::OK));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "40", "4x", "6xx", "99", "600", "1000", "403-400", "4xx-5xx", "+20", "401,", "ok", "-401"] {
            assert_eq!(text.parse::<StatusSet>(), Err(InvalidStatus(text.to_owned())), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_parsed_set_has_only_statuses_and_prints_as_written(text in "[1-6xX0,-]{0,9}") {
            if let Ok(set) = text.parse::<StatusSet>() {
                prop_assert_eq!(set.to_string(), text);
                prop_assert!(set.ranges.iter().all(|range| *range.start() >= 100 && *range.end() <= 599 && !range.is_empty()));
            }
        }
    }

    fn answer(lines: &[(&str, &str)]) -> Fields {
        lines.iter().map(|(name, value)| (Name::of(name), *value)).collect()
    }

    fn status(text: &str) -> Matchers {
        Matchers { status: Some(text.parse().expect("a status")), ..Matchers::default() }
    }

    fn body(status: Option<&str>) -> Matchers {
        let status = status.map(|text| text.parse().expect("a status"));
        Matchers { status, body: BodyPattern::parse("x").ok(), ..Matchers::default() }
    }

    fn of(rule: &OutcomeRule, status: u16) -> Option<Outcome> {
        rule.of_head(StatusCode::from_u16(status).expect("a status"), &Fields::default(), Timestamp::EPOCH)
    }

    #[test]
    fn one_side_given_makes_the_rest_its_opposite() {
        let rule = OutcomeRule::new(Some(status("302")), None, None);
        assert_eq!((of(&rule, 302), of(&rule, 200)), (Some(Outcome::Success), Some(Outcome::Failure)));
        let rule = OutcomeRule::new(None, Some(status("401")), None);
        assert_eq!((of(&rule, 401), of(&rule, 500)), (Some(Outcome::Failure), Some(Outcome::Success)));
        let rule = OutcomeRule::new(None, Some(status("401")), Some(Outcome::Neither));
        assert_eq!(of(&rule, 500), Some(Outcome::Neither));
    }

    #[test]
    fn of_both_sides_failure_wins_and_the_rest_is_neither() {
        let rule = OutcomeRule::new(Some(status("2xx")), Some(status("200-399")), None);
        assert_eq!(of(&rule, 200), Some(Outcome::Failure));
        assert_eq!(of(&rule, 302), Some(Outcome::Failure));
        assert_eq!(of(&rule, 500), Some(Outcome::Neither));
    }

    #[test]
    fn the_body_is_needed_only_where_it_makes_a_difference() {
        let rule = OutcomeRule::new(None, Some(body(Some("200"))), None);
        assert_eq!((of(&rule, 302), of(&rule, 200)), (Some(Outcome::Success), None));
        let rule = OutcomeRule::new(Some(body(None)), Some(status("401")), None);
        assert_eq!((of(&rule, 401), of(&rule, 200)), (Some(Outcome::Failure), None));
        let rule = OutcomeRule::new(Some(status("302")), Some(body(None)), Some(Outcome::Failure));
        assert_eq!((of(&rule, 302), of(&rule, 200)), (None, Some(Outcome::Failure)));
    }

    #[test]
    fn all_matchers_of_a_side_must_hold() {
        let side = Matchers {
            status: "302".parse().ok(),
            headers: vec![(KnownName::LOCATION.into(), Glob::new("/account*"))],
            cookies: vec![Glob::cased("session")],
            ..Matchers::default()
        };
        let rule = OutcomeRule::new(Some(side), None, None);
        let check = |status, lines: &[_], expected| {
            assert_eq!(rule.of_head(status, &answer(lines), Timestamp::EPOCH), Some(expected), "{lines:?}");
        };
        let (found, session) = (("location", "/account/7"), ("set-cookie", "session=abc; Path=/; Max-Age=600"));
        check(StatusCode::FOUND, &[found, ("set-cookie", "other=1"), session], Outcome::Success);
        check(StatusCode::OK, &[found, session], Outcome::Failure);
        check(StatusCode::FOUND, &[found], Outcome::Failure);
        check(StatusCode::FOUND, &[("location", "/login"), session], Outcome::Failure);
        check(StatusCode::FOUND, &[found, ("set-cookie", "a=session")], Outcome::Failure);
        check(StatusCode::FOUND, &[found, ("set-cookie", "Session=abc")], Outcome::Failure);
    }

    #[test]
    fn a_deleted_cookie_is_no_success_but_may_be_a_failure() {
        let side = || Some(Matchers { cookies: vec![Glob::cased("sid_*")], ..Matchers::default() });
        for line in ["sid_7=; Path=/", "sid_7=x; Max-Age=0"] {
            let fields = answer(&[("set-cookie", line)]);
            let success = OutcomeRule::new(side(), None, None);
            assert_eq!(success.of_head(StatusCode::OK, &fields, Timestamp::EPOCH), Some(Outcome::Failure), "{line}");
            let failure = OutcomeRule::new(None, side(), None);
            assert_eq!(failure.of_head(StatusCode::OK, &fields, Timestamp::EPOCH), Some(Outcome::Failure), "{line}");
        }
    }
}
