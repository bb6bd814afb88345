//! Routes that no request can match.

use crate::config::compile::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::route::Match;
use crate::config::source::SourceRange;
use crate::route::Route;

impl Compiler {
    /// The first match wins, so a route after one that matches all of its requests never applies.
    pub(super) fn warn_of_unreachable_routes(&mut self, raw: &[raw::route::Route], routes: &[Route]) {
        for (position, route) in routes.iter().enumerate() {
            let includes = |earlier: &Route| earlier.domain.is_none() && earlier.condition.includes(&route.condition);
            let earlier = routes[..position].iter().position(includes).filter(|_| route.domain.is_none());
            let Some(earlier) = earlier else { continue };
            let (Some(at), Some(before)) = (place(&raw[position]), place(&raw[earlier])) else { continue };
            let message = format!(
                "no request reaches this route: `{}` at line {} matches all of them, and the first match wins",
                routes[earlier].name, before.line
            );
            self.mistakes.warn(
                at,
                message,
                "move this route before that one, make that one narrower, or remove this one",
            );
        }
    }
}

fn place(route: &raw::route::Route) -> Option<SourceRange> {
    Some(match route.r#match.get()? {
        Match::Short(text) => text.at,
        Match::Long(conditions) => conditions.at,
    })
}
