//! The `routes` section: what each route matches, and what holds on it.

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;

use http::HeaderName;

use super::Compiler;
use super::key::Captures;
use super::limits::Limits;
use super::lists::Lists;
use super::lists::Use;
use super::upstreams::Upstreams;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::Text;
use crate::config::raw::forms::Named;
use crate::config::raw::route::Conditions;
use crate::config::raw::route::Match;
use crate::route::Case;
use crate::route::Condition;
use crate::route::Glob;
use crate::route::MethodSet;
use crate::route::PathPattern;
use crate::route::PathRegex;
use crate::route::Route;
use crate::route::UpstreamId;

impl Compiler {
    pub(super) fn routes(
        &mut self,
        document: &Document,
        default: Option<UpstreamId>,
        upstreams: &mut Upstreams,
        lists: &Lists,
        limits: &mut Limits,
    ) -> Vec<Route> {
        let Some(raw) = document.routes.get() else { return Vec::new() };
        if raw.items.len() > usize::from(u16::MAX) {
            self.mistakes.report(raw.at, format!("there are more than {} routes", u16::MAX));
            return Vec::new();
        }
        let mut names = RouteNames::chosen(&raw.items);
        let mut routes = Vec::with_capacity(raw.items.len());
        for route in &raw.items {
            let condition = route.r#match.get().and_then(|matched| self.condition(matched, route, lists));
            let (name, owner) = match route.name.get() {
                Some(name) => {
                    let checked = self.route_name(name, &mut names).unwrap_or_else(|| Arc::from(""));
                    (Arc::clone(&checked), checked.to_string())
                }
                None => {
                    let name = names.made(route.r#match.get().map(title).unwrap_or_default());
                    let owner = slug(&name);
                    (name, owner)
                }
            };
            let captured: Vec<String> =
                condition.iter().flat_map(|condition| condition.capture_names()).map(str::to_owned).collect();
            let captures = if condition.is_some() { Captures::Named(&captured) } else { Captures::Unknown };
            let raw_limits = route.limits.get().map(|limits| &limits.items[..]).unwrap_or_default();
            let limits = self.limits(raw_limits, &owner, captures, lists, limits);
            let own = route.upstream.get().and_then(|upstream| self.upstream(upstream, upstreams));
            let only = self.references(&route.only, lists, Use::BeforeBody);
            if only.as_ref().is_some_and(Vec::is_empty)
                && let Some(empty) = route.only.get().filter(|only| only.items.is_empty())
            {
                self.mistakes.report_with(
                    empty.at,
                    "an empty `only` lets nobody through",
                    "name a list, or remove `only`",
                );
            }
            routes.push(Route {
                name,
                condition: condition.unwrap_or_default(),
                upstream: own.or(default).unwrap_or(UpstreamId(0)),
                only,
                limits,
                deny_response: self.response(&route.deny_response).map(Box::new),
            });
        }
        routes
    }

    fn route_name(&mut self, text: &Text, names: &mut RouteNames) -> Option<Arc<str>> {
        let name = self.name(text)?;
        if let Some(line) = names.lines.insert(name.to_string(), text.at.line) {
            self.mistakes.report_with(
                text.at,
                format!("there are two routes called `{name}`"),
                format!("the other one is at line {line}: logs and metrics could not tell them apart"),
            );
        }
        Some(name)
    }

    fn condition(&mut self, matched: &Match, route: &raw::route::Route, lists: &Lists) -> Option<Condition> {
        let case = match route.case_sensitive.get() {
            Some(sensitive) if sensitive.value => Case::Sensitive,
            _ => Case::Ignored,
        };
        match matched {
            Match::Short(text) => self.meant(text, Condition::short(&text.value, case)),
            Match::Long(conditions) => self.long_condition(conditions, case, lists),
        }
    }

    fn long_condition(&mut self, raw: &Conditions, case: Case, lists: &Lists) -> Option<Condition> {
        if let (Some(_), Some(at)) = (raw.path.get(), raw.path_regex.key()) {
            self.mistakes.report_with(at, "`path` and `path_regex` exclude each other", "say it in one of the two");
        }
        let path = raw.path.get().map(|text| self.meant(text, PathPattern::new(&text.value, case)));
        let path_regex = raw.path_regex.get().map(|text| self.meant(text, PathRegex::new(&text.value, case)));
        let host = raw.host.get().map(|text| self.parse(text));
        let methods = raw.methods.get().map(|methods| self.methods(methods));
        let condition = Condition {
            methods: flat(methods)?,
            host: flat(host)?,
            path: flat(path)?,
            path_regex: flat(path_regex)?,
            headers: self.header_globs(&raw.header),
            queries: globs(&raw.query),
            cookies: globs(&raw.cookie),
            client: self.references(&raw.client, lists, Use::BeforeRoute).unwrap_or_default(),
        };
        if let Some(empty) = raw.client.get().filter(|client| client.items.is_empty()) {
            self.mistakes.report_with(
                empty.at,
                "an empty list of lists holds no client",
                "name a list, or remove `client`",
            );
        }
        Some(condition)
    }

    fn methods(&mut self, raw: &raw::forms::OneOrMany<Text>) -> Option<MethodSet> {
        if raw.items.is_empty() {
            self.mistakes.report_with(
                raw.at,
                "an empty list of methods matches no request",
                "name some, or remove `methods`",
            );
            return None;
        }
        let parsed: Vec<_> = raw.items.iter().map(|method| self.parse(method)).collect();
        parsed.into_iter().collect::<Option<MethodSet>>()
    }

    fn header_globs(&mut self, field: &Field<Named<Text>>) -> Vec<(HeaderName, Glob)> {
        let mut result = Vec::new();
        for (name, glob) in entries(field) {
            match HeaderName::from_bytes(name.value.as_bytes()) {
                Ok(header) => result.push((header, Glob::new(&glob.value))),
                Err(_) => {
                    let help = "header names are letters, digits and dashes: `x-api-key`";
                    self.mistakes.report_with(name.at, format!("`{}` is not a header name", name.value), help);
                }
            }
        }
        result
    }
}

/// A wrong value makes the whole wrong; one that is left out does not.
fn flat<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
        None => Some(None),
    }
}

fn globs(field: &Field<Named<Text>>) -> Vec<(Box<str>, Glob)> {
    entries(field).iter().map(|(name, glob)| (name.value.as_str().into(), Glob::new(&glob.value))).collect()
}

fn entries(field: &Field<Named<Text>>) -> &[(Text, Text)] {
    field.get().map(|named| &named.entries[..]).unwrap_or_default()
}

/// The names of routes, each once.
#[derive(Debug)]
struct RouteNames {
    taken: HashSet<String>,
    /// Where each chosen name was met.
    lines: HashMap<String, u32>,
}

impl RouteNames {
    fn chosen(routes: &[raw::route::Route]) -> Self {
        let taken = routes.iter().filter_map(|route| route.name.get()).map(|name| name.value.clone()).collect();
        Self { taken, lines: HashMap::new() }
    }

    fn made(&mut self, title: String) -> Arc<str> {
        let mut name = title.clone();
        for attempt in 2.. {
            if self.taken.insert(name.clone()) {
                break;
            }
            name = format!("{title} ({attempt})");
        }
        name.into()
    }
}

/// The text of a match, as a name for its route: `POST /login`, `api.example.com/v1/*`.
fn title(matched: &Match) -> String {
    let conditions = match matched {
        Match::Short(text) => return text.value.split_whitespace().collect::<Vec<_>>().join(" "),
        Match::Long(conditions) => conditions,
    };
    let text = |field: &Field<Text>| field.get().map(|text| text.value.clone());
    let mut title = conditions.methods.get().map(|methods| joined(&methods.items) + " ").unwrap_or_default();
    title += &text(&conditions.host).unwrap_or_default();
    title += &text(&conditions.path)
        .or_else(|| text(&conditions.path_regex).map(|regex| format!("~{regex}")))
        .unwrap_or_default();
    for (kind, field) in [("header", &conditions.header), ("query", &conditions.query), ("cookie", &conditions.cookie)]
    {
        for (name, glob) in entries(field) {
            title += &format!(" {kind}.{}={}", name.value, glob.value);
        }
    }
    if let Some(client) = conditions.client.get() {
        title += &format!(" client {}", joined(&client.items));
    }
    title.trim().to_owned()
}

fn joined(texts: &[Text]) -> String {
    texts.iter().map(|text| text.value.as_str()).collect::<Vec<_>>().join(",")
}

/// A title as the beginning of a limit's name: `post-login`.
fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    if slug.is_empty() { "route".to_owned() } else { slug.chars().take(MAX_SLUG).collect() }
}

const MAX_SLUG: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_the_beginning_of_a_name() {
        assert_eq!(slug("POST /login"), "post-login");
        assert_eq!(slug("api.example.com/v1/*"), "api-example-com-v1");
        assert_eq!(slug("/*"), "route");
    }
}
