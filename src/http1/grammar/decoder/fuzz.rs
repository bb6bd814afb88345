//! The fuzz target of this parser.

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;
use http::HeaderMap;

use super::BodyDecoder;
use super::InvalidMessage;
use super::Sender;
use crate::corpus;
use crate::http1::grammar::BodyEncoder;
use crate::http1::grammar::BodyLength;
use crate::http1::grammar::WriteBuffer;

/// A body in chunks means the same however it arrives, is not longer than what arrived, and comes back when it is
/// written anew.
pub fn check(bytes: &[u8]) {
    for sender in [Sender::Client, Sender::Server] {
        check_from(sender, bytes);
    }
}

fn check_from(sender: Sender, bytes: &[u8]) {
    let (body, end) = corpus::same_for_every_split(bytes, |reads: &[&[u8]]| decode(sender, reads));
    let taken = body.data.len() + body.behind.len();
    assert!(taken <= bytes.len(), "{taken} of {} bytes", bytes.len());
    if end == Ok(true) {
        let (mut encoder, mut out) = (BodyEncoder::new(BodyLength::Chunked), WriteBuffer::default());
        encoder.part(Bytes::from(body.data.clone()), &mut out);
        encoder.end(body.trailers.as_ref(), &mut out).expect("chunks end anywhere");
        let written = out.copy_to_bytes(out.remaining());
        let (again, _) = decode(Sender::Client, &[&written]);
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

/// Whether the body has ended, or why it is invalid.
type End = Result<bool, InvalidMessage>;

fn decode(sender: Sender, reads: &[&[u8]]) -> (Decoded, End) {
    let (mut decoder, mut body, mut read) =
        (BodyDecoder::new(BodyLength::Chunked, sender), Decoded::default(), BytesMut::new());
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
    if decoder.is_complete() {
        body.behind = read.to_vec();
    }
    (body, Ok(decoder.is_complete()))
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("chunks", check);
}
