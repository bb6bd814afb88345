use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::rules::client::ClientIp;
use crate::rules::list::Membership;
use crate::rules::request::{CanonicalHead, RequestPath};
use crate::rules::route::{BodyMethods, Case, Condition, PathPattern, PathRegex, UpstreamId};
use crate::wire::head;
use crate::wire::head::KnownName;

fn table(matches: &[&str]) -> RouteTable {
    let route = |text: &&str| route(text, Condition::short(text, Case::Ignored).unwrap());
    RouteTable::new(matches.iter().map(route).collect())
}

fn route(name: &str, condition: Condition) -> Route {
    Route {
        name: name.into(),
        condition,
        domain: None,
        upstream: UpstreamId(0),
        only: None,
        limits: Vec::new(),
        outcome: None,
        known_clients: None,
        sessions: None,
        deny_response: None,
        denied: Vec::new(),
    }
}

/// The names of the collected routes, and of the primary one.
fn walk<'t>(
    table: &'t RouteTable,
    method: &str,
    target: &str,
    overrides: &[&str],
    body: BodyMethods<'_>,
) -> (Vec<&'t str>, Option<&'t str>) {
    let mut sent = head::RequestHead::to(method.parse().unwrap(), target).unwrap();
    for value in overrides {
        sent.fields.append(KnownName::X_HTTP_METHOD_OVERRIDE, value.as_bytes());
    }
    sent.set_host("example.com");
    let head = CanonicalHead::read(&sent, ClientIp::new([192, 0, 2, 1].into()));
    let walk = table.walk(&mut RequestReadings::new(&head, body, &|_| Membership::None));
    let name = |id: RouteId| &*table.get(id).name;
    (walk.collected.iter().copied().map(name).collect(), walk.primary.map(name))
}

const NO_BODY: BodyMethods<'static> = BodyMethods::Known(&[]);

#[test]
fn the_first_match_wins() {
    let table = table(&["POST /login", "/login", "/*"]);
    assert_eq!(walk(&table, "POST", "/login", &[], NO_BODY), (vec!["POST /login"], Some("POST /login")));
    assert_eq!(walk(&table, "GET", "/login", &[], NO_BODY), (vec!["/login"], Some("/login")));
    assert_eq!(walk(&table, "GET", "/else", &[], NO_BODY), (vec!["/*"], Some("/*")));
}

#[test]
fn no_match_is_no_route() {
    assert_eq!(walk(&table(&["/login"]), "GET", "/", &[], NO_BODY), (vec![], None));
    assert_eq!(walk(&table(&[]), "GET", "/", &[], NO_BODY), (vec![], None));
}

#[test]
fn a_request_that_may_be_read_in_two_ways_takes_the_rules_of_both() {
    let table = table(&["POST /login", "GET /login", "/*"]);
    assert_eq!(
        walk(&table, "GET", "/login", &["POST"], NO_BODY),
        (vec!["POST /login", "GET /login", "/*"], Some("GET /login"))
    );
    assert_eq!(
        walk(&table, "POST", "/login", &["GET"], NO_BODY),
        (vec!["POST /login", "GET /login", "/*"], Some("POST /login"))
    );
    assert_eq!(walk(&table, "POST", "/login", &["POST"], NO_BODY), (vec!["POST /login"], Some("POST /login")));
    let known = [Cow::Borrowed("POST")];
    let body = BodyMethods::Known(&known);
    assert_eq!(walk(&table, "GET", "/login", &[], body), (vec!["POST /login", "GET /login", "/*"], Some("GET /login")));
}

#[test]
fn where_only_an_override_matches_the_default_upstream_answers() {
    let table = table(&["PUT /thing"]);
    assert_eq!(walk(&table, "POST", "/thing", &["PUT"], NO_BODY), (vec!["PUT /thing"], None));
}

const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "PUT"];

fn any_table() -> impl Strategy<Value = Vec<String>> {
    let path = prop::sample::select(vec!["/a", "/a/*", "/b", "/*", "/{x}"]);
    let methods = prop::collection::vec(prop::sample::select(&METHODS[..]), 0..3);
    let route = (methods, path).prop_map(|(methods, path)| {
        let methods = methods.join(",");
        if methods.is_empty() { path.to_owned() } else { format!("{methods} {path}") }
    });
    prop::collection::vec(route, 0..6)
}

proptest! {
    #[test]
    fn whatever_the_application_reads_the_route_of_that_reading_is_among_the_collected(
        routes in any_table(),
        sent in prop::sample::select(&METHODS[..]),
        path in prop::sample::select(vec!["/a", "/b", "/a/c"]),
        header in prop::collection::vec(prop::sample::select(&METHODS[..]), 0..3),
        field in prop::option::of(prop::sample::select(&METHODS[..])),
        body in prop::collection::vec(prop::sample::select(&METHODS[..]), 0..2),
    ) {
        let routes: Vec<&str> = routes.iter().map(String::as_str).collect();
        let table = table(&routes);
        let target = field.map_or(path.to_owned(), |field| format!("{path}?_method={field}"));
        let in_body: Vec<Cow<'_, str>> = body.iter().map(|method| Cow::Borrowed(*method)).collect();
        let (collected, primary) = walk(&table, sent, &target, &header, BodyMethods::Known(&in_body));
        for read in header.iter().chain(&field).chain(&body).chain([&sent]) {
            if let (_, Some(route)) = walk(&table, read, path, &[], NO_BODY) {
                prop_assert!(collected.contains(&route), "{read} {path} takes {route}, collected {collected:?}");
            }
        }
        // What is added changes the rules, never the way.
        prop_assert_eq!(primary, walk(&table, sent, path, &[], NO_BODY).1);
        let (widest, still) = walk(&table, sent, &target, &header, BodyMethods::Unknown);
        prop_assert!(collected.iter().all(|route| widest.contains(route)));
        prop_assert_eq!(still, primary);
    }
}

const PATTERNS: [&str; 25] = [
    "/",
    "/*",
    "/a",
    "/A",
    "/a/*",
    "/a/b",
    "/a/b/*",
    "/{x}",
    "/{x}/*",
    "/{x}/b",
    "/a/{x}/*",
    "/a/{x}/b",
    "/b",
    "/a/login",
    "/index.php/a",
    "/index.php/*",
    "/a/index.php",
    "/login.php",
    "/login.php/*",
    "/cgi-bin/a",
    "/straße/*",
    "/a/%2561",
    "/a b",
    "/a/b/a/b/a/b/a/b/a/b",
    "/a/b/a/b/a/b/a/b/*",
];

const EXPRESSIONS: [&str; 14] = [
    "^/a/",
    "^/A$",
    "b",
    "/login",
    "^/$",
    "a/.*/b",
    "^/(?:a|login)/(?P<x>[^/]+)/b",
    "(?i)/STRA",
    "LOGIN[.]php$",
    "/a/b/?$",
    "/kiss|logins",
    "^/index[.](?:php|html)",
    "straße",
    "[^a]{2}b",
];

/// What paths are made of, in spellings that applications read differently.
const PIECES: [&str; 39] = [
    "/",
    "/",
    "/",
    "//",
    "/a",
    "/a",
    "/A",
    "/b",
    "/%61",
    "/%2561",
    "/b",
    "%2f",
    "%5c",
    "\\",
    "..",
    "/..",
    "/.",
    "/%2e%2e",
    ";x",
    "/;x",
    "/..;",
    "%00",
    ".",
    "%20",
    "?",
    "%3f",
    "/index.php",
    "/Index.html",
    "/login.php",
    "/login",
    "/cgi-bin",
    "/STRASSE",
    "/stra%C3%9Fe",
    "%zz",
    "/a/b/a/b/a/b",
    "::$DATA",
    // The sign of the unit Kelvin, and the long s.
    "/%E2%84%AAiss",
    "/Login%C5%BF",
    ".php",
];

fn any_condition() -> impl Strategy<Value = Condition> {
    let hosts = vec!["a.com", "b.a.com", "*.a.com", "*.com", "*.b.a.com", "[::1]"];
    let host = prop::option::of(prop::sample::select(hosts));
    let case = prop::sample::select(vec![Case::Ignored, Case::Ignored, Case::Sensitive]);
    let path = prop::option::weighted(0.9, prop::sample::select(&PATTERNS[..]));
    let expression = prop::option::weighted(0.3, prop::sample::select(&EXPRESSIONS[..]));
    (host, case, path, expression).prop_map(|(host, case, path, expression)| Condition {
        host: host.map(|host| host.parse().unwrap()),
        path: path.filter(|_| expression.is_none()).map(|path| PathPattern::new(path, case).unwrap()),
        path_regex: expression.map(|expression| PathRegex::new(expression, case).unwrap()),
        ..Condition::default()
    })
}

proptest! {
    #[test]
    fn the_index_finds_what_comparing_every_route_finds(
        conditions in prop::collection::vec(any_condition(), MIN_INDEXED..60),
        host in prop::sample::select(vec!["a.com", "B.a.com:80", "x.b.A.com.", "a.b.c.com", "com", "[::1]:80", "other"]),
        paths in prop::collection::vec(prop::collection::vec(prop::sample::select(&PIECES[..]), 0..7), 1..12),
    ) {
        let table = RouteTable::new(conditions.into_iter().map(|condition| route("r", condition)).collect());
        prop_assert!(table.index.is_some());
        let mut sent = head::RequestHead::to("GET".parse().unwrap(), "/").unwrap();
        sent.set_host(host);
        for path in paths.iter().map(|pieces| pieces.concat()) {
            let mut head = CanonicalHead::read(&sent, ClientIp::new([192, 0, 2, 1].into()));
            head.path = RequestPath::new(&path);
            let readings = || RequestReadings::new(&head, NO_BODY, &|_| Membership::None);
            prop_assert_eq!(table.walk(&mut readings()), table.walk_all(&mut readings()), "{} {}", host, path);
        }
    }
}
