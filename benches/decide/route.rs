//! The walk through a table of a few routes: well under 200 ns.

use std::hint::black_box;

use criterion::Criterion;
use http::Method;
use portcullis::rules::client::ClientIp;
use portcullis::rules::list::Membership;
use portcullis::rules::request::CanonicalHead;
use portcullis::rules::route::{BodyMethods, Case, Condition, RequestReadings, Route, RouteTable, UpstreamId};
use portcullis::wire::head;
use portcullis::wire::head::KnownName;

pub(crate) fn benches(criterion: &mut Criterion) {
    let table = table(&["POST /login", "/admin/*", "GET,POST /users/{id}", "PUT /files/*", "/api/*", "/static/*"]);
    let mut group = criterion.benchmark_group("route");
    for (name, method, target) in [
        ("first_of_six", "POST", "/login"),
        ("captures", "GET", "/users/7"),
        ("last_of_six", "GET", "/static/site.css"),
        ("none_of_six", "GET", "/index.html"),
    ] {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut sent = head::RequestHead::to(method, target).expect("a target");
        sent.fields.append(KnownName::ACCEPT, b"*/*");
        sent.fields.append(KnownName::COOKIE, b"a=b");
        sent.set_host("www.example.com");
        let head = CanonicalHead::read(&sent, ClientIp::new([192, 0, 2, 1].into()));
        let membership = |_| Membership::None;
        group.bench_function(name, |bench| {
            bench.iter(|| {
                black_box(&table).walk(&mut RequestReadings::new(&head, BodyMethods::Known(&[]), &membership))
            });
        });
    }
    group.finish();
}

fn table(matches: &[&str]) -> RouteTable {
    let condition = |text: &str| Condition::short(text, Case::Ignored).expect("a match");
    RouteTable::new(matches.iter().map(|text| route(text, condition(text))).collect())
}

pub(crate) fn route(name: &str, condition: Condition) -> Route {
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
