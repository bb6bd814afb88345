//! Names that people choose, and references to them.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use crate::config::compile::document::Compiler;
use crate::config::raw::forms::MapOf;
use crate::config::raw::route::{Match, Route};
use crate::config::raw::{Field, InvalidValue, Text};
use crate::record::{NO_ROUTE, NO_ROUTE_LABEL, OTHER_ROUTES_LABEL, RouteSeries};
use crate::rules::list::network;
use crate::words::glob::Glob;
use crate::words::units::{listed, nearest};

const MAX_NAME: usize = 128;

/// A longer list of names does not help.
const MAX_SHOWN: usize = 12;

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

    /// Reports a route with a reserved name: the name for requests on no route, or for routes without series of their
    /// own.
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

    /// Reports a reference to a name that is not defined. Nothing is said of a section that could not be read.
    ///
    /// `section` is where such names are defined.
    pub(super) fn unknown_name(&mut self, reference: &Text, kind: &str, section: &str, known: &[&str]) {
        if self.unread.contains(&section) {
            return;
        }
        let name = &reference.value;
        let help = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None if section == "lists" && ["all", "any", "everyone"].contains(&name.as_str()) => {
                "no list holds everyone: write `only: [NAME]` on a route to let in the members of a list alone"
                    .to_owned()
            }
            // A network in the place of its name.
            None if section == "lists" && network(name).is_ok() => {
                format!("lists have names: define `lists: {{office: {{addresses: [\"{name}\"]}}}}`, and write `office`")
            }
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

// Default names of routes, and the first part of the default names of their limits.

const MAX_SLUG: usize = 60;

/// The names of routes, given and default.
#[derive(Debug)]
pub(super) struct RouteNames {
    taken: HashSet<String>,
    /// The last number of each title.
    numbers: HashMap<String, usize>,
}

impl RouteNames {
    /// Reserves every name in the configuration, so that no default name collides with one, and the names for no route
    /// and for several routes.
    pub(super) fn reserving(routes: &[Route], series: RouteSeries) -> Self {
        let of_others = (series != RouteSeries::All).then_some(OTHER_ROUTES_LABEL);
        let given = routes.iter().filter_map(|route| route.name.get()).map(|name| name.value.clone());
        let taken = [NO_ROUTE, NO_ROUTE_LABEL].into_iter().chain(of_others).map(str::to_owned).chain(given).collect();
        Self { taken, numbers: HashMap::new() }
    }

    /// The text of a match, with a number if that is taken.
    pub(super) fn default_name(&mut self, matched: Option<&Match>) -> Arc<str> {
        let title = matched.map(match_text).unwrap_or_default();
        let number = self.numbers.entry(title.clone()).or_default();
        loop {
            *number += 1;
            let name = if *number == 1 { title.clone() } else { format!("{title} ({number})") };
            if self.taken.insert(name.clone()) {
                return name.into();
            }
        }
    }
}

/// `POST /login`, `api.example.com/v1/*`.
fn match_text(matched: &Match) -> String {
    let conditions = match matched {
        Match::Short(text) => return text.value.split_whitespace().collect::<Vec<_>>().join(" "),
        Match::Long(conditions) => conditions,
    };
    let text = |field: &Field<Text>| field.get().map(|text| text.value.clone());
    if let Some(domain) = text(&conditions.domain) {
        return format!("domain {domain}");
    }
    let mut title = conditions.methods.get().map(|methods| joined(&methods.items) + " ").unwrap_or_default();
    title += &text(&conditions.host).unwrap_or_default();
    let path = text(&conditions.path).or_else(|| text(&conditions.path_regex).map(|regex| format!("~{regex}")));
    title += &path.unwrap_or_default();
    for (kind, field) in [("header", &conditions.header), ("query", &conditions.query), ("cookie", &conditions.cookie)]
    {
        for (name, glob) in entries(field) {
            let _ = write!(title, " {kind}.{}={}", name.value, glob.value);
        }
    }
    if let Some(client) = conditions.client.get() {
        let _ = write!(title, " client {}", joined(&client.items));
    }
    title.trim().to_owned()
}

/// The entries of an optional map.
pub(super) fn entries(field: &Field<MapOf<Text>>) -> &[(Text, Text)] {
    field.get().map(|named| &named.entries[..]).unwrap_or_default()
}

fn joined(texts: &[Text]) -> String {
    texts.iter().map(|text| text.value.as_str()).collect::<Vec<_>>().join(",")
}

/// The default name of a route as the first part of a limit's name: `post-login`.
pub(super) fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    if slug.is_empty() { "route".to_owned() } else { slug.chars().take(MAX_SLUG).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_route_becomes_the_first_part_of_a_limits_name() {
        assert_eq!(slug("POST /login"), "post-login");
        assert_eq!(slug("api.example.com/v1/*"), "api-example-com-v1");
        assert_eq!(slug("/*"), "route");
    }
}
