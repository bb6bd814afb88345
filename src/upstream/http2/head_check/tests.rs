use super::HeadCheck;
use crate::upstream::http2::head_check::{MalformedResponse, ResponseStreams};
use crate::wire::http2::{CONTINUATION, END_HEADERS, END_STREAM, FrameHeader, HEADERS, PADDED};

const DATA: u8 = 0;

const OK: &[u8] = &[0x88];

const PATH: &[u8] = &[0x84];

const EARLY_HINTS: &[u8] = b"\x08\x03103";

const PLAIN: &[u8] = b"\x00\x01a\x01b";

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader { length: payload.len(), kind, flags, stream: 1 };
    [&header.to_bytes(), payload].concat()
}

fn head(parts: &[&[u8]]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, &parts.concat())
}

fn last(parts: &[&[u8]]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, &parts.concat())
}

/// Reads the frames, whole and byte by byte.
fn read(frames: &[Vec<u8>]) -> Result<(), MalformedResponse> {
    let bytes = frames.concat();
    let results = [bytes.len(), 1].map(|length| {
        let streams = ResponseStreams::default();
        let stream = streams.begin(1);
        let mut check = HeadCheck::new(16 * 1024, streams);
        for part in bytes.chunks(length) {
            check.read(part).expect("frames that can be read");
        }
        stream.check()
    });
    assert_eq!(results[0], results[1]);
    results[0]
}

#[test]
fn well_formed_answers_pass() {
    let passes = |frames: &[Vec<u8>]| assert_eq!(read(frames), Ok(()), "{frames:?}");
    passes(&[head(&[OK]), frame(DATA, END_STREAM, b"hello")]);
    passes(&[last(&[OK, PLAIN])]);
    passes(&[head(&[EARLY_HINTS, PLAIN]), head(&[EARLY_HINTS]), head(&[OK]), frame(DATA, 0, b""), last(&[PLAIN])]);
    passes(&[
        frame(HEADERS, 0, OK),
        frame(CONTINUATION, 0, &PLAIN[..2]),
        frame(CONTINUATION, END_HEADERS, &PLAIN[2..]),
    ]);
    passes(&[frame(HEADERS, END_HEADERS | PADDED, &[&[2], OK, &[0, 0]].concat())]);
}

#[test]
fn pseudo_fields_are_one_status_ahead_of_all() {
    let malformed = |why, frames: &[Vec<u8>]| assert_eq!(read(frames), Err(why), "{frames:?}");
    malformed(MalformedResponse::NoStatus, &[last(&[PLAIN])]);
    malformed(MalformedResponse::NoStatus, &[last(&[])]);
    for foreign in
        [PATH, &[0x82], &[0x86], b"\x01\x01h", b"\x00\x09:protocol\x01x", b"\x00\x02:x\x01y", b"\x00\x01A\x01b", OK]
    {
        malformed(MalformedResponse::ForeignField, &[last(&[OK, foreign])]);
        malformed(MalformedResponse::ForeignField, &[last(&[foreign, OK])]);
        malformed(MalformedResponse::ForeignField, &[head(&[EARLY_HINTS, foreign]), last(&[OK])]);
        malformed(MalformedResponse::Trailers, &[head(&[OK]), last(&[PLAIN, foreign])]);
    }
    malformed(MalformedResponse::ForeignField, &[last(&[PLAIN, OK])]);
    malformed(MalformedResponse::InterimEnds, &[last(&[EARLY_HINTS])]);
}

#[test]
fn a_name_may_come_from_the_dynamic_table() {
    // Indexed once, and named by its index from then on.
    let inserted = head(&[EARLY_HINTS, b"\x40\x02:x\x01y"]);
    let streams = ResponseStreams::default();
    let (first, second) = (streams.begin(1), streams.begin(3));
    let mut check = HeadCheck::new(16 * 1024, streams);
    check.read(&inserted).expect("it can be read");
    let header = FrameHeader { length: 2, kind: HEADERS, flags: END_HEADERS, stream: 3 };
    check.read(&[&header.to_bytes()[..], OK, &[0xbe]].concat()).expect("it can be read");
    assert_eq!(first.check(), Err(MalformedResponse::ForeignField));
    assert_eq!(second.check(), Err(MalformedResponse::ForeignField));
}

#[test]
fn a_head_that_is_no_http2_cannot_be_read() {
    let fails = |frames: &[Vec<u8>]| {
        let mut check = HeadCheck::new(16 * 1024, ResponseStreams::default());
        assert!(check.read(&frames.concat()).is_err(), "{frames:?}");
    };
    fails(&[head(&[&[0xff, 0xff, 0x7f]])]);
    fails(&[head(&[OK, b"\x00\x05a"])]);
    fails(&[frame(HEADERS, 0, OK), frame(DATA, 0, b"")]);
    fails(&[frame(HEADERS, END_HEADERS | PADDED, b"\x09\x88")]);
}
