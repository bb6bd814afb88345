//! The fuzz target of this parser.

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;
use http::HeaderMap;

use super::Decoder;
use super::Malformed;
use crate::corpus;
use crate::http1::Encoder;
use crate::http1::Length;
use crate::http1::Outbox;

/// A body in chunks means the same however it arrives, is not longer than what arrived, and comes back when it is
/// written anew.
pub fn check(bytes: &[u8]) {
    let (body, end) = corpus::same_for_every_split(bytes, decode);
    let taken = body.data.len() + body.behind.len();
    assert!(taken <= bytes.len(), "{taken} of {} bytes", bytes.len());
    if end == Ok(true) {
        let (mut encoder, mut out) = (Encoder::new(Length::Chunked), Outbox::default());
        encoder.part(Bytes::from(body.data.clone()), &mut out);
        encoder.end(body.trailers.as_ref(), &mut out).expect("chunks end anywhere");
        let written = out.copy_to_bytes(out.remaining());
        let (again, _) = decode(&[&written]);
        assert_eq!((again.data, again.trailers), (body.data, body.trailers));
    }
}

/// What came out of a body, and what was left behind it.
#[derive(Debug, Default, PartialEq)]
struct Decoded {
    data: Vec<u8>,
    trailers: Option<HeaderMap>,
    behind: Vec<u8>,
}

/// Whether the body has ended, or why it is none.
type End = Result<bool, Malformed>;

fn decode(reads: &[&[u8]]) -> (Decoded, End) {
    let (mut decoder, mut body, mut read) = (Decoder::new(Length::Chunked), Decoded::default(), BytesMut::new());
    for bytes in reads {
        read.extend_from_slice(bytes);
        loop {
            match decoder.decode(&mut read) {
                Ok(Some(frame)) => match frame.into_data() {
                    Ok(data) => body.data.extend_from_slice(&data),
                    Err(frame) => body.trailers = frame.into_trailers().ok(),
                },
                Ok(None) => break,
                Err(malformed) => return (body, Err(malformed)),
            }
        }
    }
    if decoder.is_through() {
        body.behind = read.to_vec();
    }
    (body, Ok(decoder.is_through()))
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("chunks", check);
}
