//! The fuzz target of these parsers.

use super::LogFormat;
use super::LogLine;
use super::format::ReadState;
#[cfg(test)]
use crate::corpus;
use crate::replay::head;

/// A line becomes no longer by being read, and what it says of a request can be asked of the rules.
pub fn check(bytes: &[u8]) {
    for format in LogFormat::Auto.candidates() {
        let read = format.read(bytes, &mut ReadState::default());
        assert_eq!(
            format.read(bytes, &mut ReadState::default()),
            read,
            "{format:?} reads a line twice and differently"
        );
        let Some(LogLine::Request(request)) = read else { continue };
        assert!(request.target.len() <= bytes.len(), "{format:?} made a target of {} bytes", request.target.len());
        if let Some(head) = head::head(&request) {
            assert!(head.path_and_query().is_ascii(), "{format:?} passes a target that the gateway refuses");
        }
    }
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("access_log", check);
}
