//! openssl `s_client`: versions, protocols, names, resumption, and refusals.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::site::Site;
use crate::support::{CertificateAuthority, Certified, Origin, certificate};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

/// What openssl says of a connection on which it sends this.
fn s_client(site: &Site, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("timeout")
        .args(["60", "openssl", "s_client", "-connect", &site.secure.to_string(), "-CAfile", "ca.pem"])
        .args(arguments)
        .current_dir(site.gateway.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("timeout is part of every system");
    let mut stdin = child.stdin.take().expect("piped");
    // Whether it wants to hear this depends on the handshake.
    let _ = stdin.write_all(input.as_bytes());
    let output = child.wait_with_output();
    drop(stdin);
    let output = output.expect("it ends when the gateway closes");
    assert_ne!(output.status.code(), Some(124), "{arguments:?}: the gateway does not close");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The certificates shown, as PEM.
fn shown(said: &str) -> Vec<String> {
    let mut certificates = Vec::new();
    for piece in said.split("-----BEGIN CERTIFICATE-----").skip(1) {
        let body = piece.split("-----END").next().unwrap_or_default();
        certificates.push(format!("-----BEGIN CERTIFICATE-----{body}-----END CERTIFICATE-----\n"));
    }
    certificates
}

#[test]
fn tls_1_2_and_1_3_are_spoken_and_nothing_older_or_weaker() {
    let origin = Origin::start();
    let site = Site::before(&origin.url(), "");
    for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let said = s_client(&site, &[version, "-servername", "a.test", "-verify_return_error"], REQUEST);
        assert!(said.contains(&format!("New, {name}, Cipher is")), "{said}");
        assert!(said.contains("Verify return code: 0 (ok)") && said.contains("HTTP/1.1 200"), "{said}");
        assert!(said.contains("Compression: NONE"), "{said}");
        assert!(said.contains("Secure Renegotiation IS") == (version == "-tls1_2") || version == "-tls1_3", "{said}");
    }
    assert_eq!(origin.count(), 2);
    let old = "DEFAULT:@SECLEVEL=0";
    for refused in [
        &["-tls1", "-cipher", old][..],
        &["-tls1_1", "-cipher", old],
        &["-tls1_2", "-cipher", "AES128-SHA:AES256-SHA"],
        &["-tls1_2", "-cipher", "AES128-GCM-SHA256"],
        &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA"],
        &["-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"],
    ] {
        let said = s_client(&site, &[refused, &["-servername", "a.test"]].concat(), REQUEST);
        assert!(said.contains("Cipher is (NONE)"), "{refused:?}: {said}");
        assert!(!said.contains("HTTP/1.1"), "{refused:?}: {said}");
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_protocol_is_agreed_on_or_none_is_spoken() {
    let origin = Origin::start();
    let site = Site::before(&origin.url(), "");
    let agreed = |offered: &str| s_client(&site, &["-servername", "a.test", "-alpn", offered], REQUEST);
    for (offered, chosen) in
        [("h2,http/1.1", "h2"), ("http/1.1,h2", "h2"), ("http/1.1", "http/1.1"), ("spdy/3,http/1.1", "http/1.1")]
    {
        let said = agreed(offered);
        assert!(said.contains(&format!("ALPN protocol: {chosen}\n")), "{offered}: {said}");
    }
    let said = s_client(&site, &["-servername", "a.test"], REQUEST);
    assert!(said.contains("No ALPN negotiated") && said.contains("HTTP/1.1 200"), "{said}");
    let said = agreed("spdy/3,http/0.9");
    assert!(said.contains("no application protocol") && !said.contains("HTTP/1.1"), "{said}");
}

#[test]
fn the_name_chooses_the_certificate_and_its_chain_is_shown() {
    let origin = Origin::start();
    let authority = CertificateAuthority::generate();
    let between = authority.intermediate();
    let Certified { cert, key } = authority.server(&["a.test"]);
    let chained = between.server(&["b.test"]);
    let chain = format!("{}{}", chained.cert, between.pem());
    let site = Site::certified(
        &origin.url(),
        "",
        authority,
        &[("site.pem", &cert), ("site.key", &key), ("b.pem", &chain), ("b.key", &chained.key)],
    );
    let listen = "listen:\n  - 127.0.0.1:0\n  - address: 127.0.0.1:0\n    tls:\n      certificates:\n        \
                  - {cert: site.pem, key: site.key}\n        - {cert: b.pem, key: b.key}\n";
    site.gateway.reload(format!("{listen}upstream: {}", origin.url()));
    for version in ["-tls1_2", "-tls1_3"] {
        let said =
            s_client(&site, &[version, "-servername", "a.test", "-verify_hostname", "a.test", "-showcerts"], REQUEST);
        assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
        assert_eq!(certificate(&shown(&said)[0]), certificate(&cert));
        let said =
            s_client(&site, &[version, "-servername", "b.test", "-verify_hostname", "b.test", "-showcerts"], REQUEST);
        assert!(said.contains("Verify return code: 0 (ok)") && said.contains("HTTP/1.1 200"), "{said}");
        let seen: Vec<_> = shown(&said).iter().map(|pem| certificate(pem)).collect();
        assert!(seen.starts_with(&[certificate(&chained.cert), certificate(between.pem())]), "{said}");
        let said = s_client(&site, &[version, "-noservername"], REQUEST);
        assert_eq!(certificate(&shown(&said)[0]), certificate(&cert), "the first one without a name");
    }
}

#[test]
fn sessions_are_resumed() {
    let origin = Origin::start();
    let site = Site::before(&origin.url(), "");
    for version in ["-tls1_2", "-tls1_3"] {
        let name = ["-servername", "a.test"];
        let said = s_client(&site, &[&[version, "-sess_out", "session.pem"], &name[..]].concat(), REQUEST);
        assert!(said.contains("New, TLSv1") && site.gateway.path("session.pem").exists(), "{version}: {said}");
        let said = s_client(&site, &[&[version, "-sess_in", "session.pem"], &name[..]].concat(), REQUEST);
        assert!(said.contains("Reused, TLSv1") && said.contains("HTTP/1.1 200"), "{version}: {said}");
        fs::remove_file(site.gateway.path("session.pem")).expect("it was there");
    }
    let said = s_client(&site, &["-tls1_2", "-reconnect", "-servername", "a.test"], REQUEST);
    assert_eq!(said.matches("Reused, TLSv1.2").count(), 5, "{said}");
}

#[test]
fn nothing_is_renegotiated() {
    let origin = Origin::start();
    let site = Site::before(&origin.url(), "server: {timeouts: {header: 1s}}");
    // An R at the beginning of a line is an order to s_client, not for the gateway.
    let said = s_client(&site, &["-tls1_2", "-servername", "a.test"], "R\n");
    let (_, after) = said.split_once("RENEGOTIATING").unwrap_or_else(|| panic!("{said}"));
    assert!(!after.contains("verify return"), "{said}");
    assert_eq!(origin.count(), 0);
}

#[test]
fn early_data_is_not_taken() {
    let origin = Origin::start();
    let site = Site::before(&origin.url(), "");
    fs::write(site.gateway.path("early"), REQUEST).expect("a file");
    let name = ["-tls1_3", "-servername", "a.test"];
    let said = s_client(&site, &[&["-sess_out", "session.pem"], &name[..]].concat(), REQUEST);
    assert!(said.contains("Max Early Data: 0"), "{said}");
    let said = s_client(&site, &[&["-sess_in", "session.pem", "-early_data", "early"], &name[..]].concat(), REQUEST);
    assert!(said.contains("Early data was not sent") || said.contains("Early data was rejected"), "{said}");
    assert_eq!(origin.count(), 2, "what was asked early was not answered");
}
