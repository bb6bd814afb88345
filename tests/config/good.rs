//! Accepted spellings, and what they mean.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use portcullis::config::{Settings, load_with, render};
use portcullis::gateway::HeaderStyle;
use portcullis::gateway::tokens::KeySource;
use portcullis::rules::client::Prefix;
use portcullis::rules::jwt::TokenPlace;
use portcullis::rules::key::{Selector, Spelling};
use portcullis::rules::limit::action::DenyBody;
use portcullis::rules::limit::{
    Action, Algorithm, Count, DescriptorFilter, Detail, EntrySet, Limit, LimitId, Missing, OnFailure, Rule, Then,
};
use portcullis::rules::route::UpstreamId;
use portcullis::store::any_store::Nodes;
use portcullis::store::redis::{HashSlot, Mode};
use portcullis::upstream::{Balance, HostHeader};

#[track_caller]
pub(crate) fn load(name: &str) -> Settings {
    let file = Path::new("tests/config/good").join(name);
    load_with(&file, &super::environment).unwrap_or_else(|mistakes| panic!("{}", render(&mistakes, false)))
}

pub(crate) fn limit<'s>(settings: &'s Settings, name: &str) -> &'s Limit {
    settings.policy.limits.iter().find(|limit| &*limit.name == name).expect("a limit of that name")
}

#[test]
fn one_of_a_list_needs_no_brackets() {
    let settings = load("one-without-brackets.yaml");
    assert_eq!(settings.listen.len(), 1);
    assert_eq!(settings.policy.access.allow.len(), 1);
    assert_eq!(settings.policy.routes.all()[0].only.as_ref().map(Vec::len), Some(1));
    assert_eq!(settings.upstreams[0].servers.len(), 1);
}

#[test]
fn the_proxy_protocol_is_required_where_it_says_so_from_the_proxies_that_are_trusted() {
    let settings = load("proxy-protocol.yaml");
    assert_eq!(settings.listen[0].settings.proxy_protocol, None);
    assert_eq!(settings.listen[1].settings.proxy_protocol, Some(settings.clients));
}

#[test]
fn values_are_typed_by_their_key_quoted_or_not() {
    let settings = load("quoted.yaml");
    assert_eq!(settings.listen[0].address.to_string(), "0.0.0.0:8080");
    assert_eq!(settings.store.memory.max_keys, 5000);
    assert_eq!(settings.policy.deny_response.status, Some(StatusCode::FORBIDDEN));
    assert_eq!(settings.requests.max_body, Some(10 << 20));
    assert_eq!(settings.requests.headers, HeaderStyle::Off);
    assert_eq!(settings.upstreams[0].name.as_ref(), "yes");
}

#[test]
fn an_alias_repeats_a_whole_value() {
    let settings = load("aliases.yaml");
    let routes = settings.policy.routes.all();
    // Named once, it is one limit wherever it stands; without a name each is its own.
    assert_eq!(routes[0].limits[0], routes[1].limits[0]);
    assert_ne!(routes[0].limits[1], routes[1].limits[1]);
    let names: Vec<_> = settings.policy.limits.iter().map(|limit| &*limit.name).collect();
    assert_eq!(names, ["shared", "one-2", "two-2"]);
}

#[test]
fn every_form_of_a_key_is_read() {
    let settings = load("keys.yaml");
    let selectors = |name: &str| -> Vec<String> {
        limit(&settings, name)
            .key
            .parts
            .iter()
            .map(|part| match &part.spelling {
                Spelling::Usual => part.selector.to_string(),
                Spelling::LocalPart => format!("{} local part", part.selector),
                Spelling::AsSent => format!("{} raw", part.selector),
                Spelling::Name(name) => format!("{} {:?} {:?}", part.selector, name.fold, name.pattern),
            })
            .collect()
    };
    assert_eq!(selectors("one"), ["client_ip"]);
    assert_eq!(selectors("several"), ["client_ip", "param.username", "header.x-api-key"]);
    assert_eq!(selectors("nobody"), Vec::<String>::new());
    assert_eq!(selectors("raw"), ["param.username raw"]);
    assert_eq!(selectors("local"), ["xml.methodCall.params.param.0.value local part"]);
    assert_eq!(selectors("letters"), ["param.username Some(Letters) None"]);
    assert_eq!(selectors("email"), [r#"query.mail Some(Email) Some(NamePattern("[^@]+@example\\.com"))"#]);
    assert_eq!(selectors("first"), ["first(header.x-api-key, param.user, client_ip)", "host"]);
    let net = |name: &str| match limit(&settings, name).key.parts[0].selector {
        Selector::ClientIp(net) => net,
        _ => None,
    };
    assert_eq!(net("one"), Some(Prefix { v4: 28, v6: 56 }));
    assert_eq!(net("wide"), Some(Prefix { v4: 24, v6: 56 }));
    assert_eq!(selectors("captured"), ["path.id", "path.year"]);
    // What a body says may be another's.
    assert_eq!(limit(&settings, "one").headers, Detail::Full);
    assert_eq!(limit(&settings, "several").headers, Detail::RetryAfter);
    assert_eq!(limit(&settings, "raw").headers, Detail::None);
}

#[test]
fn every_kind_of_limit_is_read() {
    let settings = load("limits.yaml");
    let rule = |name: &str| limit(&settings, name).rule.clone();
    let algorithm = |name: &str| match rule(name) {
        Rule::Rates { algorithm, .. } => algorithm,
        Rule::Distinct(rates) => panic!("{rates} of different values"),
        Rule::Concurrent(_) => panic!("no rate"),
    };
    assert_eq!(algorithm("log"), Algorithm::SlidingWindowLog);
    assert_eq!(algorithm("counter"), Algorithm::SlidingWindowCounter);
    assert_eq!(algorithm("fixed"), Algorithm::FixedWindow);
    assert_eq!(algorithm("buckets"), Algorithm::BucketedWindow { buckets: 24.try_into().ok() });
    assert_eq!(algorithm("tokens"), Algorithm::TokenBucket { burst: 50.try_into().ok() });
    assert_eq!(algorithm("tokens-by-default"), Algorithm::TokenBucket { burst: None });
    assert_eq!(rule("flight"), Rule::Concurrent(20.try_into().expect("not zero")));
    let dear = limit(&settings, "dear");
    assert!(matches!(&dear.rule, Rule::Rates { cost, .. } if cost.get() == 5));
    assert_eq!((dear.count, dear.missing, dear.shadow), (Count::Attempts, Missing::Skip, true));
    assert_eq!(dear.unless.len(), 2);
}

#[test]
fn a_denial_looks_as_it_is_told_to() {
    let settings = load("denials.yaml");
    let Action::Deny(Some(own)) = &limit(&settings, "own").then.action else { panic!("a response of its own") };
    assert_eq!(own.status, Some(StatusCode::SERVICE_UNAVAILABLE));
    let Some(DenyBody::Verbatim { content_type, content }) = &own.body else { panic!("a body") };
    assert_eq!((content_type.to_str().ok(), &content[..]), (Some("application/json"), &br#"{"slow": "down"}"#[..]));
    assert_eq!(own.headers[0].0.as_str(), "x-denied-by");
    assert_eq!(limit(&settings, "plain").then, Then::default());
    assert_eq!(limit(&settings, "braces").then, Then::default());
    let route = settings.policy.routes.all()[0].deny_response.as_ref().expect("the route's own");
    assert_eq!(route.redirect.as_ref().and_then(|target| target.to_str().ok()), Some("/slow-down"));
    assert!(
        matches!(&settings.policy.deny_response.body, Some(DenyBody::Page(page)) if page.starts_with(b"<!doctype"))
    );
}

#[test]
fn an_upstream_is_a_name_or_a_url() {
    let settings = load("upstreams.yaml");
    let names: Vec<_> = settings.upstreams.iter().map(|upstream| &*upstream.name).collect();
    // Two spellings of one URL are one upstream.
    assert_eq!(names, ["app", "files", "127.0.0.1:9000"]);
    let routes = settings.policy.routes.all();
    let upstreams: Vec<_> = routes.iter().map(|route| route.upstream).collect();
    assert_eq!(upstreams, [UpstreamId(1), UpstreamId(2), UpstreamId(2), UpstreamId(0)]);
    assert_eq!(settings.policy.upstream, UpstreamId(0));
    let app = &settings.upstreams[0];
    assert_eq!(app.balance, Balance::RoundRobin);
    assert_eq!(app.host, HostHeader::Fixed("app.internal".parse().expect("a value")));
    assert_eq!(app.timeouts.connect, Duration::from_millis(500));
    assert_eq!(app.timeouts.idle, Duration::from_secs(60));
    let health = app.health.as_ref().expect("a health check");
    assert_eq!((health.path.as_str(), health.every, health.unhealthy), ("/healthz?deep=1", Duration::from_secs(5), 3));
}

#[test]
fn the_only_upstream_is_the_default_one() {
    assert_eq!(load("only-upstream.yaml").policy.upstream, UpstreamId(0));
}

#[test]
fn the_environment_stands_in_values() {
    let settings = load("environment.yaml");
    assert_eq!(settings.listen[0].address.to_string(), "0.0.0.0:8080");
    assert_eq!(settings.upstreams[0].servers[0].name(), "127.0.0.1:8000");
    let body = settings.policy.deny_response.body.as_ref().expect("a body");
    assert!(matches!(body, DenyBody::Verbatim { content, .. } if &content[..] == b"Set ${PORT}.\n"));
}

#[test]
fn routes_without_a_name_are_called_by_their_match() {
    let settings = load("names.yaml");
    let names: Vec<_> = settings.policy.routes.all().iter().map(|route| &*route.name).collect();
    assert_eq!(
        names,
        [
            "POST /login",
            "GET,POST api.example.com/v1/*",
            "~^/x query.a=1",
            "/same header.a=x",
            "/same header.a=x (2)",
            "named",
        ]
    );
    let limits: Vec<_> = settings.policy.limits.iter().map(|limit| &*limit.name).collect();
    assert_eq!(
        limits,
        ["limit-1", "limit-2-2", "post-login-1", "limit-2", "get-post-api-example-com-v1-1", "named-1",]
    );
    assert_eq!(settings.policy.everywhere, [LimitId(0), LimitId(1)]);
}

#[test]
fn harmless_defaults_of_what_is_not_built_are_accepted() {
    let settings = load("harmless.yaml");
    assert_eq!(settings.listen.len(), 1);
}

#[test]
fn a_limit_says_itself_what_holds_while_redis_is_away() {
    let settings = load("redis.yaml");
    assert_eq!(limit(&settings, "as-the-store").on_failure, OnFailure::Deny);
    assert_eq!(limit(&settings, "its-own").on_failure, OnFailure::Allow);
    assert_eq!(settings.store.on_failure, OnFailure::Deny);
    assert_eq!(settings.store.nodes, Nodes::Fixed(NonZeroU32::new(4).expect("above zero")));
    assert_eq!(settings.store.memory.max_keys, 5000);
    let redis = settings.store.redis.expect("a redis");
    let addresses: Vec<_> = redis.urls.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.1:6379", "[::1]:6380"]);
    assert_eq!((redis.mode, redis.timeout), (Mode::Cluster, Duration::from_millis(50)));
    assert_eq!(redis.key_prefix, "{site}");
}

#[test]
fn a_redis_needs_no_more_than_its_url() {
    let store = load("redis-short.yaml").store;
    assert_eq!((store.on_failure, store.nodes), (OnFailure::Local, Nodes::Auto));
    let redis = store.redis.expect("a redis");
    assert_eq!(redis.urls[0].to_string(), "127.0.0.1:6379");
    assert_eq!((redis.mode, redis.timeout), (Mode::Single, Duration::from_millis(100)));
    assert_eq!((&*redis.key_prefix, redis.hash_slot), ("portcullis", HashSlot::Key));
}

#[test]
fn the_client_may_decide_the_hash_slot() {
    let redis = load("redis-client.yaml").store.redis.expect("a redis");
    assert_eq!((redis.mode, redis.hash_slot), (Mode::Cluster, HashSlot::Client));
}

#[test]
fn routes_of_domains_come_after_those_of_requests() {
    let settings = load("domains.yaml");
    let routes = &settings.policy.routes;
    let names: Vec<_> = routes.all().iter().map(|route| &*route.name).collect();
    assert_eq!(names, ["/*", "domain edge.proxy", "shop"]);
    assert_eq!(routes.of_requests().len(), 1);
    let of_domain = |domain| routes.of_domain(domain).map(|id| &*routes.get(id).name);
    assert_eq!(of_domain("shop"), Some("shop"));
    assert_eq!(of_domain("edge.proxy"), Some("domain edge.proxy"));
    assert_eq!(of_domain("Shop"), None, "the name of a domain is compared as it is");
    let parts =
        |name| limit(&settings, name).key.parts.iter().map(|part| part.selector.to_string()).collect::<Vec<_>>();
    assert_eq!(parts("domain-edge-proxy-1"), ["descriptor.remote_address"]);
    assert_eq!(parts("odd"), ["descriptor.:path x", "descriptor.user"]);
    let DescriptorFilter { values, except, entries, .. } = &limit(&settings, "chosen").descriptors;
    let values: Vec<_> = values.iter().map(|(name, glob)| format!("{name}: {glob}")).collect();
    assert_eq!(values, ["tier: gold*", "generic_key: slow"]);
    let except: Vec<_> = except.iter().map(|(name, globs)| (&**name, globs.len())).collect();
    assert_eq!((except, *entries), (vec![("user", 2), ("tier", 1)], EntrySet::Exact));
    assert_eq!(limit(&settings, "chosen").headers, Detail::Full);
}

#[test]
fn tokens_are_looked_for_and_verified_as_written() {
    let tokens = load("jwt.yaml").tokens.expect("there is a `jwt`");
    assert_eq!(tokens.place, TokenPlace::Cookie("access_token".into()));
    assert_eq!(tokens.validity.issuers, ["https://a.example.com", "https://b.example.com"]);
    assert_eq!((&tokens.validity.audiences[..], tokens.validity.leeway), (&["api".to_owned()][..], Duration::ZERO));
    let KeySource::Url(document) = tokens.keys else { panic!("a URL") };
    assert_eq!(document.url.to_string(), "http://[::1]:8081/keys");
}
