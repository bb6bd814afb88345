//! The fuzz target of this parser.

use http::Uri;

use super::HeadLimits;
use super::ParsedRequest;
use super::parse;
use crate::corpus;
use crate::head::RequestHead;
use crate::http1::grammar::HeadScanner;

/// A head is read once it is whole and never before, does not depend on what follows it, keeps its bounds, and ends
/// where a scan for its end says.
pub fn check(bytes: &[u8]) {
    let Ok(Some(ParsedRequest { head, length, .. })) = parse(bytes, LIMITS) else { return };
    assert!(length <= bytes.len().min(LIMITS.bytes) && head.fields.len() <= LIMITS.fields);
    let again = parse(&bytes[..length], LIMITS).expect("it was a head").expect("it was whole");
    let whole = |head: &RequestHead| format!("{head:?} {:?}", head.fields.text());
    assert_eq!((whole(&again.head), again.length), (whole(&head), length), "it depends on what follows it");
    for shorter in corpus::places(length) {
        let outcome = parse(&bytes[..shorter], LIMITS);
        assert!(matches!(outcome, Ok(None)), "{outcome:?} after {shorter} of {length} bytes");
    }
    check_with_oracle(&bytes[..length], &head);
    let found = corpus::same_for_every_split(bytes, |reads| {
        let (mut scanner, mut read) = (HeadScanner::default(), Vec::new());
        reads.iter().find_map(|bytes| {
            read.extend_from_slice(bytes);
            scanner.find_end(&read)
        })
    });
    assert_eq!(found, Some(length), "the scan found another end");
}

/// httparse and http read the same from a head that is accepted.
fn check_with_oracle(whole: &[u8], head: &RequestHead) {
    let line = whole.split(|byte| *byte == b'\r').find(|line| line.len() > 1).unwrap_or_default();
    if !line.ends_with(b"HTTP/1.0") && !line.ends_with(b"HTTP/1.1") {
        // The library knows no other version.
        return;
    }
    let mut slots = [httparse::EMPTY_HEADER; 32];
    let mut oracle = httparse::Request::new(&mut slots);
    let parsed = oracle.parse(whole).expect("httparse reads it");
    assert_eq!(parsed, httparse::Status::Complete(whole.len()));
    assert_eq!(oracle.method, Some(head.method.as_str()));
    // The library refuses some bytes that are forwarded as they came.
    let escaped = |text: &str| text.replace('"', "%22").replace('<', "%3C").replace('>', "%3E").replace('`', "%60");
    let target: Uri = escaped(oracle.path.expect("a target")).parse().expect("http reads it");
    assert_eq!(target.path(), escaped(head.path()));
    assert_eq!(target.query().map(str::to_owned), head.query().map(escaped));
    let host = |authority: &str| authority.rsplit('@').next().unwrap_or_default().to_owned();
    assert_eq!(target.authority().map(|authority| host(authority.as_str())), head.authority().map(str::to_owned));
    let is_length = |name: &str| name.eq_ignore_ascii_case("content-length");
    let sent = oracle.headers.iter().filter(|field| !is_length(field.name));
    let sent: Vec<_> = sent.map(|field| (field.name.to_ascii_lowercase(), field.value)).collect();
    // Equal lengths become one, and none is left beside chunks.
    let read = head.fields.iter().filter(|field| !is_length(field.name.as_str()));
    let read: Vec<_> = read.map(|field| (field.name.as_str().to_owned(), field.value)).collect();
    assert_eq!(read, sent);
    let mut written = Vec::new();
    head.fields.write(&mut written);
    written.extend_from_slice(b"\r\n");
    let mut slots = [httparse::EMPTY_HEADER; 32];
    let again = httparse::parse_headers(&written, &mut slots).expect("what is written can be read").unwrap().1;
    let again: Vec<_> = again.iter().filter(|field| !is_length(field.name)).collect();
    assert!(again.iter().map(|field| (field.name.to_owned(), field.value)).eq(read), "it is written as it was read");
}

const LIMITS: HeadLimits = HeadLimits { bytes: 4096, fields: 20 };

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("request_head", check);
}
