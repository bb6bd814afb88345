//! curl: every version of HTTP, in clear and over TLS; bodies, expectations, certificates.

use std::fs;

use crate::site::Site;
use crate::support::{Answer, CertificateAuthority, Certified, Exchange, Gateway, Origin, digest};
use crate::tool::run;

/// How curl is told to speak, over which scheme, and what it then speaks.
const WAYS: [(&str, &str, &str); 9] = [
    ("--http1.0", "http", "1"),
    ("--http1.1", "http", "1.1"),
    ("--http2", "http", "1.1"),
    ("--http2-prior-knowledge", "http", "2"),
    ("--http1.0", "https", "1"),
    ("--http1.1", "https", "1.1"),
    ("--http2", "https", "2"),
    ("--no-alpn", "https", "1.1"),
    ("--tls-max=1.2", "https", "2"),
];

/// More than any buffer on the way holds.
const BIG: usize = 24 << 20;

fn big() -> Vec<u8> {
    (0..BIG / 4).flat_map(|number| u32::try_from(number).expect("not that many").to_le_bytes()).collect()
}

/// `--name=value` is two words to curl.
fn words(way: &'static str) -> Vec<&'static str> {
    way.split('=').collect()
}

#[test]
fn every_version_of_http_is_spoken_in_clear_and_over_tls() {
    let origin = Origin::answering(|_| Answer::new(200, &[("X-From", "origin"), ("ETag", "\"1\"")], "hello"));
    let site = Site::before(&origin.url(), "");
    for (way, scheme, version) in WAYS {
        let ask = |more: &[&str]| {
            let said =
                site.curl(&[&words(way), more, &["-w", " %{http_version} %{http_code}"]].concat(), scheme, "/a?b=c");
            assert_eq!((said.code, said.errors.as_str()), (Some(0), ""), "{way} {scheme} {more:?}");
            said.text
        };
        let said = ask(&[]);
        assert!(said.starts_with(&format!("hello {version}")) && said.ends_with(" 200"), "{way} {scheme}: {said}");
        let seen = origin.last();
        assert_eq!((seen.method.as_str(), seen.target.as_str()), ("GET", "/a?b=c"));
        assert!(seen.header("host").is_some_and(|host| host.starts_with("a.test:")), "{seen:?}");
        assert_eq!(seen.header("x-forwarded-proto"), Some(scheme));
        assert_eq!((seen.header("upgrade"), seen.header("http2-settings")), (None, None), "{way}");
        let head = ask(&["-I"]);
        assert!(head.to_ascii_lowercase().contains("x-from: origin\r\n") && !head.contains("hello"), "{way}: {head}");
        assert_eq!(origin.last().method, "HEAD");
        for method in ["PUT", "PATCH", "DELETE", "OPTIONS"] {
            assert!(ask(&["-X", method, "-d", "a=b"]).starts_with("hello "), "{way} {method}");
            assert_eq!((origin.last().method.as_str(), origin.last().text().as_str()), (method, "a=b"));
        }
        assert!(ask(&["-F", "field=value", "-F", "file=@site.pem"]).starts_with("hello "));
        assert!(origin.last().text().contains("BEGIN CERTIFICATE"));
    }
}

#[test]
fn answers_without_a_body_are_read_to_their_end() {
    let origin = Origin::answering(|received| match received.header("if-none-match") {
        Some(_) => Answer::new(304, &[("ETag", "\"1\"")], ""),
        None => Answer::new(204, &[("ETag", "\"1\"")], ""),
    });
    let site = Site::before(&origin.url(), "");
    for (way, scheme, _) in WAYS {
        for (field, status) in [("X-A: b", "204"), ("If-None-Match: \"1\"", "304")] {
            let arguments = [&words(way)[..], &["-m", "30", "-w", "%{http_code}", "-H", field]].concat();
            let said = site.curl(&arguments, scheme, "/");
            assert_eq!((said.text.as_str(), said.code), (status, Some(0)), "{way} {scheme}: {}", said.errors);
        }
    }
}

/// Takes uploads and says what they were; gives the big body to who asks for it, at once or in chunks.
fn store(mut exchange: Exchange) {
    while let Some(received) = exchange.request() {
        let said = match received.target.as_str() {
            "/whole" => {
                exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {BIG}\r\n\r\n"));
                exchange.write(big())
            }
            "/chunked" => {
                exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                for chunk in big().chunks(50_000) {
                    exchange.write([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
                }
                exchange.write("0\r\n\r\n")
            }
            _ => {
                let said = received.body_digest.to_string();
                exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{said}", said.len()))
            }
        };
        if !said {
            return;
        }
    }
}

#[test]
fn large_bodies_arrive_whole_both_ways() {
    let origin = Origin::scripted(store);
    let site = Site::before(&origin.url(), "");
    let content = big();
    let expected = digest(&content);
    fs::write(site.gateway.path("big"), content).expect("a file");
    for (way, scheme, _) in
        WAYS.into_iter().filter(|(way, ..)| ["--http1.1", "--http2", "--http2-prior-knowledge"].contains(way))
    {
        for path in ["/whole", "/chunked"] {
            let said = site.curl(&[way, "-o", "got"], scheme, path);
            assert_eq!((said.code, said.errors.as_str()), (Some(0), ""), "{way} {scheme} {path}");
            assert_eq!(digest(&fs::read(site.gateway.path("got")).expect("a file")), expected, "{way} {scheme} {path}");
        }
        for field in ["X-A: b", "Transfer-Encoding: chunked"] {
            let said = site.curl(&[way, "-T", "big", "-H", field], scheme, "/up");
            assert_eq!(said.text, expected.to_string(), "{way} {scheme} {field}: {}", said.errors);
        }
    }
}

#[test]
fn a_body_is_sent_when_the_application_asks_for_it_and_never_when_the_request_is_refused() {
    let origin = Origin::scripted(store);
    let site = Site::before(&origin.url(), "limits: [{name: once, key: header.x-key, rate: 1/hour}]");
    let content = vec![b'x'; 2 << 20];
    let expected = digest(&content);
    fs::write(site.gateway.path("big"), content).expect("a file");
    for (number, (way, scheme)) in
        [("--http1.1", "http"), ("--http1.1", "https"), ("--http2", "https"), ("--http2-prior-knowledge", "http")]
            .into_iter()
            .enumerate()
    {
        let key = format!("X-Key: {number}");
        let arguments = [way, "-v", "-T", "big", "-H", "Expect: 100-continue", "--expect100-timeout", "60", "-H", &key];
        let put = || site.curl(&[&arguments[..], &["-w", " %{http_code} %{size_upload}"]].concat(), scheme, "/up");
        let said = put();
        assert_eq!(said.text, format!("{expected} 200 {}", 2 << 20), "{way} {scheme}: {}", said.errors);
        assert!(said.errors.contains(" 100"), "{way} {scheme}: {}", said.errors);
        let said = put();
        // Over HTTP/2 curl sends some without being asked, until it is refused.
        let refused = if way == "--http1.1" { " 429 0" } else { " 429 " };
        assert!(said.text.contains(refused), "{way} {scheme}: {} {}", said.text, said.errors);
        assert_eq!(origin.count(), number + 1);
    }
}

#[test]
fn an_answer_that_comes_before_the_whole_upload_reaches_the_client() {
    let origin = Origin::scripted(|mut exchange| {
        if exchange.head().is_some() {
            exchange.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
            exchange.client_has_left();
        }
    });
    let site = Site::before(&origin.url(), "");
    fs::write(site.gateway.path("big"), vec![b'x'; 4 << 20]).expect("a file");
    for (way, scheme) in [("--http1.1", "http"), ("--http1.1", "https"), ("--http2", "https")] {
        let said = site.curl(&[way, "-T", "big", "-m", "60", "-H", "Expect:", "-w", " %{http_code}"], scheme, "/");
        assert_eq!(said.text, "big 413", "{way} {scheme}: {}", said.errors);
    }
}

#[test]
fn certificates_are_verified_on_both_sides() {
    let origin = Origin::start();
    let (authority, clients) = (CertificateAuthority::generate(), CertificateAuthority::generate());
    let Certified { cert, key } = authority.server(&["a.test", "b.test"]);
    let (client, stranger) = (clients.client(), CertificateAuthority::generate().client());
    let files = [
        ("ca.pem", authority.pem()),
        ("clients.pem", clients.pem()),
        ("site.pem", &cert),
        ("site.key", &key),
        ("client.pem", &client.cert),
        ("client.key", &client.key),
        ("stranger.pem", &stranger.cert),
        ("stranger.key", &stranger.key),
    ];
    let listen =
        "{address: 127.0.0.1:0, tls: {certificates: [{cert: site.pem, key: site.key}], client_ca: clients.pem}}";
    let gateway = Gateway::with_files(format!("listen: [{listen}]\nupstream: {}", origin.url()), &files);
    let port = gateway.address().port();
    let curl = |host: &str, arguments: &[&str]| {
        let (resolve, url) = (format!("{host}:{port}:127.0.0.1"), format!("https://{host}:{port}/"));
        let ours = ["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--resolve", &resolve];
        run(&gateway.path("."), "curl", &[&ours, arguments, &[&url]].concat())
    };
    let (ca, own) = (["--cacert", "ca.pem"], ["--cert", "client.pem", "--key", "client.key"]);
    for way in ["--http1.1", "--http2"] {
        assert_eq!(curl("a.test", &[&ca[..], &own, &[way]].concat()).text, "200");
        let elsewhere = curl("a.test", &[&ca[..], &own, &[way, "-H", "Host: b.test"]].concat());
        assert_eq!(elsewhere.text, "421", "{way}: {}", elsewhere.errors);
    }
    assert_eq!(origin.count(), 2);
    // 60: not to be believed.
    assert_eq!(curl("a.test", &own).code, Some(60));
    assert_eq!(curl("c.test", &[&ca[..], &own].concat()).code, Some(60));
    for refused in [&[][..], &["--cert", "stranger.pem", "--key", "stranger.key"]] {
        for most in ["1.2", "1.3"] {
            let said = curl("a.test", &[&ca[..], &["--tls-max", most], refused].concat());
            // How curl hears of it depends on where it just was.
            assert!(said.code != Some(0) && said.text == "000", "{refused:?} {most}: {said:?}");
        }
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn the_proxy_protocol_of_curl_is_understood() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "listen: [{{address: 127.0.0.1:0, proxy_protocol: true}}]\nclient_ip: {{trusted_proxies: [127.0.0.0/8]}}\nupstream: {}",
        origin.url()
    ));
    let url = format!("http://{}/", gateway.address());
    let said = run(&gateway.path("."), "curl", &["-sS", "--haproxy-protocol", &url]);
    assert_eq!((said.text.as_str(), origin.last().header("x-real-ip")), ("origin", Some("127.0.0.1")));
    let said = run(&gateway.path("."), "curl", &["-sS", &url]);
    assert!(matches!(said.code, Some(52 | 56)) && said.text.is_empty(), "{said:?}");
}
