//! The fuzz target of this parser.

use super::first;
#[cfg(test)]
use crate::corpus;

/// A reply is found once it is whole and never before, and does not depend on what follows it.
pub fn check(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((value, length))) = first(rest) {
        assert!(0 < length && length <= rest.len(), "{length} of {}", rest.len());
        let again = first(&rest[..length]);
        assert_eq!(again.expect("it was a reply"), Some((value, length)), "it depends on what follows it");
        let shorter = first(&rest[..length - 1]);
        assert!(!matches!(shorter, Ok(Some(_))), "it was whole before its end");
        rest = &rest[length..];
    }
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("redis_reply", check);
}
