//! The fuzz target of this parser.

use bytes::Bytes;

use super::Bounds;
use super::Head;
use crate::corpus;
use crate::http1::Scan;

/// A head is read once it is whole and never before, does not depend on what follows it, keeps its bounds, and ends
/// where a scan for its end says.
pub fn check(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let Ok(Some((head, length))) = Head::parse(&bytes, BOUNDS) else { return };
    assert!(length <= bytes.len().min(BOUNDS.bytes) && head.fields.len() <= BOUNDS.fields);
    let again = Head::parse(&bytes.slice(..length), BOUNDS);
    let (again, same) = again.expect("it was a head").expect("it was whole");
    assert_eq!((format!("{again:?}"), same), (format!("{head:?}"), length), "it depends on what follows it");
    for shorter in corpus::places(length) {
        let outcome = Head::parse(&bytes.slice(..shorter), BOUNDS);
        assert!(matches!(outcome, Ok(None)), "{outcome:?} after {shorter} of {length} bytes");
    }
    let found = corpus::same_for_every_split(&bytes, |reads| {
        let (mut scan, mut read) = (Scan::default(), Vec::new());
        reads.iter().find_map(|bytes| {
            read.extend_from_slice(bytes);
            scan.end(&read)
        })
    });
    assert_eq!(found, Some(length), "the scan found another end");
}

const BOUNDS: Bounds = Bounds { bytes: 4096, fields: 20 };

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("request_head", check);
}
