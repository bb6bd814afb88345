//! The fuzz target of this parser.

use http::Method;

use super::ParsedResponse;
use super::could_begin;
use super::lines::HeadLines;
use super::parse;
use super::strict;
use super::tolerant;
use crate::corpus;
use crate::head::ResponseHead;

/// A head is read once it is whole and never before, and does not depend on what follows it. What is read strictly is read
/// the same tolerantly.
pub fn check(bytes: &[u8]) {
    // The library that reads tolerantly knows two versions.
    let is_usual = bytes.starts_with(b"HTTP/1.0") || bytes.starts_with(b"HTTP/1.1");
    if let Some(lines) = strict::read(bytes, MOST_FIELDS).filter(|_| is_usual) {
        let whole = |lines: &HeadLines| {
            let HeadLines { status, version, reason, fields, repairs, length } = lines;
            format!("{status} {version:?} {reason:?} {:?} {repairs:?} {length}", fields.iter().collect::<Vec<_>>())
        };
        let tolerant = tolerant::read(bytes, MOST_FIELDS).expect("a strict reader accepts it").expect("it is whole");
        assert_eq!(whole(&lines), whole(&tolerant));
    }
    for method in [Method::GET, Method::HEAD, Method::CONNECT] {
        let parse_head = |bytes: &[u8]| parse(bytes, &method, MOST_FIELDS);
        let Ok(Some(ParsedResponse { head, length, .. })) = parse_head(bytes) else { continue };
        assert!(length <= bytes.len() && head.fields.len() <= MOST_FIELDS);
        assert!(could_begin(bytes), "it was refused at its first bytes");
        let again = parse_head(&bytes[..length]).expect("it was a head").expect("it was whole");
        let whole = |head: &ResponseHead| format!("{head:?} {:?}", head.fields.text());
        assert_eq!((whole(&again.head), again.length), (whole(&head), length), "it depends on what follows it");
        for shorter in corpus::places(length) {
            let outcome = parse_head(&bytes[..shorter]);
            assert!(matches!(outcome, Ok(None)), "{outcome:?} after {shorter} of {length} bytes");
        }
    }
}

const MOST_FIELDS: usize = 100;

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("answer_head", check);
}
