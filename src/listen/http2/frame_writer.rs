//! What h2 writes, with the head of each response in the place of its stub. h2 would copy the fields twice, into a map of its own
//! and into a table of large entries: that was a third of what a request over HTTP/2 took.

use std::io::IoSlice;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::StatusCode;
use parking_lot::Mutex;

use crate::wire::head::Fields;
use crate::wire::http2::hpack::OVERHEAD;
use crate::wire::http2::hpack::encoder::HpackEncoder;
use crate::wire::http2::{
    CONTINUATION, END_HEADERS, END_STREAM, FrameHeader, HEADER_LENGTH, HEADERS, MAX_PAYLOAD, RST_STREAM,
};

/// In bytes: a longer part of a body is not copied once more.
const WORTH_COPYING: usize = 1024;

/// In bytes: larger memory is not kept between two writes.
const MAX_KEPT: usize = 4 * 1024;

/// Follows the frames that h2 writes to one client.
#[derive(Debug)]
pub(super) struct FrameWriter {
    header: [u8; HEADER_LENGTH],
    have: usize,
    /// In bytes: the rest of the current payload.
    left: usize,
    /// The current payload is that of a stub, which is left out.
    is_stub: bool,
    encoder: HpackEncoder,
    backlog: WriteBacklog,
    /// What was taken from h2, as the client is to get it.
    out: Vec<u8>,
    /// In bytes: how much of that is written.
    written: usize,
}

impl FrameWriter {
    /// Takes heads from `backlog`.
    pub(super) fn new(backlog: WriteBacklog) -> Self {
        Self {
            header: [0; HEADER_LENGTH],
            have: 0,
            left: 0,
            is_stub: false,
            encoder: HpackEncoder::default(),
            backlog,
            out: Vec::new(),
            written: 0,
        }
    }

    /// Takes bytes of h2, up to a long part of a body, which is returned: it can be written as it is, behind all others. Also
    /// returns how many bytes were taken.
    pub(super) fn take<'w>(&mut self, slices: &'w [IoSlice<'_>]) -> (usize, &'w [u8]) {
        let mut taken = 0;
        for slice in slices {
            let mut rest: &[u8] = slice;
            while !rest.is_empty() {
                if let Some(part) = self.long_part(rest) {
                    return (taken, part);
                }
                let length = self.take_some(rest);
                taken += length;
                rest = &rest[length..];
            }
        }
        (taken, &[])
    }

    fn long_part<'w>(&self, bytes: &'w [u8]) -> Option<&'w [u8]> {
        let length = self.left.min(bytes.len());
        (length >= WORTH_COPYING && !self.is_stub).then(|| &bytes[..length])
    }

    /// Takes a part of a payload, or of the header of a frame.
    fn take_some(&mut self, bytes: &[u8]) -> usize {
        if self.left > 0 {
            let length = self.left.min(bytes.len());
            if !self.is_stub {
                self.out.extend_from_slice(&bytes[..length]);
            }
            self.left -= length;
            return length;
        }
        let length = (HEADER_LENGTH - self.have).min(bytes.len());
        self.header[self.have..self.have + length].copy_from_slice(&bytes[..length]);
        self.have += length;
        if self.have == HEADER_LENGTH {
            self.begin();
        }
        length
    }

    /// The header of a frame is complete.
    fn begin(&mut self) {
        let frame = FrameHeader::parse(self.header);
        (self.have, self.left) = (0, frame.length);
        self.is_stub = matches!(frame.kind, HEADERS | CONTINUATION);
        match frame.kind {
            HEADERS => self.put_head(frame),
            CONTINUATION => {}
            kind => {
                if kind == RST_STREAM {
                    self.backlog.forget(frame.stream);
                }
                self.out.extend_from_slice(&self.header);
            }
        }
    }

    /// Puts a head in the place of its stub.
    fn put_head(&mut self, stub: FrameHeader) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; HEADER_LENGTH]);
        let (head, keeps_table) = self.backlog.take_head(stub.stream);
        if !keeps_table {
            self.encoder.forgo_table();
        }
        // Without a head the client has reset the stream, and reads no further.
        let SentHead { status, fields } = head.unwrap_or_else(SentHead::of_reset_stream);
        self.encoder.encode(status, fields.iter(), &mut self.out);
        let end = stub.flags & END_STREAM;
        let length = self.out.len() - start - HEADER_LENGTH;
        if length <= MAX_PAYLOAD {
            let header = FrameHeader { length, flags: end | END_HEADERS, ..stub };
            self.out[start..start + HEADER_LENGTH].copy_from_slice(&header.to_bytes());
            return;
        }
        let block = self.out.split_off(start + HEADER_LENGTH);
        self.out.truncate(start);
        let parts = block.chunks(MAX_PAYLOAD);
        let last = parts.len() - 1;
        for (number, part) in parts.enumerate() {
            let (kind, flags) = if number == 0 { (HEADERS, end) } else { (CONTINUATION, 0) };
            let flags = flags | if number == last { END_HEADERS } else { 0 };
            let header = FrameHeader { length: part.len(), kind, flags, stream: stub.stream };
            self.out.extend_from_slice(&header.to_bytes());
            self.out.extend_from_slice(part);
        }
    }

    /// What is to be written before all that is taken from now on.
    pub(super) fn unwritten(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// So many bytes were written, of these first, then of the long part. Returns how much of that.
    pub(super) fn wrote(&mut self, length: usize) -> usize {
        self.backlog.wrote(length);
        let ours = length.min(self.unwritten().len());
        self.written += ours;
        if self.unwritten().is_empty() {
            self.written = 0;
            self.out.clear();
            self.out.shrink_to(MAX_KEPT);
        }
        self.left -= length - ours;
        length - ours
    }
}

// What h2 was given of responses and has not written to the socket yet.

/// In bytes: many short responses, or the send buffers of a few streams.
const MAX_BACKLOG: usize = 512 * 1024;

/// The head of a response, or trailers.
#[derive(Debug)]
pub(super) struct SentHead {
    /// `None`: trailers have none.
    pub(super) status: Option<StatusCode>,
    pub(super) fields: Fields,
}

impl SentHead {
    /// In place of one that was forgotten.
    fn of_reset_stream() -> Self {
        Self { status: Some(StatusCode::INTERNAL_SERVER_ERROR), fields: Fields::default() }
    }
}

/// Keeps the heads of responses, and counts their bytes and those of the bodies. Streams wait here until these are fewer. All of
/// them fit into the client's windows, so they are written as soon as the client reads. The lock is for the compiler: connection and
/// streams are on one core.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteBacklog(Arc<Mutex<BacklogState>>);

#[derive(Debug, Default)]
struct BacklogState {
    bytes: usize,
    /// With their streams: the heads that h2 has stubs of, those of a stream in their order.
    heads: Vec<(u32, SentHead)>,
    /// The client keeps a smaller table for HPACK than is usual.
    keeps_small_table: bool,
    /// Streams whose answers have begun since that was asked.
    answered: u32,
    /// The tasks of waiting streams, in the order of their arrival.
    streams: Vec<Waker>,
}

impl WriteBacklog {
    /// Ready when there is room. A single part or head may exceed the limit.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queue = self.0.lock();
        if queue.bytes < MAX_BACKLOG {
            return Poll::Ready(());
        }
        if !queue.streams.iter().any(|stream| stream.will_wake(cx.waker())) {
            queue.streams.push(cx.waker().clone());
        }
        Poll::Pending
    }

    pub(super) fn add(&self, bytes: usize) {
        self.0.lock().bytes += bytes;
    }

    /// Adds a head. To be called before h2 gets its stub.
    pub(super) fn add_head(&self, stream: u32, head: SentHead) {
        self.0.lock().add_head(stream, head);
    }

    /// Adds the head of an answer.
    pub(super) fn answer(&self, stream: u32, head: SentHead) {
        let mut queue = self.0.lock();
        queue.add_head(stream, head);
        queue.answered += 1;
    }

    /// h2 has not taken the stub of the head that was added last on this stream.
    pub(super) fn take_back_head(&self, stream: u32) {
        let mut queue = self.0.lock();
        if let Some(place) = queue.heads.iter().rposition(|(of, _)| *of == stream) {
            queue.heads.remove(place);
        }
    }

    /// h2 knows that the stream was reset: it writes no head of it any more, and takes none.
    pub(super) fn forget(&self, stream: u32) {
        self.0.lock().heads.retain(|(of, _)| *of != stream);
    }

    /// From now on the client keeps a smaller table for HPACK than is usual.
    pub(super) fn keep_small_table(&self) {
        self.0.lock().keeps_small_table = true;
    }

    /// The head whose stub h2 has written on this stream, and whether the client keeps a table of the default size.
    fn take_head(&self, stream: u32) -> (Option<SentHead>, bool) {
        let mut queue = self.0.lock();
        let place = queue.heads.iter().position(|(of, _)| *of == stream);
        (place.map(|place| queue.heads.remove(place).1), !queue.keeps_small_table)
    }

    /// How many heads wait for h2 to write their stubs.
    #[cfg(test)]
    pub(super) fn heads(&self) -> usize {
        self.0.lock().heads.len()
    }

    /// How many answers have begun since the last call.
    pub(super) fn take_answered(&self) -> u32 {
        mem::take(&mut self.0.lock().answered)
    }

    /// Notes a write of any bytes to the socket.
    pub(super) fn wrote(&self, bytes: usize) {
        let mut queue = self.0.lock();
        let left = queue.bytes.saturating_sub(bytes);
        queue.set(left);
    }

    /// Everything is written.
    pub(super) fn clear(&self) {
        self.0.lock().set(0);
    }
}

impl BacklogState {
    fn add_head(&mut self, stream: u32, head: SentHead) {
        // As HTTP/2 counts the size of a head.
        self.bytes += head.fields.text_length() + head.fields.len() * OVERHEAD;
        self.heads.push((stream, head));
    }

    fn set(&mut self, bytes: usize) {
        self.bytes = bytes;
        if bytes < MAX_BACKLOG {
            mem::take(&mut self.streams).into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::head::KnownName;
    use crate::wire::http2::DATA;
    use crate::wire::http2::hpack::{HpackDecoder, Name};

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let header = FrameHeader { length: payload.len(), kind, flags, stream };
        [&header.to_bytes(), payload].concat()
    }

    fn head(status: Option<u16>, length: usize) -> SentHead {
        let value = vec![b'v'; length];
        SentHead {
            status: status.map(|status| StatusCode::from_u16(status).unwrap()),
            fields: [(KnownName::SERVER, &value)].into_iter().collect(),
        }
    }

    /// Writes all that h2 has, in slices of at most `slice` bytes, of which the socket takes `room` at a time.
    fn written(writer: &mut FrameWriter, bytes: &[u8], slice: usize, room: usize) -> Vec<u8> {
        let (mut rest, mut written) = (bytes, Vec::new());
        while !rest.is_empty() || !writer.unwritten().is_empty() {
            let slices: Vec<_> = rest.chunks(slice).take(3).map(IoSlice::new).collect();
            let (taken, part) = if writer.unwritten().is_empty() { writer.take(&slices) } else { (0, &[][..]) };
            let all = [writer.unwritten(), part].concat();
            let length = room.min(all.len());
            written.extend_from_slice(&all[..length]);
            rest = &rest[taken + writer.wrote(length)..];
        }
        written
    }

    #[derive(Debug, Eq, PartialEq)]
    enum Seen {
        Head { stream: u32, ends: bool, status: Option<String>, length: usize },
        Other { kind: u8, stream: u32, payload: usize },
    }

    /// What a client makes of it.
    fn seen(mut bytes: &[u8]) -> Vec<Seen> {
        let mut decoder = HpackDecoder::new(100_000);
        let (mut seen, mut block, mut begun) = (Vec::new(), Vec::new(), None);
        while !bytes.is_empty() {
            let (header, behind) = bytes.split_first_chunk().unwrap();
            let frame = FrameHeader::parse(*header);
            let (payload, behind) = behind.split_at(frame.length);
            bytes = behind;
            if !matches!(frame.kind, HEADERS | CONTINUATION) {
                assert!(begun.is_none(), "a frame within a head");
                seen.push(Seen::Other { kind: frame.kind, stream: frame.stream, payload: payload.len() });
                continue;
            }
            assert!(payload.len() <= MAX_PAYLOAD);
            assert_eq!(frame.kind == CONTINUATION, begun.is_some());
            let first = *begun.get_or_insert(frame);
            assert_eq!(first.stream, frame.stream);
            block.extend_from_slice(payload);
            if frame.flags & END_HEADERS == 0 {
                continue;
            }
            let (mut status, mut length) = (None, 0);
            let mut rest = &block[..];
            decoder
                .decode(&mut rest, |field| match field.name {
                    Name::Status => status = field.value.map(|value| String::from_utf8_lossy(value).into_owned()),
                    _ => length += field.value.unwrap().len(),
                })
                .unwrap();
            assert!(rest.is_empty());
            decoder.end().unwrap();
            seen.push(Seen::Head { stream: first.stream, ends: first.flags & END_STREAM != 0, status, length });
            (block, begun) = (Vec::new(), None);
        }
        seen
    }

    #[test]
    fn a_reset_stream_keeps_no_head() {
        let backlog = WriteBacklog::default();
        backlog.answer(1, head(Some(200), 10));
        backlog.answer(3, head(Some(404), 10));
        backlog.forget(1);
        assert_eq!(backlog.heads(), 1);
        let bytes = [frame(HEADERS, END_HEADERS, 1, b"\x88"), frame(HEADERS, END_HEADERS, 3, b"\x88")].concat();
        let written = written(&mut FrameWriter::new(backlog.clone()), &bytes, 100, 100);
        let of = |stream, status: &str, length| Seen::Head { stream, ends: false, status: Some(status.into()), length };
        assert_eq!(seen(&written), [of(1, "500", 0), of(3, "404", 10)]);
        assert_eq!(backlog.heads(), 0);
    }

    #[test]
    fn a_head_whose_stub_h2_refuses_does_not_stand_for_another() {
        let backlog = WriteBacklog::default();
        backlog.add_head(1, head(Some(103), 5));
        backlog.add_head(1, head(Some(103), 7));
        backlog.take_back_head(1);
        backlog.answer(1, head(Some(200), 10));
        let bytes = frame(HEADERS, END_HEADERS, 1, b"\x88").repeat(2);
        let written = written(&mut FrameWriter::new(backlog), &bytes, 100, 100);
        let of = |status: &str, length| Seen::Head { stream: 1, ends: false, status: Some(status.into()), length };
        assert_eq!(seen(&written), [of("103", 5), of("200", 10)]);
    }

    #[test]
    fn what_the_gateway_resets_keeps_no_head() {
        let backlog = WriteBacklog::default();
        backlog.answer(1, head(Some(200), 10));
        let reset = frame(RST_STREAM, 0, 1, &[0; 4]);
        assert_eq!(written(&mut FrameWriter::new(backlog.clone()), &reset, 100, 100), reset);
        assert_eq!(backlog.heads(), 0);
    }

    proptest! {
        #[test]
        fn each_stub_becomes_its_head_however_it_is_cut(
            answers in prop::collection::vec((0..40_000_usize, 0..3_000_usize, any::<bool>()), 1..8),
            slice in 1..5_000_usize,
            room in 1..5_000_usize,
        ) {
            let backlog = WriteBacklog::default();
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for (stream, (length, body, has_trailers)) in (1..).step_by(2).zip(answers) {
                backlog.add_head(stream, head(Some(103), 5));
                backlog.answer(stream, head(Some(200), length));
                bytes.extend(frame(HEADERS, END_HEADERS, stream, b"\x48\x03103"));
                bytes.extend(frame(HEADERS, END_HEADERS, stream, b"\x88"));
                bytes.extend(frame(DATA, 0, stream, &vec![b'b'; body]));
                let head_of = |status: &str, length| Seen::Head { stream, ends: false, status: Some(status.into()), length };
                expected.extend([head_of("103", 5), head_of("200", length), Seen::Other { kind: DATA, stream, payload: body }]);
                if has_trailers {
                    backlog.add_head(stream, head(None, 7));
                    bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, b""));
                    expected.push(Seen::Head { stream, ends: true, status: None, length: 7 });
                }
            }
            let mut writer = FrameWriter::new(backlog.clone());
            prop_assert_eq!(seen(&written(&mut writer, &bytes, slice, room)), expected);
            prop_assert_eq!(backlog.heads(), 0);
        }
    }
}
