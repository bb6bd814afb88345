use bytes::Buf;
use proptest::prelude::*;

use super::*;
use crate::wire::http1::grammar::{BodyEncoder, WriteBuffer};

/// A decoded body: its data, its trailers, and the bytes behind it.
#[derive(Debug, Eq, PartialEq)]
struct Decoded {
    data: Vec<u8>,
    trailers: Option<Vec<(String, String)>>,
    behind: Vec<u8>,
    end: Result<bool, InvalidMessage>,
}

/// Decodes a body that arrives in these reads.
fn decode(length: BodyLength, reads: &[&[u8]]) -> Decoded {
    let mut body = BodyDecoder::new(length, Sender::Server);
    let mut decoded = Decoded { data: Vec::new(), trailers: None, behind: Vec::new(), end: Ok(false) };
    let mut read = BytesMut::new();
    for bytes in reads {
        read.extend_from_slice(bytes);
        loop {
            match body.decode(&mut read) {
                Ok(Some(frame)) => match frame.into_data() {
                    Ok(data) => decoded.data.extend_from_slice(&data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap();
                        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
                        decoded.trailers =
                            Some(trailers.iter().map(|(name, it)| (name.to_string(), text(it))).collect());
                    }
                },
                Ok(None) => break,
                Err(malformed) => {
                    decoded.end = Err(malformed);
                    return decoded;
                }
            }
        }
    }
    decoded.end = Ok(body.is_complete());
    decoded.behind = read.to_vec();
    decoded
}

/// The outcome is the same for every split into two reads.
#[track_caller]
fn check(length: BodyLength, sent: &str, data: &str, behind: &str) {
    for cut in 0..=sent.len() {
        let (first, second) = sent.as_bytes().split_at(cut);
        let decoded = decode(length, &[first, second]);
        assert_eq!(decoded.end, Ok(true), "{sent:?} cut at {cut}");
        assert_eq!(String::from_utf8_lossy(&decoded.data), data, "{sent:?} cut at {cut}");
        assert_eq!(String::from_utf8_lossy(&decoded.behind), behind, "{sent:?} cut at {cut}");
    }
}

#[track_caller]
fn refused(sent: &str, data: &str, malformed: InvalidMessage) {
    for cut in 0..=sent.len() {
        let (first, second) = sent.as_bytes().split_at(cut);
        let decoded = decode(BodyLength::Chunked, &[first, second]);
        assert_eq!(decoded.end, Err(malformed), "{sent:?} cut at {cut}");
        assert_eq!(String::from_utf8_lossy(&decoded.data), data, "{sent:?} cut at {cut}");
    }
}

#[test]
fn a_body_of_a_known_length_ends_after_it() {
    check(BodyLength::Known(3), "abc", "abc", "");
    check(BodyLength::Known(3), "abcGET /", "abc", "GET /");
    check(BodyLength::Known(0), "GET /", "", "GET /");
}

#[test]
fn a_chunked_body_ends_with_an_empty_line_behind_its_last_chunk() {
    check(BodyLength::Chunked, "0\r\n\r\n", "", "");
    check(BodyLength::Chunked, "3\r\nabc\r\n0\r\n\r\nGET /", "abc", "GET /");
    check(BodyLength::Chunked, "3\r\nabc\r\n0010;last\r\n0123456789abcdef\r\n000\r\n\r\n", "abc0123456789abcdef", "");
    check(BodyLength::Chunked, "1 \t;a=\"b\"\r\n\n\r\n0\r\nx: y\r\nz:\r\n\r\n\r\n", "\n", "\r\n");
    check(BodyLength::Chunked, "3  \r\nabc\r\n0\r\n\r\n", "abc", "");
}

#[test]
fn trailers_come_last() {
    let decoded = decode(BodyLength::Chunked, &[b"1\r\na\r\n0\r\nX-A: 1\r\nx-b:\t2 \r\n\r\n"]);
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(decoded.trailers, Some(vec![field("x-a", "1"), field("x-b", "2")]));
    assert_eq!(decode(BodyLength::Chunked, &[b"0\r\n\r\n"]).trailers, None);
}

#[test]
fn an_invalid_chunk_ends_the_body() {
    for size in ["", "g", "-1", "+1", "0x1", "1,", " 1", "1\r", "1\n\r", "\u{b2}", "00000000000000001", "1 a", "1;\0"] {
        refused(&format!("3\r\nabc\r\n{size}\r\na\r\n0\r\n\r\n"), "abc", InvalidMessage::ChunkSize);
    }
    refused("3\nabc\r\n", "", InvalidMessage::ChunkSize);
    for end in ["d", "\n", "\r\r", "0\r\n\r\n", "\rx"] {
        refused(&format!("3\r\nabc{end}"), "abc", InvalidMessage::ChunkEnd);
    }
    for trailers in ["no colon", "a : b", " a: b", "a: b\n", "a: b\r\n c", "a: b\nc: d", "a: b\0", ": b"] {
        refused(&format!("0\r\n{trailers}\r\n\r\n"), "", InvalidMessage::Field);
    }
}

#[test]
fn a_client_writes_sizes_and_extensions_as_the_grammar_has_them() {
    let end = |line: &str| {
        let mut read = BytesMut::from(&*format!("{line}\r\na\r\n0\r\n\r\n"));
        let mut body = BodyDecoder::new(BodyLength::Chunked, Sender::Client);
        while body.decode(&mut read)?.is_some() {}
        Ok(body.is_complete())
    };
    for line in ["1", "01", "1;a", "1;a=b", "1; a=b", "1;a=\"b; c\\\"\";d", "1;a=\"\"", "1;chunk-signature=0123abcd"] {
        assert_eq!(end(line), Ok(true), "{line:?}");
    }
    for line in [
        "1 ",
        "1\t",
        "1 ;a",
        "1;",
        "1;a;",
        "1;;a",
        "1;a=",
        "1;=b",
        "1; ",
        "1;a b",
        "1;a =b",
        "1;a= b",
        "1;a=\"b",
        "1;a=\"b\"c",
        "1;a@",
        "1;a=b ",
        "1;\u{e9}",
        "1;a=\"\0\"",
        "1;a=\"\\",
        "1;\ra",
        "1;\u{c}a",
        "1;a=\"\r\"",
        "1;a=\"\\\r\"",
    ] {
        assert_eq!(end(line), Err(InvalidMessage::ChunkSize), "{line:?}");
    }
}

#[test]
fn chunk_extensions_and_trailers_are_bounded() {
    let extension = format!("1;{}\r\na\r\n", "x".repeat(1000));
    refused_whole(&extension.repeat(17), InvalidMessage::Extensions);
    refused_whole(&format!("1;{}", "x".repeat(5000)), InvalidMessage::Extensions);
    refused_whole(&format!("1{}", " ".repeat(5000)), InvalidMessage::Extensions);
    refused_whole(&format!("1{}\r\na\r\n", " ".repeat(4096)), InvalidMessage::Extensions);
    refused_whole(&format!("0\r\n{}", "a: b\r\n".repeat(3000)), InvalidMessage::Trailers);
    refused_whole(&format!("0\r\n{}\r\n", "a: b\r\n".repeat(3000)), InvalidMessage::Trailers);
    refused_whole(&format!("0\r\n{}\r\n", "a: b\r\n".repeat(65)), InvalidMessage::Field);
}

#[test]
fn padding_is_bounded_by_its_line_and_extensions_by_the_data_they_stand_beside() {
    let padded = format!("1{}\r\na\r\n", " \t".repeat(2047)).repeat(100);
    check_whole(&format!("{padded}0\r\n\r\n"), 100);
    check(BodyLength::Chunked, &format!("1{}\r\na\r\n0\r\n\r\n", " ".repeat(4095)), "a", "");
    // The bound is 16 KiB and a tenth of the data.
    let signed =
        |size: usize, extension: usize| format!("{size:x};{}\r\n{}\r\n", "x".repeat(extension - 1), "a".repeat(size));
    check_whole(&format!("{}0\r\n\r\n", signed(8192, 82).repeat(1000)), 8_192_000);
    check_whole(&format!("{}0\r\n\r\n", signed(1000, 100).repeat(1000)), 1_000_000);
    refused_whole(&signed(1000, 120).repeat(1000), InvalidMessage::Extensions);
}

#[track_caller]
fn check_whole(sent: &str, length: usize) {
    let decoded = decode(BodyLength::Chunked, &[sent.as_bytes()]);
    assert_eq!((decoded.end, decoded.data.len()), (Ok(true), length));
}

#[track_caller]
fn refused_whole(sent: &str, malformed: InvalidMessage) {
    assert_eq!(decode(BodyLength::Chunked, &[sent.as_bytes()]).end, Err(malformed));
}

#[test]
fn an_end_is_one_only_where_the_body_may_end_with_the_connection() {
    let ends = |length, sent: &str| {
        let (mut decoder, mut read) = (BodyDecoder::new(length, Sender::Server), BytesMut::from(sent));
        while decoder.decode(&mut read).unwrap().is_some() {}
        decoder.end()
    };
    assert_eq!(ends(BodyLength::UntilClose, "abc"), Ok(()));
    assert_eq!(ends(BodyLength::UntilClose, ""), Ok(()));
    assert_eq!(ends(BodyLength::Known(3), "abc"), Ok(()));
    assert_eq!(ends(BodyLength::Known(3), "ab"), Err(IncompleteBody));
    for cut in ["", "1", "1\r\na", "1\r\na\r\n", "0\r\n", "0\r\na: b\r\n"] {
        assert_eq!(ends(BodyLength::Chunked, cut), Err(IncompleteBody), "{cut:?}");
    }
}

proptest! {
    #[test]
    fn the_decoder_reads_what_the_encoder_writes(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..6),
        cuts in prop::collection::vec(0..18_000_usize, 0..5),
    ) {
        let (mut encoder, mut written) = (BodyEncoder::new(BodyLength::Chunked), Vec::new());
        let mut out = WriteBuffer::default();
        for part in &parts {
            encoder.part(part.clone().into(), &mut out);
            written.extend_from_slice(&out.copy_to_bytes(out.remaining()));
        }
        encoder.end(None, &mut out).unwrap();
        written.extend_from_slice(&out.copy_to_bytes(out.remaining()));
        let decoded = decode(BodyLength::Chunked, &pieces(&written, cuts));
        prop_assert_eq!(decoded.end, Ok(true));
        prop_assert_eq!(decoded.data, parts.concat());
        prop_assert!(decoded.behind.is_empty());
    }

    #[test]
    fn the_outcome_is_the_same_for_every_split_into_reads(
        sent in "(0|1|a|;| |\r\n|\r|\n|x: y){0,40}",
        cuts in prop::collection::vec(0..100_usize, 0..5),
    ) {
        let whole = decode(BodyLength::Chunked, &[sent.as_bytes()]);
        prop_assert_eq!(decode(BodyLength::Chunked, &pieces(sent.as_bytes(), cuts)), whole);
    }
}

fn pieces(bytes: &[u8], mut cuts: Vec<usize>) -> Vec<&[u8]> {
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut start = 0;
    for cut in cuts {
        let cut = cut.clamp(start, bytes.len());
        pieces.push(&bytes[start..cut]);
        start = cut;
    }
    pieces.push(&bytes[start..]);
    pieces
}
