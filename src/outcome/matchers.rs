//! One side of an outcome: what must all be so of an answer.

use http::HeaderMap;
use http::HeaderName;
use http::StatusCode;

use super::BodyPattern;
use super::Outcome;
use super::OutcomeRule;
use super::StatusSet;
use super::set_cookie;
use crate::glob::Glob;

/// What must all hold of an answer; without any, every answer matches.
#[derive(Clone, Debug, Default)]
pub struct Matchers {
    pub status: Option<StatusSet>,
    /// A line of that name with such a value.
    pub headers: Vec<(HeaderName, Glob)>,
    /// A cookie of such a name is set.
    pub cookies: Vec<Glob>,
    pub body: Option<BodyPattern>,
    /// A dotted path, and the value that stands there.
    pub json: Vec<(Box<str>, Box<str>)>,
}

/// Whether a side matches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SideMatch {
    Yes,
    No,
    /// That cannot be told.
    Unsure,
}

/// Which side is asked. Doubt goes against the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Success,
    Failure,
}

impl Matchers {
    pub fn needs_body(&self) -> bool {
        self.body.is_some() || !self.json.is_empty()
    }

    fn of_head(&self, side: Side, status: StatusCode, headers: &HeaderMap) -> SideMatch {
        let holds = self.status.as_ref().is_none_or(|set| set.contains(status))
            && self.headers.iter().all(|(name, glob)| {
                headers.get_all(name).iter().any(|value| glob.matches(&String::from_utf8_lossy(value.as_bytes())))
            })
            && self.cookies.iter().all(|name| match side {
                // One that is taken from the client is not what a success looks like.
                Side::Success => set_cookie::sets(headers, name),
                Side::Failure => set_cookie::names(headers, name),
            });
        match holds {
            false => SideMatch::No,
            true if self.needs_body() => SideMatch::Unsure,
            true => SideMatch::Yes,
        }
    }
}

impl OutcomeRule {
    /// What an answer means, where its head says enough.
    pub fn of_head(&self, status: StatusCode, headers: &HeaderMap) -> Option<Outcome> {
        let (success, failure) = self.sides_of_head(status, headers);
        self.resolve(success, failure)
    }

    /// Whether what an answer means may depend on its body.
    pub fn needs_body(&self) -> bool {
        [&self.success, &self.failure].into_iter().flatten().any(Matchers::needs_body)
    }

    /// What both sides say of a head, success first; unsure where it is for the body to say.
    pub(super) fn sides_of_head(&self, status: StatusCode, headers: &HeaderMap) -> (SideMatch, SideMatch) {
        let ask = |matchers: &Option<Matchers>, side| {
            matchers.as_ref().map_or(SideMatch::No, |matchers| matchers.of_head(side, status, headers))
        };
        (ask(&self.success, Side::Success), ask(&self.failure, Side::Failure))
    }

    /// `None` where what is not known makes a difference.
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn answer(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn status(text: &str) -> Matchers {
        Matchers { status: Some(text.parse().expect("a status")), ..Matchers::default() }
    }

    fn body(status: Option<&str>) -> Matchers {
        let status = status.map(|text| text.parse().expect("a status"));
        Matchers { status, body: BodyPattern::parse("x").ok(), ..Matchers::default() }
    }

    fn of(rule: &OutcomeRule, status: u16) -> Option<Outcome> {
        rule.of_head(StatusCode::from_u16(status).expect("a status"), &HeaderMap::new())
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
    fn the_body_is_asked_only_where_it_makes_a_difference() {
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
            headers: vec![(http::header::LOCATION, Glob::new("/account*"))],
            cookies: vec![Glob::cased("session")],
            ..Matchers::default()
        };
        let rule = OutcomeRule::new(Some(side), None, None);
        let check = |status, lines: &[_], expected| {
            assert_eq!(rule.of_head(status, &answer(lines)), Some(expected), "{lines:?}");
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
    fn a_cookie_taken_away_is_no_success_but_may_be_a_failure() {
        let side = || Some(Matchers { cookies: vec![Glob::cased("sid_*")], ..Matchers::default() });
        for line in ["sid_7=; Path=/", "sid_7=x; Max-Age=0"] {
            let headers = answer(&[("set-cookie", line)]);
            let success = OutcomeRule::new(side(), None, None);
            assert_eq!(success.of_head(StatusCode::OK, &headers), Some(Outcome::Failure), "{line}");
            let failure = OutcomeRule::new(None, side(), None);
            assert_eq!(failure.of_head(StatusCode::OK, &headers), Some(Outcome::Failure), "{line}");
        }
    }
}
