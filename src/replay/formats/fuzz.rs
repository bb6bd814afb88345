//! The fuzz target of these parsers.

use super::FieldNames;
use super::LineContent;
use super::LineReader;
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
    check_lines(bytes);
}

/// Lines become no longer together by being joined and taken out of what stands around them.
fn check_lines(bytes: &[u8]) {
    let mut reader = LineReader::new(LogFormat::Auto, &FieldNames::default());
    let mut length = 0;
    let mut add = |content| {
        length += match content {
            LineContent::Line(LogLine::Request(request)) => request.target.len(),
            LineContent::Unreadable(text) => text.len(),
            LineContent::Line(_) | LineContent::Piece => 0,
        };
    };
    for line in bytes.split(|byte| *byte == b'\n') {
        add(reader.read(line));
    }
    while let Some(rest) = reader.rest() {
        add(rest);
    }
    assert!(length <= bytes.len(), "{} bytes became {length}", bytes.len());
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("access_log", check);
}
