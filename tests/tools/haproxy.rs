//! `HAProxy` in front of the gateway and behind it, in every protocol that both speak.

use crate::exchanges;
use crate::site::Site;
use crate::support::{CertificateAuthority, Certified, Gateway, Haproxy, Request};

const TRUSTING: &str = "client_ip: {trusted_proxies: [127.0.0.1/32]}\n";

/// Believes only the gateway's certificate.
const VERIFYING: &str = "ssl verify required ca-file ca.pem sni str(a.test) verifyhost a.test";

#[test]
fn behind_haproxy_every_exchange_is_as_it_is_without_it() {
    let origin = exchanges::application();
    let site = Site::before(&origin.url(), TRUSTING);
    let ca = [("ca.pem", site.authority.pem())];
    for (address, server) in [
        (site.plain, String::new()),
        (site.plain, "proto h2".to_owned()),
        (site.secure, format!("{VERIFYING} alpn http/1.1")),
        (site.secure, format!("{VERIFYING} alpn h2")),
    ] {
        let haproxy = Haproxy::between("", address, &server, &ca);
        exchanges::check(haproxy.address(), &server);
        let asked =
            Request::new(haproxy.address(), "GET", "/who").from("127.0.0.5").header("X-Forwarded-For", "192.0.2.1");
        assert_eq!(asked.send().status, 200, "{server}");
        let seen = origin.last();
        assert_eq!(seen.header("x-real-ip"), Some("127.0.0.5"), "{server}");
        assert_eq!(seen.header("x-forwarded-for"), Some("192.0.2.1, 127.0.0.5, 127.0.0.1"), "{server}");
    }
}

#[test]
fn the_proxy_protocol_comes_before_tls_and_http2() {
    let origin = exchanges::application();
    let authority = CertificateAuthority::generate();
    let Certified { cert, key } = authority.server(&["a.test"]);
    let listen = "{address: 127.0.0.1:0, proxy_protocol: true, tls: {certificates: [{cert: site.pem, key: site.key}]}}";
    let gateway = Gateway::with_files(
        format!("listen: [{listen}]\n{TRUSTING}upstream: {}", origin.url()),
        &[("site.pem", &cert), ("site.key", &key)],
    );
    for options in ["send-proxy alpn h2", "send-proxy-v2 alpn h2", "send-proxy-v2 alpn http/1.1"] {
        let server = format!("{VERIFYING} {options}");
        let haproxy = Haproxy::between("", gateway.address(), &server, &[("ca.pem", authority.pem())]);
        exchanges::check(haproxy.address(), &server);
    }
}

#[test]
fn before_haproxy_every_exchange_is_as_it_is_without_it() {
    let origin = exchanges::application();
    let authority = CertificateAuthority::generate();
    let Certified { cert, key } = authority.server(&["app.internal"]);
    let pem = format!("{cert}{key}");
    for (scheme, http2, bind) in [
        ("http", false, ""),
        ("http", true, "proto h2"),
        ("https", false, "ssl crt site.pem alpn http/1.1"),
        ("https", true, "ssl crt site.pem alpn h2,http/1.1"),
    ] {
        let haproxy = Haproxy::between(bind, origin.address(), "", &[("site.pem", &pem)]);
        let gateway = Gateway::with_files(
            format!(
                "upstream: app\nupstreams:\n  app: {{servers: ['{scheme}://{}'], http2: {http2}, \
                 tls: {{ca: ca.pem, server_name: app.internal}}}}",
                haproxy.address()
            ),
            &[("ca.pem", authority.pem())],
        );
        exchanges::check(gateway.address(), &format!("{scheme} {bind}"));
    }
}
