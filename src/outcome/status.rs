//! Sets of status codes: `401`, `4xx`, `400-499`, and lists of them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use http::StatusCode;
use smallvec::SmallVec;

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
#[error("`{0}` is not a status: write `401`, `4xx` or `400-499`")]
pub struct InvalidStatus(String);

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

    use super::*;

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
}
