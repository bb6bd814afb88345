//! The fuzz target of this parser.

use bytes::Bytes;
use http::HeaderMap;

use super::HeadLimits;
use super::RequestHead;
use crate::corpus;
use crate::http1::grammar::HeadScanner;

/// A head is read once it is whole and never before, does not depend on what follows it, keeps its bounds, and ends
/// where a scan for its end says.
pub fn check(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let Ok(Some((head, length))) = RequestHead::parse(&bytes, LIMITS, HeaderMap::new) else { return };
    assert!(length <= bytes.len().min(LIMITS.bytes) && head.fields.len() <= LIMITS.fields);
    let again = RequestHead::parse(&bytes.slice(..length), LIMITS, HeaderMap::new);
    let (again, same) = again.expect("it was a head").expect("it was whole");
    assert_eq!((format!("{again:?}"), same), (format!("{head:?}"), length), "it depends on what follows it");
    for shorter in corpus::places(length) {
        let outcome = RequestHead::parse(&bytes.slice(..shorter), LIMITS, HeaderMap::new);
        assert!(matches!(outcome, Ok(None)), "{outcome:?} after {shorter} of {length} bytes");
    }
    let found = corpus::same_for_every_split(&bytes, |reads| {
        let (mut scanner, mut read) = (HeadScanner::default(), Vec::new());
        reads.iter().find_map(|bytes| {
            read.extend_from_slice(bytes);
            scanner.find_end(&read)
        })
    });
    assert_eq!(found, Some(length), "the scan found another end");
}

const LIMITS: HeadLimits = HeadLimits { bytes: 4096, fields: 20 };

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("request_head", check);
}
