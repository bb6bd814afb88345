//! TLS to the applications: their certificates are verified.

use std::net::TcpListener;

use crate::support::{Answer, CertificateAuthority, Gateway, Origin, SecureOrigin, eventually};

/// A gateway before one server, with `more` among the keys of the upstream, and the authority's certificate in `ca.pem`.
fn before(server: &SecureOrigin, authority: &CertificateAuthority, more: &str) -> Gateway {
    let config = format!("upstream: app\nupstreams:\n  app: {{servers: [{}]{more}}}", server.url());
    Gateway::with_files(config, &[("ca.pem", authority.pem())])
}

#[track_caller]
fn check_distrusted(gateway: &Gateway, origin: &Origin, reason: &str) {
    assert_eq!(gateway.get("/").status(), 502);
    assert_eq!(origin.count(), 0);
    eventually("the reason is logged", || gateway.log_messages().iter().any(|line| line.contains(reason)));
}

#[test]
fn a_server_is_verified_against_the_named_authority_and_bodies_go_both_ways() {
    let (authority, origin) =
        (CertificateAuthority::generate(), Origin::answering(|received| Answer::ok(&received.body)));
    let server = SecureOrigin::before(origin.address(), &authority, &["127.0.0.1"]);
    let gateway = before(&server, &authority, ", tls: {ca: ca.pem}");
    let body = "0123456789abcdef".repeat(20_000);
    assert_eq!(gateway.post("/").body("text/plain", &body).send().text(), body);
    assert_eq!(origin.last().header("host"), Some("app.example"));
    assert_eq!(server.requested_names(), [None], "an address is verified, and never asked for by name");
}

#[test]
fn the_host_in_the_url_is_verified_and_asked_for() {
    let (authority, origin) = (CertificateAuthority::generate(), Origin::start());
    let server = SecureOrigin::before(origin.address(), &authority, &["localhost"]);
    let config = format!(
        "upstream: app\nupstreams:\n  app: {{servers: ['https://localhost:{}'], tls: {{ca: ca.pem}}}}",
        server.address().port()
    );
    let gateway = Gateway::with_files(config, &[("ca.pem", authority.pem())]);
    assert_eq!(gateway.get("/").status(), 200);
    assert_eq!(server.requested_names(), [Some("localhost".to_owned())]);
}

#[test]
fn server_name_is_verified_and_asked_for_in_place_of_the_host() {
    let (authority, origin) = (CertificateAuthority::generate(), Origin::start());
    let server = SecureOrigin::before(origin.address(), &authority, &["app.internal"]);
    let gateway = before(&server, &authority, ", tls: {ca: ca.pem, server_name: app.internal}");
    assert_eq!(gateway.get("/").status(), 200);
    assert_eq!(server.requested_names(), [Some("app.internal".to_owned())]);
    let gateway = before(&server, &authority, ", tls: {ca: ca.pem, server_name: other.internal}");
    assert_eq!(gateway.get("/").status(), 502);
}

#[test]
fn without_a_named_authority_those_of_the_system_count() {
    let (authority, origin) = (CertificateAuthority::generate(), Origin::start());
    let server = SecureOrigin::before(origin.address(), &authority, &["127.0.0.1"]);
    check_distrusted(&before(&server, &authority, ""), &origin, "UnknownIssuer");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("roots.pem");
    std::fs::write(&file, authority.pem()).expect("a file");
    let environment = [("SSL_CERT_FILE", file.to_str().expect("plain"))];
    let gateway = Gateway::in_environment(format!("upstream: {}", server.url()), &[], &environment);
    assert_eq!(gateway.get("/").status(), 200);
}

#[test]
fn a_certificate_of_somebody_else_is_502_logged_and_counted_as_a_failure_to_connect() {
    let (authority, origin) = (CertificateAuthority::generate(), Origin::start());
    let server = SecureOrigin::before(origin.address(), &authority, &["127.0.0.1"]);
    let config = format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: app\nupstreams:\n  app: {{servers: [{}], tls: {{ca: ca.pem}}}}",
        server.url()
    );
    let gateway = Gateway::with_files(config, &[("ca.pem", CertificateAuthority::generate().pem())]);
    check_distrusted(&gateway, &origin, "invalid peer certificate");
    let metrics = crate::support::Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let counted = metrics.lines().find(|line| line.starts_with("portcullis_upstream_errors_total{"));
    assert!(counted.is_some_and(|line| line.contains("cause=\"connect\"") && line.ends_with(" 1")), "{metrics}");
}

#[test]
fn a_certificate_for_another_name_is_502() {
    let (authority, origin) = (CertificateAuthority::generate(), Origin::start());
    let server = SecureOrigin::before(origin.address(), &authority, &["127.0.0.2", "localhost"]);
    check_distrusted(&before(&server, &authority, ", tls: {ca: ca.pem}"), &origin, "not valid for name");
}

#[test]
fn the_next_server_is_tried_when_one_cannot_be_believed() {
    let (authority, origin) = (CertificateAuthority::generate(), Origin::start());
    let good = SecureOrigin::before(origin.address(), &authority, &["127.0.0.1"]);
    let bad = SecureOrigin::before(origin.address(), &CertificateAuthority::generate(), &["127.0.0.1"]);
    let config = format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}, {}], balance: round_robin, tls: {{ca: ca.pem}}}}",
        bad.url(),
        good.url()
    );
    let gateway = Gateway::with_files(config, &[("ca.pem", authority.pem())]);
    for number in 0..6 {
        assert_eq!(gateway.post("/").form(&format!("n={number}")).status(), 200);
    }
    assert_eq!(origin.count(), 6);
}

#[test]
fn a_changed_authority_is_read_anew_and_holds_for_connections_kept_from_before() {
    let (authority, origin) = (CertificateAuthority::generate(), Origin::start());
    let server = SecureOrigin::before(origin.address(), &authority, &["127.0.0.1"]);
    let gateway = before(&server, &authority, ", tls: {ca: ca.pem}");
    assert_eq!(gateway.get("/").status(), 200);
    gateway.write("ca.pem", CertificateAuthority::generate().pem());
    eventually("the other authority counts", || gateway.get("/").status() == 502);
    gateway.write("ca.pem", authority.pem());
    eventually("the first authority counts again", || gateway.get("/").status() == 200);
    gateway.write("ca.pem", "no certificate");
    eventually("what is no authority is refused", || gateway.failed_reloads() == 1);
    assert_eq!(gateway.get("/").status(), 200);
}

#[test]
fn a_server_that_does_not_shake_hands_is_given_up_in_the_time_to_connect() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("bound");
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: ['https://{address}'], timeouts: {{connect: 200ms}}}}"
    ));
    assert_eq!(gateway.get("/").status(), 504);
    drop(silent);
}

#[test]
fn sessions_are_resumed() {
    let (authority, origin) = (CertificateAuthority::generate(), Origin::answering(|_| Answer::ok("once").closing()));
    let server = SecureOrigin::before(origin.address(), &authority, &["127.0.0.1"]);
    let gateway = before(&server, &authority, ", tls: {ca: ca.pem}");
    eventually("a later connection goes on with an earlier session", || {
        assert_eq!(gateway.get("/").status(), 200);
        server.resumed() > 0
    });
}

#[test]
fn health_is_asked_over_tls_too() {
    let (authority, origin) = (CertificateAuthority::generate(), Origin::start());
    let server = SecureOrigin::before(origin.address(), &authority, &["127.0.0.1"]);
    let health = "health: {path: /healthz, every: 20ms, unhealthy: 1, healthy: 1}";
    let gateway = before(&server, &authority, &format!(", tls: {{ca: ca.pem}}, {health}"));
    eventually("health is asked", || origin.requests().iter().any(|request| request.target == "/healthz"));
    assert_eq!(gateway.get("/").status(), 200);
    let gateway = before(&server, &authority, &format!(", {health}"));
    eventually("a server that cannot be believed is not well", || gateway.get("/").status() == 503);
}
