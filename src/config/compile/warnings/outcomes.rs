//! Outcomes that cannot tell a success from a failure.

use http::StatusCode;

use crate::config::compile::compiler::Compiler;
use crate::config::raw;
use crate::glob::Glob;
use crate::outcome::Matchers;
use crate::outcome::StatusSet;
use crate::route::Route;

impl Compiler {
    pub(super) fn warn_of_outcome(&mut self, raw: &raw::route::Route, route: &Route) {
        let Some(raw) = raw.outcome.get() else { return };
        let Some((rule, success)) = route.outcome.as_ref().and_then(|rule| Some((rule, rule.success.as_ref()?))) else {
            return;
        };
        let at = raw.success.key().unwrap_or(raw.at);
        if rule.failure.as_ref().is_some_and(|failure| holds_whenever(failure, success)) {
            self.mistakes.warn(
                raw.failure.key().unwrap_or(raw.at),
                "every success here is also a failure, and failure wins: no answer is ever a success",
                "add what differs: a header, a cookie that is set, or a text in the page",
            );
        } else if is_bare_redirect(success) && !rule.failure.as_ref().is_some_and(tells_more_than_a_status) {
            self.mistakes.warn(
                at,
                "success is any redirect: most applications redirect after a failed login too, or on another action, and each such answer counts as a success",
                "add what only a success has: `header: {location: \"/account*\"}`, or `cookie: session` for a cookie that it sets",
            );
        }
    }
}

/// Whether one side certainly matches whenever the other does.
fn holds_whenever(side: &Matchers, other: &Matchers) -> bool {
    let status = side.status.as_ref().is_none_or(|set| {
        other
            .status
            .as_ref()
            .is_some_and(|other| statuses().all(|status| !other.contains(status) || set.contains(status)))
    });
    let body = side
        .body
        .as_ref()
        .is_none_or(|body| other.body.as_ref().is_some_and(|other| other.to_string() == body.to_string()));
    status
        && body
        && side.headers.iter().all(|header| other.headers.contains(header))
        && side.cookies.iter().all(|cookie| other.cookies.contains(cookie))
        && side.json.iter().all(|value| other.json.contains(value))
}

fn is_bare_redirect(side: &Matchers) -> bool {
    let redirects = |set: &StatusSet| REDIRECTS.iter().any(|status| set.contains(*status));
    side.status.as_ref().is_some_and(redirects) && !tells_more_than_a_status(side)
}

/// A glob that matches anything does not count: every redirect has a location.
fn tells_more_than_a_status(side: &Matchers) -> bool {
    let tells = |glob: &Glob| glob.to_string().chars().any(|letter| letter != '*');
    side.needs_body() || side.headers.iter().any(|(_, glob)| tells(glob)) || side.cookies.iter().any(tells)
}

fn statuses() -> impl Iterator<Item = StatusCode> {
    (100..600).filter_map(|code| StatusCode::from_u16(code).ok())
}

const REDIRECTS: [StatusCode; 5] = [
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::PERMANENT_REDIRECT,
];
