//! Bodies that a key reads: with a wrong type, compressed, too long, in parts.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{Gateway, Origin};

const FORM: &str = "application/x-www-form-urlencoded";

fn by_user(origin: &Origin) -> Gateway {
    Gateway::start(format!(
        "upstream: {}\nserver: {{inspect_body: 1KiB}}\nlimits:\n  - {{name: user, key: param.user, rate: 1/hour}}",
        origin.url()
    ))
}

pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn the_application_gets_an_inspected_body_as_it_came() {
    let origin = Origin::start();
    let gateway = by_user(&origin);
    let body = gzip("user=zoe");
    assert_eq!(gateway.post("/").header("Content-Encoding", "gzip").body(FORM, &body).status(), 200);
    assert_eq!(origin.last().body, body);
    assert_eq!(origin.last().header("content-encoding"), Some("gzip"));
    let long = format!("user=yan&x={}", "x".repeat(300_000));
    assert_eq!(gateway.post("/").form(&long).status(), 200);
    assert_eq!(origin.last().text(), long);
}

#[test]
fn a_value_beyond_what_is_inspected_counts_as_missing() {
    let origin = Origin::start();
    let gateway = by_user(&origin);
    let padded = |user: &str| gateway.post("/").form(&format!("x={}&user={user}", "x".repeat(2000)));
    assert_eq!(padded("alice").status(), 200);
    assert_eq!(padded("bob").status(), 429);
    assert_eq!(gateway.get("/").status(), 429);
}

#[test]
fn a_body_not_seen_whole_counts_against_the_missing_value_too() {
    let origin = Origin::start();
    let gateway = by_user(&origin);
    let padded = |user: &str| gateway.post("/").form(&format!("user={user}&x={}", "x".repeat(2000)));
    assert_eq!(padded("alice").status(), 200);
    assert_eq!(gateway.post("/").form("user=alice").status(), 429);
    assert_eq!(padded("bob").status(), 429);
}

#[test]
fn a_compressed_bomb_is_decoded_only_within_the_bound() {
    let origin = Origin::start();
    let gateway = by_user(&origin);
    let bomb = gzip(&"x".repeat(50 << 20));
    let before = gateway.resident_kib();
    let status = gateway.post("/").header("Content-Encoding", "gzip").body(FORM, &bomb).status();
    assert_eq!(status, 200);
    assert!(gateway.resident_kib() < before + 8 * 1024, "{} KiB more", gateway.resident_kib() - before);
}

#[test]
fn a_field_in_pieces_is_found() {
    let origin = Origin::start();
    let gateway = by_user(&origin);
    assert_eq!(gateway.post("/").form("user=alice").status(), 200);
    let mut client = gateway.connect();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {FORM}\r\nTransfer-Encoding: chunked\r\n\r\n"));
    for piece in ["us", "er=a", "li", "ce"] {
        client.send(format!("{:x}\r\n{piece}\r\n", piece.len()));
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.response().status, 429);
}

#[test]
fn a_denied_body_is_not_awaited() {
    let origin = Origin::start();
    let gateway =
        Gateway::start(format!("upstream: {}\nlimits:\n  - {{name: one, key: client_ip, rate: 1/hour}}", origin.url()));
    assert_eq!(gateway.get("/").status(), 200);
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    let denied = client.response();
    assert_eq!(denied.status, 429);
    // A body that was not read closes the connection.
    assert!(client.ends_within(std::time::Duration::from_secs(5)));
    assert_eq!(origin.count(), 1);
}
