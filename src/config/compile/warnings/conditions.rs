//! Conditions of routes that no request meets.

use crate::config::compile::document::Compiler;
use crate::config::raw::route::Match;
use crate::config::raw::{self, Text};
use crate::config::source::SourceRange;
use crate::rules::route::Route;
use crate::words::units::nearest;

/// What browsers and applications send. No other registered method has a name that is near to one of these.
const COMMON_METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

impl Compiler {
    pub(super) fn warn_of_conditions(&mut self, raw: &raw::route::Route, route: &Route) {
        let Some(matched) = raw.r#match.get() else { return };
        let whole = match matched {
            Match::Short(text) => text.at,
            Match::Long(conditions) => conditions.at,
        };
        self.warn_of_methods(whole, route);
        if let Match::Long(conditions) = matched {
            if let Some(regex) = conditions.path_regex.get() {
                self.warn_of_path_regex(regex);
            }
            if let Some(host) = conditions.host.get() {
                self.warn_of_letters(host);
            }
        }
    }

    /// A route for a method that does not exist protects nothing.
    fn warn_of_methods(&mut self, at: SourceRange, route: &Route) {
        for method in route.condition.methods.iter().flat_map(|methods| methods.names()) {
            if method == "CONNECT" {
                let message = "`CONNECT` is answered by the gateway, with 405: no request with it reaches a route";
                self.mistakes.warn(at, message, "name other methods, or none for all");
            } else if !COMMON_METHODS.contains(&method)
                && let Some(meant) = nearest(method, COMMON_METHODS)
            {
                let message =
                    format!("hardly any client sends a `{method}`: the requests that are meant take other routes");
                self.mistakes.warn(at, message, format!("did you mean `{meant}`?"));
            }
        }
    }

    /// Rules compare a path without what a client may vary at will: it has no slash at its end, nor two in a row.
    fn warn_of_path_regex(&mut self, regex: &Text) {
        let value = regex.value.trim();
        let begins = value.strip_prefix('^').and_then(|rest| rest.chars().next());
        let why = if value.len() > "^/$".len() && value.ends_with("/$") {
            "is compared with paths that have no slash at their end: it matches none"
        } else if begins.is_some_and(|first| first.is_ascii_alphanumeric()) {
            "is compared with paths, and each begins with a slash: it matches none"
        } else if value.contains("//") {
            "is compared with paths that have no two slashes in a row: it matches none"
        } else {
            return;
        };
        self.mistakes.warn(
            regex.at,
            format!("`{value}` {why}"),
            "write what `portcullis explain URL` shows as the path",
        );
    }

    /// Browsers send such a name in another spelling.
    fn warn_of_letters(&mut self, host: &Text) {
        if !host.value.is_ascii() {
            let message = format!("no client sends the host `{}` in these letters", host.value);
            self.mistakes.warn(host.at, message, "write the name as it stands in DNS, which begins with `xn--`");
        }
    }
}
