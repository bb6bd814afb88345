//! Lists: allow, deny, only.

use crate::support::{Gateway, Origin};

#[test]
fn a_listed_client_is_refused_with_403_and_nothing_is_sent_upstream() {
    let origin = Origin::start();
    let gateway = Gateway::with_files(
        format!("upstream: {}\nlists:\n  abusers: {{file: abusers.txt}}\naccess: {{deny: [abusers]}}", origin.url()),
        &[("abusers.txt", "# seen last night\n127.0.0.2\n127.0.1.0/24   # a network\n\n")],
    );
    for (source, status) in [("127.0.0.1", 200), ("127.0.0.2", 403), ("127.0.1.77", 403), ("127.0.2.1", 200)] {
        assert_eq!(gateway.get("/").from(source).status(), status, "{source}");
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn allow_wins_over_deny_and_passes_every_limit() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nlists:\n  office: {{addresses: [127.0.0.2]}}\n  loopback: {{addresses: [127.0.0.0/8]}}\naccess: {{allow: [office], deny: [loopback]}}\nlimits:\n  - {{name: one, key: client_ip, rate: 1/hour}}",
        origin.url()
    ));
    for _ in 0..3 {
        assert_eq!(gateway.get("/").from("127.0.0.2").status(), 200);
    }
    assert_eq!(gateway.get("/").from("127.0.0.3").status(), 403);
}

#[test]
fn only_the_listed_reach_a_route() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nlists:\n  office: {{addresses: [127.0.0.2]}}\nroutes:\n  - {{match: /admin/*, only: [office]}}",
        origin.url()
    ));
    assert_eq!(gateway.get("/admin/users").status(), 403);
    assert_eq!(gateway.get("/%61dmin").status(), 403);
    assert_eq!(gateway.get("/admin/users").from("127.0.0.2").status(), 200);
    assert_eq!(gateway.get("/").status(), 200);
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_list_may_hold_other_values_than_addresses() {
    let origin = Origin::start();
    let gateway = Gateway::with_files(
        format!(
            "upstream: {}\nlists:\n  partners: {{of: header.x-api-key, file: keys.txt}}\nroutes:\n  - {{match: /partner/*, only: [partners]}}",
            origin.url()
        ),
        &[("keys.txt", "alpha-key\nBeta-Key\n")],
    );
    let status = |key: &str| gateway.get("/partner/x").header("X-Api-Key", key).status();
    assert_eq!(status("alpha-key"), 200);
    assert_eq!(status("Beta-Key"), 200);
    assert_eq!(status("beta-key"), 403);
    assert_eq!(gateway.get("/partner/x").status(), 403);
}

#[test]
fn a_value_beside_a_listed_one_opens_nothing() {
    let origin = Origin::start();
    let gateway = Gateway::with_files(
        format!(
            "upstream: {}\nlists:\n  partners: {{of: query.key, file: keys.txt}}\nroutes:\n  - {{match: /partner/*, only: [partners]}}",
            origin.url()
        ),
        &[("keys.txt", "alpha\n")],
    );
    assert_eq!(gateway.get("/partner/x?key=alpha").status(), 200);
    assert_eq!(gateway.get("/partner/x?key=alpha&key=stolen").status(), 403);
}

#[test]
fn a_refusal_says_so_in_the_problem_format_and_is_not_cached() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nlists:\n  all: {{addresses: [127.0.0.0/8]}}\naccess: {{deny: [all]}}",
        origin.url()
    ));
    let refusal = gateway.get("/").header("Accept", "application/json").send();
    assert_eq!(refusal.status, 403);
    assert_eq!(refusal.header("content-type"), Some("application/problem+json"));
    assert_eq!(refusal.json()["status"], 403);
    assert_eq!(refusal.header("cache-control"), Some("no-store"));
    assert_eq!(refusal.header("retry-after"), None);
}
