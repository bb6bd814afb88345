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
