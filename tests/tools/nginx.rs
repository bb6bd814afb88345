//! nginx in front of the gateway and behind it.

use crate::exchanges;
use crate::site::Site;
use crate::support::{CertificateAuthority, Certified, Gateway, Nginx, RawClient, Request, digest};

const TRUSTING: &str = "client_ip: {trusted_proxies: [127.0.0.1/32]}\n";

/// Passes everything on, at once, on connections that are kept.
const PASSING: &str = "keepalive 8; } server { listen LISTEN; location / { proxy_http_version 1.1; proxy_set_header Connection \"\"; \
     proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_request_buffering off; ";

#[test]
fn behind_nginx_every_exchange_is_as_it_is_without_it() {
    let origin = exchanges::application();
    let site = Site::before(&origin.url(), &format!("{TRUSTING}admin: {{address: 127.0.0.1:0}}"));
    let verifying = "proxy_pass https://gateway; proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; \
                     proxy_ssl_name a.test; proxy_ssl_server_name on; } }";
    for (address, pass) in [(site.plain, "proxy_pass http://gateway; } }"), (site.secure, verifying)] {
        let http = format!("upstream gateway {{ server {address}; {PASSING}{pass}");
        let nginx = Nginx::start(&http, &[("ca.pem", site.authority.pem())]);
        exchanges::check(nginx.address(), pass);
        for _ in 0..30 {
            let asked =
                Request::new(nginx.address(), "GET", "/who").from("127.0.0.5").header("X-Forwarded-For", "192.0.2.1");
            assert_eq!(asked.send().status, 200, "{pass}");
        }
        let seen = origin.last();
        assert_eq!(seen.header("x-real-ip"), Some("127.0.0.5"), "{pass}");
        assert_eq!(seen.header("x-forwarded-for"), Some("192.0.2.1, 127.0.0.5, 127.0.0.1"), "{pass}");
        let standing = site.gateway.connections();
        assert!((1..=8).contains(&standing), "connections are kept: {standing}");
    }
}

/// How a server listens, and how the gateway is told to ask it.
const BEHIND: [(&str, &str, bool); 4] =
    [("", "http", false), ("http2", "http", true), ("ssl", "https", false), ("ssl http2", "https", true)];

/// The gateway before an nginx with the rest of a `server` block.
fn before(listen: &str, scheme: &str, http2: bool, server: &str) -> (Nginx, Gateway) {
    let authority = CertificateAuthority::generate();
    let Certified { cert, key } = authority.server(&["app.internal"]);
    let http = format!(
        "ssl_certificate site.pem; ssl_certificate_key site.key; server {{ listen LISTEN {listen}; {server} }}"
    );
    let nginx = Nginx::start(&http, &[("site.pem", &cert), ("site.key", &key), ("index.html", &page())]);
    let gateway = Gateway::with_files(
        format!(
            "upstream: app\nupstreams:\n  app: {{servers: ['{scheme}://{}'], http2: {http2}, \
             tls: {{ca: ca.pem, server_name: app.internal}}}}",
            nginx.address()
        ),
        &[("ca.pem", authority.pem())],
    );
    (nginx, gateway)
}

/// A page of some length, which compresses well.
fn page() -> String {
    "The same line, again and again.\n".repeat(8000)
}

#[test]
fn before_nginx_every_exchange_is_as_it_is_without_it() {
    let origin = exchanges::application();
    for (listen, scheme, http2) in BEHIND {
        let server = format!(
            "location / {{ proxy_http_version 1.1; proxy_request_buffering off; proxy_pass {}; }}",
            origin.url()
        );
        let (_nginx, gateway) = before(listen, scheme, http2, &server);
        exchanges::check(gateway.address(), &format!("{scheme} {listen}"));
    }
}

#[test]
fn files_of_nginx_are_read_and_written_through_the_gateway() {
    for (listen, scheme, http2) in BEHIND {
        let server = "root .; gzip on; gzip_types *; location = /small { client_max_body_size 1k; dav_methods PUT; } \
                      location /put { dav_methods PUT DELETE; }";
        let (_nginx, gateway) = before(listen, scheme, http2, server);
        let (way, page) = (format!("{scheme} {listen}"), page());
        let whole = gateway.get("/index.html").send();
        assert_eq!((whole.status, whole.text() == page), (200, true), "{way}");
        let tag = whole.header("etag").expect("a tag").to_owned();
        assert_eq!(gateway.get("/index.html").header("If-None-Match", &tag).send().status, 304, "{way}");
        let part = gateway.get("/index.html").header("Range", "bytes=5-9").send();
        assert_eq!((part.status, part.text().as_bytes()), (206, &page.as_bytes()[5..10]), "{way}");
        let parts = gateway.get("/index.html").header("Range", "bytes=0-1,5-9,-3").send();
        assert!(parts.status == 206 && parts.text().contains("multipart") | parts.text().contains("--"), "{way}");
        let packed = gateway.get("/index.html").header("Accept-Encoding", "gzip").send();
        assert_eq!((packed.header("content-encoding"), packed.whole), (Some("gzip"), true), "{way}");
        assert!(packed.body_length < page.len() as u64, "{way}");
        let head = gateway.request("HEAD", "/index.html").send();
        assert_eq!(head.header("content-length"), Some(page.len().to_string().as_str()), "{way}");
        let content = vec![b'y'; 2 << 20];
        assert_eq!(gateway.request("PUT", "/put").body("text/plain", &content).status(), 201, "{way}");
        assert_eq!(gateway.get("/put").send().body_digest, digest(&content), "{way}");
        assert_eq!(gateway.request("DELETE", "/put").status(), 204, "{way}");
        assert_eq!(gateway.get("/put").status(), 404, "{way}");
        // Answered before the body has come.
        let mut client = RawClient::connect(gateway.address());
        client.send("PUT /small HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n").send(&content[..20_000]);
        assert_eq!(client.response_to("PUT").status, 413, "{way}");
    }
}

#[test]
fn connections_that_nginx_ends_after_a_few_requests_lose_none() {
    for (listen, scheme, http2) in BEHIND {
        let (_nginx, gateway) = before(listen, scheme, http2, "root .; keepalive_requests 5;");
        let mut client = gateway.connect();
        let statuses: Vec<u16> = (0..100).map(|_| gateway.get("/index.html").send_on(&mut client).status).collect();
        assert_eq!(statuses, [200; 100], "{scheme} {listen}");
    }
}
