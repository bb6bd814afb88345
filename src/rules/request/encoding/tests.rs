use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

const BODY: &[u8] = b"username=alice&password=correct+horse+battery+staple";

/// `username=alice` as brotli.
const BROTLI: &[u8] =
    &[0x8b, 0x06, 0x80, 0x75, 0x73, 0x65, 0x72, 0x6e, 0x61, 0x6d, 0x65, 0x3d, 0x61, 0x6c, 0x69, 0x63, 0x65, 0x03];

/// Twenty million times `a` as brotli.
const BROTLI_BOMB: &[u8] = &[
    0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x25, 0xc2, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x8f, 0xff, 0xff, 0x7f, 0xf0, 0x4b,
    0x00, 0xc4, 0x61, 0x11, 0x80, 0xee, 0xfd, 0x5f, 0xfe, 0xb3, 0xc4, 0xe0, 0x97, 0x00, 0x88, 0xc3, 0x02, 0x00, 0x5d,
    0x92, 0x18,
];

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).and_then(|()| encoder.finish()).expect("writing to memory")
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).and_then(|()| encoder.finish()).expect("writing to memory")
}

fn deflate(body: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).and_then(|()| encoder.finish()).expect("writing to memory")
}

fn zstd_of(body: &[u8]) -> Vec<u8> {
    compress_to_vec(body, CompressionLevel::Fastest)
}

fn labelled(lines: &[&str]) -> Fields {
    lines.iter().map(|line| (KnownName::CONTENT_ENCODING, line)).collect()
}

#[track_caller]
fn check(lines: &[&str], body: &[u8], expected: &[u8]) {
    let decoded = decode(&labelled(lines), body, 1 << 16);
    assert!(decoded.whole, "{lines:?} is whole");
    assert!(decoded.bodies.iter().any(|body| **body == *expected), "{lines:?} in {:?}", decoded.bodies);
}

#[test]
fn every_encoding_is_taken_away() {
    check(&[], BODY, BODY);
    check(&["identity"], BODY, BODY);
    check(&["gzip"], &gzip(BODY), BODY);
    check(&["X-GZIP"], &gzip(BODY), BODY);
    check(&["deflate"], &zlib(BODY), BODY);
    check(&["deflate"], &deflate(BODY), BODY);
    check(&["br"], BROTLI, b"username=alice");
    check(&["zstd"], &zstd_of(BODY), BODY);
}

#[test]
fn several_encodings_are_taken_away_the_last_one_first() {
    check(&["gzip, zstd"], &zstd_of(&gzip(BODY)), BODY);
    check(&["gzip", "identity, ,deflate"], &deflate(&gzip(BODY)), BODY);
    check(&["gzip,gzip,gzip"], &gzip(&gzip(&gzip(BODY))), BODY);
}

#[test]
fn a_body_in_several_pieces_is_one_body() {
    check(&["gzip"], &[gzip(&BODY[..10]), gzip(&BODY[10..])].concat(), BODY);
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    check(&["zstd"], &[&skipped[..], &zstd_of(&BODY[..10]), &skipped, &zstd_of(&BODY[10..])].concat(), BODY);
}

#[test]
fn what_is_compressed_without_saying_so_is_decoded_too() {
    check(&[], &gzip(BODY), BODY);
    check(&[], &zstd_of(BODY), BODY);
}

#[test]
fn unknown_encodings_and_too_many_are_not_whole() {
    for lines in [&["compress"][..], &["gzip, secret"], &["gzip;q=1"], &["gzip,gzip,gzip,gzip"]] {
        assert!(!decode(&labelled(lines), &gzip(BODY), 1 << 16).whole, "{lines:?}");
    }
}

#[test]
fn a_body_not_in_its_declared_format_is_not_fully_read() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        assert!(!decode(&labelled(&[coding]), BODY, 1 << 16).whole, "{coding}");
    }
}

#[test]
fn a_body_cut_short_yields_its_beginning_and_is_not_whole() {
    let body: Vec<u8> = (0..40_000_u32).flat_map(|number| number.wrapping_mul(0x9e37_79b9).to_be_bytes()).collect();
    for (coding, encoded) in [("gzip", gzip(&body)), ("deflate", zlib(&body)), ("zstd", zstd_of(&body))] {
        let decoded = decode(&labelled(&[coding]), &encoded[..encoded.len() - 2], 1 << 20);
        assert!(!decoded.whole, "{coding}");
        assert!(decoded.bodies.iter().any(|found| found.len() > 10_000 && body.starts_with(found)), "{coding}");
    }
}

#[test]
fn a_bomb_is_decoded_to_the_bound() {
    let bomb = vec![b'a'; 1_000_000];
    for (coding, encoded) in
        [("gzip", gzip(&bomb)), ("deflate", deflate(&bomb)), ("br", BROTLI_BOMB.to_vec()), ("zstd", zstd_of(&bomb))]
    {
        let decoded = decode(&labelled(&[coding]), &encoded, 1000);
        assert!(!decoded.whole, "{coding}");
        assert!(decoded.bodies.iter().any(|body| **body == bomb[..1000]), "{coding}");
        assert!(decoded.bodies.iter().all(|body| body.len() <= 1000), "{coding}");
    }
    let twice = gzip(&gzip(&bomb));
    let nested = decode(&labelled(&["gzip,gzip"]), &twice, 1000);
    assert!(!nested.whole && nested.bodies.iter().all(|body| body.len() <= 1000));
}

#[test]
fn blocks_and_frames_without_end_are_not_decoded_without_end() {
    // A frame of empty blocks, and many empty frames.
    let header = [0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    let blocks = [&header[..], &[0, 0, 0].repeat(20_000), &[1, 0, 0]].concat();
    let frames = [&header[..], &[1, 0, 0]].concat().repeat(5_000);
    for encoded in [blocks, frames] {
        assert!(!decode(&labelled(&["zstd"]), &encoded, 1 << 16).whole);
    }
}

#[test]
fn a_window_of_a_gigabyte_is_refused() {
    let large_zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3][..], &[1, 0, 0]].concat();
    assert!(!decode(&labelled(&["zstd"]), &large_zstd, 1 << 16).whole);
    let large_brotli = [&[0x11, 0x1e, 0x1a, 0x00, 0x02][..], b"username=alice", &[0x03]].concat();
    assert!(!decode(&labelled(&["br"]), &large_brotli, 1 << 16).whole);
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_to_something(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        coding in prop::sample::select(vec!["gzip", "deflate", "br", "zstd"]),
    ) {
        let _ = decode(&labelled(&[coding]), &bytes, 4096);
    }

    #[test]
    fn a_damaged_body_is_decoded_to_something(
        coding in prop::sample::select(vec!["gzip", "deflate", "br", "zstd"]),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        repeat in 1_usize..2000,
    ) {
        let body = BODY.repeat(repeat);
        let mut encoded = match coding {
            "gzip" => gzip(&body),
            "deflate" => zlib(&body),
            "br" => BROTLI.to_vec(),
            _ => zstd_of(&body),
        };
        for (at, byte) in damage {
            let at = at.index(encoded.len());
            encoded[at] = byte;
        }
        for body in decode(&labelled(&[coding]), &encoded, 4096).bodies {
            prop_assert!(body.len() <= 4096);
        }
    }
}
