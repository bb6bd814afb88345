//! The fuzz target of this parser.

use bytes::Bytes;
use http::Method;
use http::Request;

use super::could_begin;
use super::parse;
use crate::corpus;

/// A head is read once it is whole and never before, and does not depend on what follows it.
pub fn check(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    for method in [Method::GET, Method::HEAD, Method::CONNECT] {
        let parse_head = |bytes: &Bytes| {
            let mut request = Request::new(());
            *request.method_mut() = method.clone();
            parse(bytes, &mut request, MOST_FIELDS)
        };
        let Ok(Some((head, length))) = parse_head(&bytes) else { continue };
        assert!(length <= bytes.len() && head.response.headers().len() <= MOST_FIELDS);
        assert!(could_begin(&bytes), "it was refused at its first bytes");
        let (again, same) = parse_head(&bytes.slice(..length)).expect("it was a head").expect("it was whole");
        assert_eq!((format!("{again:?}"), same), (format!("{head:?}"), length), "it depends on what follows it");
        for shorter in corpus::places(length) {
            let outcome = parse_head(&bytes.slice(..shorter));
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
