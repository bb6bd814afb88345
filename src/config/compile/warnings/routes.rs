//! Routes that no request can match.

use crate::config::compile::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::route::Match;
use crate::config::source::SourceRange;
use crate::route::Route;
use crate::route::UnreachableRoute;
use crate::route::unreachable_routes;

impl Compiler {
    /// The first match wins, so a route after one that matches all of its requests never applies.
    pub(super) fn warn_of_unreachable_routes(&mut self, raw: &[raw::route::Route], routes: &[Route]) {
        for UnreachableRoute { route, earlier } in unreachable_routes(routes) {
            let (Some(at), Some(before)) = (place(&raw[route]), place(&raw[earlier])) else { continue };
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
