//! Default names of routes, and the first part of the default names of their limits.

use std::collections::HashMap;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use crate::config::raw::Field;
use crate::config::raw::Text;
use crate::config::raw::forms::MapOf;
use crate::config::raw::route::Match;
use crate::config::raw::route::Route;
use crate::record::NO_ROUTE;
use crate::record::NO_ROUTE_LABEL;
use crate::record::OTHER_ROUTES_LABEL;
use crate::record::RouteSeries;

/// The names of routes, given and default.
#[derive(Debug)]
pub(super) struct RouteNames {
    taken: HashSet<String>,
    /// The last number of each title.
    numbers: HashMap<String, usize>,
}

impl RouteNames {
    /// Reserves every name in the configuration, so that no default name collides with one, and those of no route and of
    /// several.
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

const MAX_SLUG: usize = 60;

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
