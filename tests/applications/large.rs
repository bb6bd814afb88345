//! Large uploads and downloads arrive intact, and stay out of the gateway's memory.

use flate2::Crc;

use crate::django::Django;
use crate::support::digest;

const LARGE: usize = 64 << 20;

/// What the application serves: every byte value in turn.
fn bytes() -> Vec<u8> {
    (0..=u8::MAX).cycle().take(LARGE).collect()
}

#[test]
fn large_bodies_are_intact_both_ways() {
    let django = Django::start();
    let gateway = django.guarded();
    let bytes = bytes();
    let before = gateway.resident_kib();
    let uploaded = gateway.post("/upload").body("application/octet-stream", &bytes).send();
    let mut checksum = Crc::new();
    checksum.update(&bytes);
    assert_eq!(uploaded.json(), serde_json::json!({"length": LARGE, "checksum": checksum.sum()}));
    let downloaded = gateway.get(&format!("/download?blocks={}", LARGE / 65536)).send();
    assert!(downloaded.whole);
    assert_eq!((downloaded.body_length, downloaded.body_digest), (LARGE as u64, digest(&bytes)));
    let grown = gateway.resident_kib().saturating_sub(before);
    assert!(grown < LARGE as u64 / 1024 / 4, "{grown} KiB more");
}
