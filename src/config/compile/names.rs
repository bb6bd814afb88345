//! Names that people choose, and references to them.

use std::sync::Arc;

use super::compiler::Compiler;
use crate::config::raw::InvalidValue;
use crate::config::raw::Text;
use crate::glob::Glob;
use crate::record::NO_ROUTE;
use crate::record::NO_ROUTE_LABEL;
use crate::record::OTHER_ROUTES_LABEL;
use crate::record::RouteSeries;
use crate::spelling::listed;
use crate::spelling::nearest;

impl Compiler {
    /// Reports a text that looks like a glob where it is taken literally. Returns whether it does.
    pub(super) fn refuse_glob(&mut self, text: &Text, what: &str, help: &str) -> bool {
        let is_glob = Glob::looks_like_glob(&text.value);
        if is_glob {
            InvalidValue::of_glob(&text.value, what, help).report(text.at, &mut self.mistakes);
        }
        is_glob
    }

    /// Checks that a name can be part of a header, a metric and a log line.
    pub(super) fn name(&mut self, text: &Text) -> Option<Arc<str>> {
        if self.refuse_glob(text, "a name that is given", "use letters, digits, `-`, `_` and `.`") {
            return None;
        }
        let name = text.value.as_str();
        let wrong = if name.trim().is_empty() {
            "a name must not be empty".to_owned()
        } else if name.trim() != name {
            format!("the name `{name}` begins or ends with a space")
        } else if name.len() > MAX_NAME {
            format!("this name is longer than {MAX_NAME} characters")
        } else if let Some(odd) = name.chars().find(|c| !(c.is_ascii_graphic() || *c == ' ') || matches!(c, '"' | '\\'))
        {
            format!("the name `{name}` contains {odd:?}")
        } else {
            return Some(name.into());
        };
        self.mistakes.report(
            text.at,
            wrong,
            "names are part of headers and metrics: use letters, digits, `-`, `_` and `.`",
        );
        None
    }

    /// Reports the name of a route under which requests on no route are counted, or on those without series of their own.
    pub(super) fn refuse_no_route(&mut self, name: &Text, series: RouteSeries) {
        let counted = match name.value.as_str() {
            NO_ROUTE => "in the history, requests on no route",
            NO_ROUTE_LABEL => "in metrics, requests on no route",
            OTHER_ROUTES_LABEL if series != RouteSeries::All => {
                "in metrics, requests on routes beyond `metrics.routes`"
            }
            _ => return,
        };
        let message = format!("a route cannot be called `{}`", name.value);
        self.mistakes.report(name.at, message, format!("{counted} are counted under that name: rename the route"));
    }

    /// Reports the name of a limit that `RateLimit` headers give to a further rate of another limit.
    pub(super) fn refuse_rate_name(&mut self, name: &Text) {
        let Some((limit, rate)) = name.value.rsplit_once('/') else { return };
        if !rate.is_empty() && rate.bytes().all(|digit| digit.is_ascii_digit()) {
            let message = format!("a limit cannot be called `{}`", name.value);
            let help =
                format!("in `RateLimit` headers that is a further rate of `{limit}`: end the name with a letter");
            self.mistakes.report(name.at, message, help);
        }
    }

    /// Reports a reference to a name that is not defined.
    ///
    /// `section` is where such names are defined.
    pub(super) fn unknown_name(&mut self, reference: &Text, kind: &str, section: &str, known: &[&str]) {
        let name = &reference.value;
        let help = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => format!("define it: `{section}: {{{name}: ...}}`"),
            None => format!("these are defined: {}", listed(&known[..known.len().min(MAX_SHOWN)])),
        };
        if !self.refuse_glob(reference, &format!("the name of {} {kind}", article(kind)), &help) {
            self.mistakes.report(reference.at, format!("there is no {kind} `{name}`"), help);
        }
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

const MAX_NAME: usize = 128;

/// A longer list of names does not help.
const MAX_SHOWN: usize = 12;
