//! The `outcome` section of a route: the rule that decides what an answer means.

use http::StatusCode;

use super::matchers::Matchers;
use super::matchers::Side;
use super::matchers::SideMatch;
use crate::head::Fields;

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    Success,
    Failure,
    Neither,
}

impl Outcome {
    pub const ALL: [Self; 3] = [Self::Success, Self::Failure, Self::Neither];

    /// The word in metrics and in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neither => "neither",
        }
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

    /// The outcome, if the head of the answer decides it.
    pub fn of_head(&self, status: StatusCode, fields: &Fields) -> Option<Outcome> {
        let (success, failure) = self.sides_of_head(status, fields);
        self.resolve(success, failure)
    }

    /// Whether the outcome may depend on the body.
    pub fn needs_body(&self) -> bool {
        [&self.success, &self.failure].into_iter().flatten().any(Matchers::needs_body)
    }

    /// How a head matches the success side and the failure side; unsure when the body decides.
    pub(super) fn sides_of_head(&self, status: StatusCode, fields: &Fields) -> (SideMatch, SideMatch) {
        let ask = |matchers: &Option<Matchers>, side| {
            matchers.as_ref().map_or(SideMatch::No, |matchers| matchers.of_head(side, status, fields))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glob::Glob;
    use crate::head::KnownName;
    use crate::head::Name;
    use crate::outcome::BodyPattern;

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
        rule.of_head(StatusCode::from_u16(status).expect("a status"), &Fields::default())
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
    fn a_deleted_cookie_is_no_success_but_may_be_a_failure() {
        let side = || Some(Matchers { cookies: vec![Glob::cased("sid_*")], ..Matchers::default() });
        for line in ["sid_7=; Path=/", "sid_7=x; Max-Age=0"] {
            let fields = answer(&[("set-cookie", line)]);
            let success = OutcomeRule::new(side(), None, None);
            assert_eq!(success.of_head(StatusCode::OK, &fields), Some(Outcome::Failure), "{line}");
            let failure = OutcomeRule::new(None, side(), None);
            assert_eq!(failure.of_head(StatusCode::OK, &fields), Some(Outcome::Failure), "{line}");
        }
    }
}
