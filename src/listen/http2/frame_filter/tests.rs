use proptest::prelude::*;

use super::*;
use crate::listen::http2::frame_writer::SentHead;
use crate::listen::http2::head::ParsedHead;
use crate::wire::head::KnownName;
use crate::wire::http2::{CONTINUATION, END_HEADERS, END_STREAM, PADDED, PRIORITY};

fn of_stream(stream: u8, kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A frame whose payload is valid fields.
fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
    of_stream(1, kind, flags, &vec![0x82; usize::from(length)])
}

/// Feeds frames of a client to a filter.
struct Client {
    frames: FrameFilter,
    pending_heads: PendingHeads,
    backlog: WriteBacklog,
    passed: Vec<u8>,
}

impl Client {
    fn new() -> Self {
        let pending_heads = PendingHeads::default();
        let backlog = WriteBacklog::default();
        let frames = FrameFilter::new(4096, pending_heads.clone(), backlog.clone());
        Self { frames, pending_heads, backlog, passed: Vec::new() }
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut rest = bytes.to_vec();
        while !rest.is_empty() && !self.pending_heads.has_failed() {
            let filtered = self.frames.filter(&mut rest);
            self.passed.extend_from_slice(&rest[..filtered.kept]);
            self.passed.extend(filtered.behind);
            rest = rest.split_off(filtered.used);
        }
    }

    /// The bytes that h2 has read behind the preface, the failure, and whether the client stopped within a frame.
    fn fate(&self) -> (&[u8], bool, Option<bool>) {
        let failed = self.pending_heads.has_failed();
        let passed = self.passed.strip_prefix(PREFACE).unwrap_or_default();
        (passed, failed, (!failed).then(|| self.frames.is_mid_frame()))
    }
}

#[track_caller]
fn check(frames: &[Vec<u8>], missing: usize, unfinished: bool) {
    let sent = [PREFACE, &frames.concat()].concat();
    let sent = &sent[..sent.len() - missing];
    let mut whole = Client::new();
    whole.send(sent);
    let mut piecemeal = Client::new();
    sent.chunks(1).for_each(|byte| piecemeal.send(byte));

    assert_eq!(whole.frames.is_mid_frame(), unfinished);
    assert_eq!(piecemeal.fate(), whole.fate());
}

#[test]
fn complete_frames_do_not_count_as_stopped_within_a_frame() {
    check(&[], 0, false);
    check(&[frame(4, 0, 0)], 0, false);
    check(&[frame(4, 0, 6), frame(HEADERS, END_HEADERS, 20)], 0, false);
}

#[test]
fn a_frame_cut_short_is_unfinished() {
    check(&[frame(4, 0, 6)], 1, true);
    check(&[frame(HEADERS, END_HEADERS, 20)], 20, true);
    check(&[frame(4, 0, 0)], 4, true);
}

#[test]
fn a_head_is_unfinished_until_its_last_frame() {
    check(&[frame(HEADERS, 0, 20)], 0, true);
    check(&[frame(HEADERS, 0, 20), frame(CONTINUATION, 0, 5)], 0, true);
    check(&[frame(HEADERS, 0, 20), frame(CONTINUATION, END_HEADERS, 5)], 0, false);
}

#[test]
fn data_under_way_is_not_a_frame_to_wait_for() {
    check(&[frame(DATA, 0, 100)], 50, false);
}

#[track_caller]
fn check_passed(frames: &[Vec<u8>], expected: &[Vec<u8>]) -> Client {
    let mut client = Client::new();
    client.send(&[PREFACE, &frames.concat()].concat());
    assert_eq!(client.fate(), (&expected.concat()[..], false, Some(false)));
    client
}

/// `GET http://a/`.
const GET: &[u8] = b"\x82\x86\x84\x01\x01a";

#[test]
fn heads_are_cut_out_and_all_else_passes() {
    let stub = |stream, flags| of_stream(stream, HEADERS, END_HEADERS | flags, &[0x82, 0x86, 0x84]);
    let settings = of_stream(0, 4, 0, &[0, 3, 0, 0, 0, 9]);
    let body = of_stream(3, DATA, END_STREAM | PADDED, b"\x03hello\0\0\0");
    let (begin, end) = GET.split_at(4);
    let frames = [
        settings.clone(),
        of_stream(1, HEADERS, END_HEADERS | END_STREAM, GET),
        of_stream(3, HEADERS, 0, begin),
        of_stream(3, CONTINUATION, 0, b""),
        of_stream(3, CONTINUATION, END_HEADERS, end),
        body.clone(),
        of_stream(5, HEADERS, END_HEADERS | PADDED | PRIORITY, &[b"\x02\0\0\0\0\x10", GET, b"\0\0"].concat()),
    ];
    let client = check_passed(&frames, &[settings, stub(1, END_STREAM), stub(3, 0), body, stub(5, 0)]);
    for stream in [1, 3, 5] {
        let head = client.pending_heads.take(stream);
        assert!(
            matches!(&head, Some(ParsedHead::Request(whole)) if whole.head.authority() == Some("a") && whole.head.path() == "/"),
            "{head:?}"
        );
    }
}

#[test]
fn a_malformed_head_is_refused_and_those_after_it_are_read() {
    let malformed = [GET, b"\x00\x01X\x01y"].concat();
    let frames = [of_stream(1, HEADERS, END_HEADERS, &malformed), of_stream(3, HEADERS, END_HEADERS, GET)];
    let stub = |stream| of_stream(stream, HEADERS, END_HEADERS, &[0x82, 0x86, 0x84]);
    let client = check_passed(&frames, &[stub(1), stub(3)]);
    assert!(matches!(client.pending_heads.take(1), Some(ParsedHead::Refused(refused)) if refused.status == 400));
    assert!(matches!(client.pending_heads.take(3), Some(ParsedHead::Request(_))));
}

#[test]
fn h2_learns_of_trailers_and_of_the_length_that_was_stated() {
    let head = of_stream(1, HEADERS, END_HEADERS, &[GET, b"\x5c\x015"].concat());
    let stub = of_stream(1, HEADERS, END_HEADERS, b"\x82\x86\x84\x00\x0econtent-length\x015");
    let trailers = of_stream(1, HEADERS, END_HEADERS | END_STREAM, b"\x40\x01a\x01b");
    let again = of_stream(1, HEADERS, END_HEADERS | END_STREAM, b"\x00\x01a\x01b");
    check_passed(&[head.clone(), trailers], &[stub.clone(), again]);
    // h2 resets a stream for this field.
    let pseudo = of_stream(1, HEADERS, END_HEADERS | END_STREAM, b"\x84");
    let reset = of_stream(1, HEADERS, END_HEADERS | END_STREAM, b"\x00\x02te\x00");
    check_passed(&[head, pseudo], &[stub, reset]);
}

#[test]
fn errors_after_which_the_stream_is_unreadable_end_the_connection() {
    let wrong = [
        vec![of_stream(1, HEADERS, END_HEADERS, b"\x80")],
        vec![of_stream(1, HEADERS, END_HEADERS, b"\x00\x01")],
        vec![of_stream(1, HEADERS, END_HEADERS | PADDED, b"\x09\x82")],
        vec![of_stream(1, HEADERS, END_HEADERS | PRIORITY, b"\0\0\0\0")],
        vec![of_stream(1, HEADERS, 0, GET), of_stream(1, DATA, 0, b"")],
        vec![of_stream(1, HEADERS, 0, GET), of_stream(3, CONTINUATION, END_HEADERS, b"")],
        [vec![of_stream(1, HEADERS, 0, GET)], vec![of_stream(1, CONTINUATION, 0, b""); 10]].concat(),
    ];
    for frames in wrong {
        let mut client = Client::new();
        client.send(&[PREFACE, &frames.concat()].concat());
        assert!(client.pending_heads.has_failed(), "{frames:x?}");
    }
}

#[test]
fn heads_of_streams_that_h2_never_opens_are_not_kept() {
    let mut client = Client::new();
    client.send(PREFACE);
    for stream in (1..200).step_by(2) {
        client.send(&of_stream(stream, HEADERS, END_HEADERS, GET));
    }
    assert!(client.pending_heads.is_full());
    client.pending_heads.drop_refused();
    assert!(client.pending_heads.is_full(), "they are not looked at");
    client.pending_heads.mark_seen();
    client.pending_heads.drop_refused();
    assert!(!client.pending_heads.is_full() && client.pending_heads.take(199).is_none());
}

proptest! {
    #[test]
    fn wherever_the_reads_are_cut_the_end_is_the_same(
        frames in prop::collection::vec((0..12_u8, any::<u8>(), 0..30_u8), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..40),
        cut in 0..200_usize,
    ) {
        let frames: Vec<u8> = frames.into_iter().flat_map(|(kind, flags, length)| frame(kind, flags, length)).collect();
        let sent = [PREFACE, &frames, &noise].concat();
        let mut whole = Client::new();
        whole.send(&sent);
        let (first, second) = sent.split_at(cut.min(sent.len()));
        let mut parts = Client::new();
        parts.send(first);
        parts.send(second);
        prop_assert_eq!(parts.fate(), whole.fate());
    }
}

#[test]
fn a_stream_keeps_the_head_of_its_answer_until_h2_knows_that_it_was_reset() {
    let mut client = Client::new();
    client.send(PREFACE);
    let head =
        || SentHead { status: Some(http::StatusCode::OK), fields: [(KnownName::SERVER, "a")].into_iter().collect() };
    let reset = of_stream(1, RST_STREAM, 0, &[0; 4]);
    let (header, payload) = reset.split_at(HEADER_LENGTH);
    client.backlog.answer(1, head());
    client.send(header);
    client.frames.all_is_handled();
    assert_eq!(client.backlog.heads(), 1, "the frame is not complete");
    client.send(payload);
    // As h2 still takes stubs of this stream.
    client.backlog.add_head(1, head());
    assert_eq!(client.backlog.heads(), 2, "h2 may not have read it");
    client.frames.all_is_handled();
    assert_eq!(client.backlog.heads(), 0);
}

#[test]
fn a_window_that_is_too_large_is_an_error_of_flow_control() {
    for (window, failure) in [(MAX_WINDOW, None), (MAX_WINDOW + 1, Some(Reason::FLOW_CONTROL_ERROR))] {
        let setting = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &window.to_be_bytes()].concat();
        let mut client = Client::new();
        client.send(PREFACE);
        client.send(&of_stream(0, SETTINGS, 0, &setting));
        assert_eq!(client.pending_heads.take_fault(), failure, "{window}");
    }
}
