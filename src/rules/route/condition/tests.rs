use std::borrow::Cow;

use super::*;
use crate::rules::client::ClientIp;
use crate::rules::list::Membership;
use crate::rules::route::BodyMethods;
use crate::wire::head;

/// A request as it is written in these tests: `POST /login?next=1`, then header lines.
fn head(request: &str) -> head::RequestHead {
    let mut lines = request.lines().map(str::trim);
    let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
    let mut head = head::RequestHead::to(method.parse().unwrap(), target).unwrap();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap();
        head.fields.append(&name.parse::<FieldName>().unwrap(), value.trim().as_bytes());
    }
    head.set_host("www.example.com");
    head
}

fn judged(condition: &Condition, request: &str, body: BodyMethods<'_>, client: Membership) -> Option<Certainty> {
    let sent = head(request);
    let head = CanonicalHead::read(&sent, ClientIp::new([192, 0, 2, 1].into()));
    let membership = |_| client;
    let mut readings = RequestReadings::new(&head, body, &membership);
    let certainty = condition.judge(&mut readings).ok();
    assert_eq!(certainty.is_some(), condition.matches(&mut readings));
    certainty
}

#[track_caller]
fn check(condition: &Condition, request: &str, expected: Option<Certainty>) {
    assert_eq!(judged(condition, request, BodyMethods::Known(&[]), Membership::None), expected, "{request}");
}

fn short(text: &str) -> Condition {
    Condition::short(text, Case::Ignored).unwrap()
}

const NEVER: Option<Certainty> = None;

const POSSIBLY: Option<Certainty> = Some(Certainty::Possibly);

const PLAINLY: Option<Certainty> = Some(Certainty::Plainly);

const SURELY: Option<Certainty> = Some(Certainty::Surely);

#[test]
fn the_short_form_is_methods_and_a_path() {
    check(&short("POST /login"), "POST /login", SURELY);
    check(&short("POST /login"), "GET /login", NEVER);
    check(&short("get,post /login"), "POST /LOGIN/", SURELY);
    check(&short("/admin/*"), "DELETE /admin/users", SURELY);
    check(&short("GET /"), "HEAD /", SURELY);
}

#[test]
fn a_malformed_short_form_says_so() {
    let refused = |text| Condition::short(text, Case::Ignored).unwrap_err();
    assert_eq!(refused("POST"), InvalidMatch::Short("POST".into()));
    assert_eq!(refused("/login POST"), InvalidMatch::Short("/login POST".into()));
    assert_eq!(refused("POST /a /b"), InvalidMatch::Short("POST /a /b".into()));
    assert_eq!(refused(""), InvalidMatch::Short(String::new()));
    assert_eq!(refused("PO(ST /login"), InvalidMatch::Method(InvalidMethod("PO(ST".into())));
    assert_eq!(refused("POST login"), InvalidMatch::Path(InvalidPathPattern::Relative("login".into())));
}

#[test]
fn an_override_adds_a_reading_and_takes_none_away() {
    let put = short("PUT /thing");
    check(&put, "POST /thing", NEVER);
    check(&put, "POST /thing\nX-HTTP-Method-Override: put", POSSIBLY);
    check(&put, "POST /thing\nX-HTTP-Method: PUT", POSSIBLY);
    check(&put, "POST /thing\nX-Method-Override: PATCH, PUT", POSSIBLY);
    check(&put, "POST /thing?_method=put", POSSIBLY);
    check(&put, "POST /thing?_method=get&_method=put", POSSIBLY);
    check(&put, "POST /thing?%5Fmethod=PUT", POSSIBLY);
    check(&put, "PUT /thing\nX-HTTP-Method-Override: GET", PLAINLY);
    check(&put, "PUT /thing?_method=nonsense", PLAINLY);
    check(&put, "PUT /thing\nX-HTTP-Method-Override: PUT", SURELY);
    check(&put, "PUT /thing?_method=", SURELY);
}

#[test]
fn the_body_may_say_another_method() {
    let condition = short("DELETE /thing");
    let check = |request, body, expected| assert_eq!(judged(&condition, request, body, Membership::None), expected);
    check("POST /thing", BodyMethods::Known(&[Cow::Borrowed("delete")]), POSSIBLY);
    check("POST /thing", BodyMethods::Known(&[Cow::Borrowed("PUT")]), NEVER);
    check("POST /thing", BodyMethods::Unknown, POSSIBLY);
    check("DELETE /thing", BodyMethods::Unknown, PLAINLY);
    check("DELETE /thing", BodyMethods::Known(&[Cow::Borrowed("GET")]), PLAINLY);
    check("POST /other", BodyMethods::Unknown, NEVER);
}

#[test]
fn any_of_repeated_values_matches_and_only_all_of_them_surely() {
    let glob = || Glob::new("log*");
    let query = Condition { queries: vec![("action".into(), glob())], ..Condition::default() };
    check(&query, "GET /?action=LOGIN", SURELY);
    check(&query, "GET /?x=1&action=login&action=show", PLAINLY);
    check(&query, "GET /?action=show", NEVER);
    check(&query, "GET /", NEVER);
    let header = Condition { headers: vec![("x-do".parse().unwrap(), glob())], ..Condition::default() };
    check(&header, "GET /\nX-Do: Logout", SURELY);
    check(&header, "GET /\nX-Do: login\nX-Do: show", PLAINLY);
    check(&header, "GET /\nX-Do: show", NEVER);
    check(&header, "GET /", NEVER);
    let cookie = Condition { cookies: vec![("do".into(), glob())], ..Condition::default() };
    check(&cookie, "GET /\nCookie: a=b; do=login", SURELY);
    check(&cookie, "GET /\nCookie: do=show\nCookie: do=login", PLAINLY);
    check(&cookie, "GET /\nCookie: a=b", NEVER);
}

#[test]
fn a_client_on_a_list_matches_with_any_value() {
    let condition = Condition { client: vec![ListId(0)], ..Condition::default() };
    let check = |client, expected| assert_eq!(judged(&condition, "GET /", BodyMethods::Known(&[]), client), expected);
    check(Membership::All, SURELY);
    check(Membership::Some, PLAINLY);
    check(Membership::None, NEVER);
}

#[test]
fn all_conditions_must_hold() {
    let condition = Condition {
        host: Some("*.example.com".parse().unwrap()),
        path_regex: Some(PathRegex::new("/v[12]/", Case::Ignored).unwrap()),
        queries: vec![("q".into(), Glob::new("*"))],
        ..short("GET /api/*")
    };
    check(&condition, "GET /api/v1/users?q=", SURELY);
    check(&condition, "POST /api/v1/users?q=", NEVER);
    check(&condition, "GET /api/v3/users?q=", NEVER);
    check(&condition, "GET /api/v1/users", NEVER);
    check(&Condition { host: Some("example.com".parse().unwrap()), ..condition }, "GET /api/v1/users?q=", NEVER);
    check(&Condition::default(), "GET /anything", SURELY);
}

#[test]
fn the_first_condition_that_fails_is_named() {
    let sent = head("GET /login");
    let head = CanonicalHead::read(&sent, ClientIp::new([192, 0, 2, 1].into()));
    let membership = |_| Membership::None;
    let mut readings = RequestReadings::new(&head, BodyMethods::Known(&[]), &membership);
    let mut mismatch = |condition: Condition| condition.mismatch(&mut readings).unwrap().to_string();
    assert_eq!(mismatch(short("POST /login")), "the method is not POST");
    assert_eq!(mismatch(short("/admin/*")), "the path is not /admin/*");
    let host = Some("api.example.com".parse().unwrap());
    assert_eq!(mismatch(Condition { host, ..Condition::default() }), "the host is not api.example.com");
    let queries = vec![("q".into(), Glob::new("x*"))];
    assert_eq!(mismatch(Condition { queries, ..Condition::default() }), "no query parameter q is x*");
    assert_eq!(
        mismatch(Condition { client: vec![ListId(0)], ..Condition::default() }),
        "the client is on none of the lists"
    );
}
