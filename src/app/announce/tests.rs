use crate::app::announce::*;
use crate::app::followed_lists::OpenLists;
use crate::app::state;
use crate::app::state::{LiveSnapshot, SnapshotParts};
use crate::app::token_keys::OpenKeys;
use crate::config;
use crate::record::notify::WebhookChannels;
use crate::record::{RouteSeries, Sinks};

const BEFORE: &str = "\
listen: 127.0.0.1:8080
upstream: app
upstreams:
  app: {servers: [http://10.0.1.5:8000]}
  old: {servers: [http://10.0.1.6:8000]}
lists:
  office: {addresses: [198.51.100.0/24]}
limits:
  - {name: per-client, key: client_ip, rate: 100/second, unless: [office]}
routes:
  - {name: login, match: POST /login, limits: [{name: login-pace, key: client_ip, rate: 5/minute}]}
  - {name: files, match: /files/*, upstream: old}
";

#[test]
fn the_same_text_is_no_change() {
    check(BEFORE, "the same names as before");
}

#[test]
fn a_limit_that_counts_otherwise_is_a_change() {
    check(&BEFORE.replace("5/minute", "6/minute"), "limit login-pace changed");
    let other = |option: &str| BEFORE.replace("rate: 5/minute", option);
    let anew = |what: &str| format!("limit login-pace changed, limit login-pace counts anew, as it has another {what}");
    check(&other("rate: 5/minute, algorithm: fixed-window"), &anew("algorithm"));
    check(&other("concurrent: 5"), &anew("algorithm"));
    check(&other("rate: 5/minute, distinct: param.username"), &anew("`distinct`"));
    check(&BEFORE.replace("login-pace, key: client_ip", "login-pace, key: [host, client_ip]"), &anew("key"));
}

#[test]
fn a_list_with_other_members_is_a_change() {
    check(&BEFORE.replace("198.51.100.0/24", "192.0.2.0/24"), "list office changed");
}

#[test]
fn an_upstream_with_other_servers_is_a_change() {
    check(&BEFORE.replace("10.0.1.5", "10.0.1.7"), "upstream app changed");
}

#[test]
fn names_come_and_go() {
    let renamed = BEFORE.replace("old", "new").replace("name: files", "name: downloads");
    let expected = "upstream new added, upstream old removed, route downloads added, route files removed";
    check(&renamed, expected);
}

#[test]
fn a_long_list_of_changes_is_cut() {
    let mut changes = Changes::default();
    (0..25).for_each(|number| changes.add(format!("limit {number} added")));
    assert!(changes.to_string().ends_with("limit 19 added and 5 more"), "{changes}");
}

#[test]
fn a_snapshot_is_freed_once_no_request_holds_it() {
    let mut live = LiveSnapshot::new(snapshot(BEFORE, None));
    let request = live.load();
    live.replace(snapshot(BEFORE, None));
    assert_eq!(live.take_unused().len(), 0);
    drop(request);
    assert_eq!(live.take_unused().len(), 1);
    assert_eq!(live.take_unused().len(), 0);
}

#[track_caller]
fn check(after: &str, expected: &str) {
    let old = snapshot(BEFORE, None);
    let new = snapshot(after, Some(&old));
    assert_eq!(Changes::between(&old, &new).to_string(), expected);
}

fn snapshot(text: &str, previous: Option<&Snapshot>) -> Snapshot {
    let settings = config::read("portcullis.yaml".as_ref(), text.to_owned(), &|_| None).expect("a good configuration");
    let Settings { policy, clients, upstreams, requests, tracing, log, .. } = settings;
    let parts =
        SnapshotParts { policy, clients, upstreams, requests, tracing, tokens: None, route_series: RouteSeries::All };
    state::build(
        parts,
        &log,
        &WebhookChannels::default(),
        (&OpenLists::default(), &OpenKeys::default()),
        previous,
        &Sinks::discard(),
    )
}
