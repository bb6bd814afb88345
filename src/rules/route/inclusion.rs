//! Whether one condition holds for every request that another one holds for: then the later of two routes is never
//! taken.

use hashbrown::HashMap;

use crate::rules::list::ListId;
use crate::rules::request::CanonicalPath;
use crate::rules::route::index::{Candidates, Places};
use crate::rules::route::pattern::{Segment, Shape};
use crate::rules::route::{Case, Condition, MethodSet, PathPattern, PathRegex, Route, RouteId};
use crate::wire::head::FieldName;
use crate::words::glob::Glob;

// Routes that no request can take, found without comparing every pair of routes.

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
    /// For each route, the requirement that the fewest routes have.
    places: HashMap<Option<Requirement<'c>>, Places>,
}

/// A requirement of a condition, which every condition that it includes has too.
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
                let (segments, is_open) = path.segments_in(path.case());
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
        // A condition that compares case never includes one that ignores it.
        let cases = [Case::Ignored, Case::Sensitive].into_iter().take(1 + usize::from(path.case() == Case::Sensitive));
        for case in cases {
            let (segments, is_open) = path.segments_in(case);
            let segments: Vec<Option<&str>> = segments.iter().map(Option::as_deref).collect();
            for places in &places {
                places.find_including(host, case, &segments, is_open, &mut found);
            }
        }
        found
    }
}

impl<'c> Requirement<'c> {
    /// The requirements of a condition. Several methods or lists give none, because a condition that it includes may
    /// have any of them.
    fn all(condition: &'c Condition) -> impl Iterator<Item = Self> {
        let method = condition.methods.iter().filter_map(MethodSet::only).map(Self::Method);
        let client = condition.client.first().filter(|_| condition.client.len() == 1);
        method.chain(client.map(|list| Self::Client(*list))).chain(Self::of_values(condition))
    }

    /// The requirements that a condition meets. One method and one list suffice: they are in every condition that
    /// includes this one.
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

// Whether one condition matches every request that another one matches.

impl Condition {
    /// Whether every request that meets `other` meets this too. `false` also where that is not certain.
    pub fn includes(&self, other: &Self) -> bool {
        // Paths last: they are taken apart to be compared.
        self.includes_methods(other)
            && self.includes_hosts(other)
            && self.headers.iter().all(|header| other.headers.contains(header))
            && self.queries.iter().all(|query| other.queries.contains(query))
            && self.cookies.iter().all(|cookie| other.cookies.contains(cookie))
            && self.includes_clients(other)
            && self.includes_paths(other)
    }

    fn includes_methods(&self, other: &Self) -> bool {
        let included = |methods: &MethodSet| other.methods.as_ref().is_some_and(|others| methods.includes(others));
        self.methods.as_ref().is_none_or(included)
    }

    fn includes_hosts(&self, other: &Self) -> bool {
        self.host.as_ref().is_none_or(|host| other.host.as_ref().is_some_and(|other| host.includes(other)))
    }

    fn includes_paths(&self, other: &Self) -> bool {
        let is_same = |regex: &PathRegex| other.path_regex.as_ref().is_some_and(|other| regex.is_same(other));
        let included = |path: &PathPattern| other.path.as_ref().is_some_and(|other| path.includes(other));
        self.path_regex.as_ref().is_none_or(is_same)
            && self.path.as_ref().is_none_or(|path| path.is_everything() || included(path))
    }

    /// One of these lists must hold the client, so more lists match more clients.
    fn includes_clients(&self, other: &Self) -> bool {
        self.client.is_empty()
            || (!other.client.is_empty() && other.client.iter().all(|list| self.client.contains(list)))
    }
}

// Whether one path pattern matches every path that another one matches.

impl PathPattern {
    /// Whether it matches every path.
    pub(super) fn is_everything(&self) -> bool {
        matches!(self.segments_in(self.case), (segments, true) if segments.is_empty())
    }

    /// Whether this matches every path that `other` matches. `false` also where that is not certain.
    pub(super) fn includes(&self, other: &Self) -> bool {
        // Paths that differ only in case differ for this pattern, but not for the other.
        if self.case == Case::Sensitive && other.case == Case::Ignored {
            return false;
        }
        let ((segments, open), (others, others_open)) = (self.segments_in(self.case), other.segments_in(self.case));
        let reaches =
            if open { segments.len() <= others.len() } else { !others_open && segments.len() == others.len() };
        reaches && segments.iter().zip(&others).all(|(one, other)| one.is_none() || one == other)
    }

    /// Its segments in the spelling that `case` compares, `None` for any segment, and whether more may follow.
    pub(super) fn segments_in(&self, case: Case) -> (Vec<Option<String>>, bool) {
        let (path, open) = match &self.shape {
            Shape::Exact(path) => (path, false),
            Shape::Prefix(path) => (path, true),
            Shape::Segments { segments, open } => {
                let walked = segments.iter().map(|segment| match segment {
                    Segment::Literal(literal) => Some(spelled(&format!("/{literal}"), case)[1..].to_owned()),
                    Segment::Named(_) => None,
                });
                return (walked.collect(), *open);
            }
        };
        let parts = spelled(path, case);
        (parts.split('/').filter(|part| !part.is_empty()).map(|part| Some(part.to_owned())).collect(), open)
    }
}

fn spelled(path: &str, case: Case) -> String {
    let path = if path.is_empty() { "/" } else { path };
    case.of(&CanonicalPath::new(path)).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::list::ListId;
    use crate::rules::route::{Case, PathPattern, PathRegex, UpstreamId};
    use crate::words::glob::Glob;

    fn short(text: &str) -> Condition {
        Condition::short(text, Case::Ignored).unwrap()
    }

    #[test]
    fn fewer_methods_are_included_in_more() {
        for (one, other, expected) in [
            ("/*", "POST /login", true),
            ("POST /login", "/login", false),
            ("GET /a", "HEAD /a", true),
            ("HEAD /a", "GET /a", false),
            ("GET,POST /*", "POST /a", true),
        ] {
            assert_eq!(short(one).includes(&short(other)), expected, "{other} in {one}");
        }
    }

    #[test]
    fn what_asks_for_more_is_included_in_what_asks_for_less() {
        let all = || short("/*");
        let narrow = Condition { queries: vec![("a".into(), Glob::new("1"))], client: vec![ListId(1)], ..all() };
        assert!(all().includes(&narrow));
        assert!(!narrow.includes(&all()));
        assert!(narrow.includes(&narrow));
        let wider = Condition { client: vec![ListId(0), ListId(1)], ..all() };
        assert!(wider.includes(&narrow));
        assert!(!narrow.includes(&wider));
        let other = Condition { queries: vec![("a".into(), Glob::new("2"))], ..all() };
        assert!(!other.includes(&narrow));
    }

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        let [one, other] = [one, other].map(|text| PathPattern::new(text, Case::Ignored).unwrap());
        assert_eq!(one.includes(&other), expected, "{other} in {one}");
    }

    #[test]
    fn a_pattern_includes_what_it_matches_in_every_case() {
        check("/*", "/", true);
        check("/*", "/users/{id}/*", true);
        check("/login", "//LOGIN/", true);
        check("/login", "/login/*", false);
        check("/login/*", "/login", true);
        check("/login/*", "/log", false);
        check("/a/*", "/a/b/*", true);
        check("/a/b/*", "/a/*", false);
        check("/{page}", "/login", true);
        check("/{page}", "/", false);
        check("/{page}", "/{other}", true);
        check("/login", "/{page}", false);
        check("/users/{id}", "/users/7/posts", false);
        check("/users/{id}/*", "/users/7/posts", true);
        check("/users/{id}/*", "/users", false);
    }

    #[test]
    fn what_is_compared_with_case_includes_nothing_that_is_not() {
        let [cased, folded] = [Case::Sensitive, Case::Ignored].map(|case| PathPattern::new("/Login", case).unwrap());
        assert!(!cased.includes(&folded));
        assert!(folded.includes(&cased));
        assert!(cased.includes(&cased));
    }

    /// Like `unreachable_routes`, by comparing every pair.
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
        #[test]
        fn the_routes_found_are_those_that_comparing_every_pair_finds(routes in prop::collection::vec(any_route(), 0..40)) {
            prop_assert_eq!(unreachable_routes(&routes), of_pairs(&routes));
        }
    }
}
