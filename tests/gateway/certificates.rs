//! When certificates end, as the metrics and the status say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{ApiDescription, CertificateAuthority, Gateway, Origin, eventually};
use crate::tls::gateway;

const ADMIN: &str = "admin: {address: 127.0.0.1:0}\n";

/// By name, the Unix time in the metric.
fn ends(gateway: &Gateway) -> BTreeMap<String, i64> {
    let text = gateway.admin_request("GET", "/metrics").send().text();
    let ends = text.lines().filter_map(|line| {
        let (name, end) =
            line.strip_prefix("portcullis_certificate_expiry_seconds{name=\"")?.split_once("\"} ").expect("a value");
        Some((name.to_owned(), end.parse().expect("a whole number")))
    });
    ends.collect()
}

fn certificates(gateway: &Gateway) -> Value {
    let response = gateway.admin_request("GET", "/api/v1/status").send();
    ApiDescription::of(gateway).check("GET", "/api/v1/status", &response);
    response.json()["certificates"].clone()
}

#[test]
fn the_end_of_what_is_shown_for_each_name_follows_renewals_and_reloads() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let served = [authority.ending(&["a.test", "*.a.test"], 2031), authority.ending(&["b.test", "a.test"], 2032)];
    let gateway = gateway(&origin, &authority, &served, ADMIN);
    let of = |ends: &[(&str, i64)]| ends.iter().map(|(name, end)| ((*name).to_owned(), *end)).collect();
    let (in_2031, in_2032, in_2033) = (1_924_992_000, 1_956_528_000, 1_988_150_400);
    // Clients that ask for `a.test` are shown the first that has the name.
    assert_eq!(ends(&gateway), of(&[("a.test", in_2031), ("*.a.test", in_2031), ("b.test", in_2032)]));
    assert_eq!(
        certificates(&gateway),
        json!([
            {"names": ["*.a.test", "a.test"], "expires": "2031-01-01T00:00:00Z", "ends_soon": false},
            {"names": ["b.test"], "expires": "2032-01-01T00:00:00Z", "ends_soon": false},
        ])
    );

    let renewed = authority.ending(&["a.test", "*.a.test"], 2033);
    gateway.write("0.key", &renewed.key);
    gateway.write("0.pem", &renewed.cert);
    let expected = of(&[("a.test", in_2033), ("*.a.test", in_2033), ("b.test", in_2032)]);
    eventually("the renewed certificate counts", || ends(&gateway) == expected);

    gateway.reload(format!(
        "{ADMIN}listen: [{{address: 127.0.0.1:0, tls: {{certificates: [{{cert: 1.pem, key: 1.key}}]}}}}]\nupstream: {}\n",
        origin.url()
    ));
    // Another reload may come before it, as two files were written.
    let expected = of(&[("a.test", in_2032), ("b.test", in_2032)]);
    eventually("the other listener counts", || ends(&gateway) == expected);
    gateway.reload(format!("{ADMIN}listen: 127.0.0.1:0\nupstream: {}\n", origin.url()));
    eventually("nothing is shown", || (ends(&gateway), certificates(&gateway)) == (of(&[]), json!([])));
}

#[test]
fn of_several_listeners_the_first_end_counts_and_what_has_ended_is_said() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let (late, ended) = (authority.ending(&["a.test"], 2031), authority.expired("a.test"));
    let listener = |file: &str| {
        format!("{{address: 127.0.0.1:0, tls: {{certificates: [{{cert: {file}.pem, key: {file}.key}}]}}}}")
    };
    let config = format!("{ADMIN}listen: [{}, {}]\nupstream: {}\n", listener("late"), listener("ended"), origin.url());
    let files =
        [("late.pem", &*late.cert), ("late.key", &*late.key), ("ended.pem", &*ended.cert), ("ended.key", &*ended.key)];
    let gateway = Gateway::with_files(config, &files);
    assert_eq!(ends(&gateway), BTreeMap::from([("a.test".to_owned(), 1_577_836_800)]));
    assert_eq!(
        certificates(&gateway),
        json!([{"names": ["a.test"], "expires": "2020-01-01T00:00:00Z", "ends_soon": true}])
    );
}
