//! Routes that no request can take, found without comparing every pair of routes.

use hashbrown::HashMap;

use crate::glob::Glob;
use crate::head::FieldName;
use crate::list::ListId;
use crate::route::Case;
use crate::route::Condition;
use crate::route::MethodSet;
use crate::route::Route;
use crate::route::RouteId;
use crate::route::index::Candidates;
use crate::route::index::Places;

/// A route that no request takes. Both are positions in the order of the file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnreachableRoute {
    pub route: usize,
    /// The first route that takes all of its requests.
    pub earlier: usize,
}

/// Every route for requests after one that matches all of its requests: the first match wins.
pub fn unreachable_routes(routes: &[Route]) -> Vec<UnreachableRoute> {
    let conditions = (0..).map(RouteId).zip(routes).filter(|(_, route)| route.domain.is_none());
    let conditions: Vec<(RouteId, &Condition)> = conditions.map(|(id, route)| (id, &route.condition)).collect();
    let mut earlier = EarlierRoutes::counting(conditions.iter().map(|(_, condition)| *condition));
    let mut found = Vec::new();
    for (id, condition) in conditions {
        let includes = |earlier: &RouteId| routes[usize::from(earlier.0)].condition.includes(condition);
        if let Some(first) = earlier.may_include(condition).find(includes) {
            found.push(UnreachableRoute { route: id.0.into(), earlier: first.0.into() });
        }
        earlier.insert(condition, id);
    }
    found
}

/// The routes so far, by what a route that they include must be like.
#[derive(Default)]
struct EarlierRoutes<'c> {
    /// How many routes of the whole table have a requirement.
    counts: HashMap<Requirement<'c>, usize>,
    /// Of each route the requirement that the fewest have.
    places: HashMap<Option<Requirement<'c>>, Places>,
}

/// What a condition asks for, and every condition that it includes asks for too.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
enum Requirement<'c> {
    Method(&'c str),
    PathRegex(&'c str, Case),
    Header(&'c FieldName, &'c Glob),
    Query(&'c str, &'c Glob),
    Cookie(&'c str, &'c Glob),
    Client(ListId),
}

impl<'c> EarlierRoutes<'c> {
    fn counting(conditions: impl Iterator<Item = &'c Condition>) -> Self {
        let mut counts = HashMap::new();
        for requirement in conditions.flat_map(Requirement::all) {
            *counts.entry(requirement).or_default() += 1;
        }
        Self { counts, places: HashMap::new() }
    }

    fn insert(&mut self, condition: &'c Condition, id: RouteId) {
        let rarest = Requirement::all(condition).min_by_key(|requirement| self.counts[requirement]);
        let places = self.places.entry(rarest).or_default();
        let host = condition.host.as_ref();
        match condition.path.as_ref().filter(|path| !path.is_everything()) {
            None => places.insert(host, Case::Ignored, &[], true, id),
            Some(path) => {
                let (segments, is_open) = path.walked(path.case());
                let segments: Vec<Option<&str>> = segments.iter().map(Option::as_deref).collect();
                places.insert(host, path.case(), &segments, is_open, id);
            }
        }
    }

    /// The routes that may include a condition. None that does is missing.
    fn may_include(&self, condition: &'c Condition) -> Candidates<'_> {
        let mut found = Candidates::default();
        let met = Requirement::met(condition).map(Some).chain([None]);
        let places: Vec<&Places> = met.filter_map(|requirement| self.places.get(&requirement)).collect();
        let host = condition.host.as_ref();
        let Some(path) = &condition.path else {
            for places in places {
                places.find_including(host, Case::Ignored, &[], true, &mut found);
            }
            return found;
        };
        // What is compared with case is never for every path that is not.
        let cases = [Case::Ignored, Case::Sensitive].into_iter().take(1 + usize::from(path.case() == Case::Sensitive));
        for case in cases {
            let (segments, is_open) = path.walked(case);
            let segments: Vec<Option<&str>> = segments.iter().map(Option::as_deref).collect();
            for places in &places {
                places.find_including(host, case, &segments, is_open, &mut found);
            }
        }
        found
    }
}

impl<'c> Requirement<'c> {
    /// Those of a condition. Of several methods or lists, none is in every condition that it includes.
    fn all(condition: &'c Condition) -> impl Iterator<Item = Self> {
        let method = condition.methods.iter().filter_map(MethodSet::only).map(Self::Method);
        let client = condition.client.first().filter(|_| condition.client.len() == 1);
        method.chain(client.map(|list| Self::Client(*list))).chain(Self::of_values(condition))
    }

    /// Those that a condition meets. One method and one list suffice: they are in every condition that includes this one.
    fn met(condition: &'c Condition) -> impl Iterator<Item = Self> {
        let methods = condition.methods.iter().flat_map(MethodSet::names_of_first).map(Self::Method);
        let client = condition.client.first().map(|list| Self::Client(*list));
        methods.chain(client).chain(Self::of_values(condition))
    }

    fn of_values(condition: &'c Condition) -> impl Iterator<Item = Self> {
        let regex = condition.path_regex.iter().map(|regex| Self::PathRegex(regex.text(), regex.case()));
        let headers = condition.headers.iter().map(|(name, glob)| Self::Header(name, glob));
        let queries = condition.queries.iter().map(|(name, glob)| Self::Query(name, glob));
        let cookies = condition.cookies.iter().map(|(name, glob)| Self::Cookie(name, glob));
        regex.chain(headers).chain(queries).chain(cookies)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::route::PathPattern;
    use crate::route::PathRegex;
    use crate::route::UpstreamId;

    /// As `unreachable_routes`, by comparing every pair.
    fn of_pairs(routes: &[Route]) -> Vec<UnreachableRoute> {
        let for_requests = |route: &Route| route.domain.is_none();
        let earlier = |later: usize| {
            let includes = |route: &Route| for_requests(route) && route.condition.includes(&routes[later].condition);
            routes[..later].iter().position(includes).filter(|_| for_requests(&routes[later]))
        };
        let all = (0..routes.len()).filter_map(|route| Some(UnreachableRoute { route, earlier: earlier(route)? }));
        all.collect()
    }

    fn any_route() -> impl Strategy<Value = Route> {
        let is_of_domain = prop::bool::weighted(0.1);
        (is_of_domain, any_condition()).prop_map(|(is_of_domain, condition)| Route {
            name: "r".into(),
            condition: if is_of_domain { Condition::default() } else { condition },
            domain: is_of_domain.then(|| "d".into()),
            upstream: UpstreamId(0),
            only: None,
            limits: Vec::new(),
            outcome: None,
            known_clients: None,
            sessions: None,
            deny_response: None,
            denied: Vec::new(),
        })
    }

    fn any_condition() -> impl Strategy<Value = Condition> {
        let case = || prop::sample::select(vec![Case::Ignored, Case::Ignored, Case::Sensitive]);
        let host = prop::option::of(prop::sample::select(&HOSTS[..]));
        let path = prop::option::weighted(0.8, (prop::sample::select(&PATTERNS[..]), case()));
        let expression = prop::option::weighted(0.2, (prop::sample::select(vec!["^/a", "b$"]), case()));
        let methods = prop::option::weighted(0.4, prop::sample::select(&METHODS[..]));
        let client = prop::collection::vec((0..3_u16).prop_map(ListId), 0..3);
        let few = || prop::collection::vec((prop::sample::select(vec!["a", "b"]), "[xy*]"), 0..2);
        (host, path, expression, methods, prop::option::weighted(0.3, client), few(), few(), few()).prop_map(
            |(host, path, expression, methods, client, headers, queries, cookies)| {
                let glob = |(name, glob): (&str, String)| (name.into(), Glob::new(&glob));
                Condition {
                    methods: methods.map(|methods| methods.parse().unwrap()),
                    host: host.map(|host| host.parse().unwrap()),
                    path: path.map(|(path, case)| PathPattern::new(path, case).unwrap()),
                    path_regex: expression.map(|(text, case)| PathRegex::new(text, case).unwrap()),
                    headers: headers
                        .into_iter()
                        .map(|(name, text)| (name.parse().unwrap(), Glob::new(&text)))
                        .collect(),
                    queries: queries.into_iter().map(glob).collect(),
                    cookies: cookies.into_iter().map(glob).collect(),
                    client: client.unwrap_or_default(),
                }
            },
        )
    }

    const HOSTS: [&str; 9] =
        ["a.com", "b.a.com", "c.b.a.com", "*.a.com", "*.b.a.com", "*.com", "com", "ba.com", "[::1]"];

    const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "GET,POST", "HEAD,GET", "POST,PUT", "get,get", "PUT,HEAD"];

    const PATTERNS: [&str; 26] = [
        "/",
        "/*",
        "/a",
        "/A",
        "/a/*",
        "/a/b",
        "/a/b/*",
        "/{x}",
        "/{y}",
        "/{x}/*",
        "/{x}/b",
        "/{x}/{y}/*",
        "/a/{x}/*",
        "/a/{x}",
        "/a//b/./c",
        "/A/{x}/c",
        "/b",
        "/index.php/a",
        "/index.php/*",
        "/a/index.php",
        "/login.php",
        "/login.php/*",
        "/straße/*",
        "/STRASSE/{x}",
        "/a/b/a/b/a/b/a/b/a/b",
        "/a/b/a/b/a/b/a/b/*",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn the_routes_found_are_those_that_comparing_every_pair_finds(routes in prop::collection::vec(any_route(), 0..40)) {
            prop_assert_eq!(unreachable_routes(&routes), of_pairs(&routes));
        }
    }
}
