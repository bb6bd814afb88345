//! From a head to a batch: lists, routes, keys and their hashes, without the store.

use std::hint::black_box;

use criterion::Criterion;
use http::Method;
use portcullis::rules::client::{ClientIp, Prefix};
use portcullis::rules::decision::policy::{Access, PolicyList};
use portcullis::rules::decision::{Policy, enter};
use portcullis::rules::key::{KeyHasher, KeyPart, KeySpec, Selector, Spelling};
use portcullis::rules::limit::{
    Algorithm, Count, DenyResponse, DescriptorFilter, Detail, Limit, LimitId, Missing, Rule, Then,
};
use portcullis::rules::list::{List, ListId, Members};
use portcullis::rules::request::{BodyFields, CanonicalHead};
use portcullis::rules::route::{Case, Condition, Route, RouteTable, SessionCarriers, UpstreamId};
use portcullis::wire::head;
use portcullis::wire::head::KnownName;

pub(crate) fn benches(criterion: &mut Criterion) {
    let by_client = KeyPart { selector: Selector::ClientIp(Some(Prefix::default())), spelling: Spelling::Usual };
    let by_name = KeyPart { selector: Selector::Param("username".into()), spelling: Spelling::Usual };
    let mut group = criterion.benchmark_group("plan");
    let one = policy(vec![vec![by_client.clone()]]);
    bench(&mut group, "by_client", &one, "/login", "");
    let two = policy(vec![vec![by_client.clone()], vec![by_client, by_name]]);
    bench(&mut group, "by_client_and_by_name", &two, "/login", "username=Alice&password=secret");
    bench(&mut group, "no_limit", &one, "/index.html", "");
    group.finish();
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

fn bench(group: &mut Group<'_>, name: &str, policy: &Policy, path: &str, body: &str) {
    let mut sent = head::RequestHead::to(Method::POST, path).expect("a target");
    sent.fields.append(KnownName::CONTENT_TYPE, b"application/x-www-form-urlencoded");
    sent.set_host("www.example.com");
    let client = ClientIp::new([192, 0, 2, 1].into());
    let head = CanonicalHead::read(&sent, client);
    let fields = if body.is_empty() {
        BodyFields::none()
    } else {
        BodyFields::read(&sent.fields, &body.to_owned().into(), true, 65536)
    };
    group.bench_function(name, |bench| {
        let hasher = KeyHasher::new([1; 16]);
        bench.iter(|| black_box(enter(policy, &head).plan(&fields, &hasher).batch().charges.len()));
    });
}

/// A login with limits under these keys, behind a deny list.
fn policy(keys: Vec<Vec<KeyPart>>) -> Policy {
    let limit = |(number, parts): (usize, Vec<KeyPart>)| Limit {
        name: format!("limit-{number}").into(),
        key: KeySpec { parts, ..KeySpec::default() },
        missing: Missing::Count,
        rule: Rule::Rates {
            algorithm: Algorithm::SlidingWindowLog,
            rates: "1/second; 20/minute; 200/hour; 800/day".parse().expect("rates"),
            cost: 1.try_into().expect("above zero"),
        },
        count: Count::Requests,
        distinct: None,
        reset_on: None,
        then: Then::default(),
        shadow: false,
        unless: Vec::new(),
        unless_known: false,
        descriptors: DescriptorFilter::default(),
        headers: Detail::Full,
        on_failure: portcullis::rules::limit::OnFailure::Local,
        leases: true,
    };
    let limits: Vec<_> = keys.into_iter().enumerate().map(limit).collect();
    let login = Route {
        name: "login".into(),
        condition: Condition::short("POST /login", Case::Ignored).expect("a match"),
        domain: None,
        upstream: UpstreamId(0),
        only: None,
        limits: (0..).map(LimitId).take(limits.len()).collect(),
        outcome: None,
        known_clients: None,
        sessions: None,
        deny_response: None,
        denied: Vec::new(),
    };
    let abusers =
        ["203.0.113.0/24", "2001:db8:bad::/48"].map(|text| portcullis::rules::list::network(text).expect("a network"));
    let members = Members::Addresses(abusers.into_iter().collect());
    Policy {
        lists: vec![PolicyList { list: List { name: "abusers".into(), members }, of: None }],
        access: Access { allow: Vec::new(), deny: vec![ListId(0)] },
        client_prefix: Prefix::default(),
        limits,
        everywhere: Vec::new(),
        routes: RouteTable::new(vec![login]),
        upstream: UpstreamId(0),
        deny_response: DenyResponse::default(),
        channels: Vec::new(),
        session_carriers: SessionCarriers::default(),
    }
}
