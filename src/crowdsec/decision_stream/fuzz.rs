//! The fuzz target of this parser.

use super::DecisionStream;
use super::MOST_REASONS;
#[cfg(test)]
use crate::corpus;

/// Bytes become a bounded answer or an error, whatever they are.
pub fn check(bytes: &[u8]) {
    let Ok(stream) = DecisionStream::read(bytes, false) else { return };
    assert!(stream.new.len() + stream.deleted.len() <= bytes.len() / SHORTEST, "{stream:?}");
    assert!(stream.unfollowed.len() <= MOST_REASONS);
    let words: usize = stream.unfollowed.iter().map(|reason| reason.to_string().len()).sum();
    assert!(words <= MOST_REASONS * LONGEST_REASON, "{words} bytes of reasons");
}

/// No decision is written with fewer bytes.
const SHORTEST: usize = 30;

/// A quoted character may take ten bytes.
const LONGEST_REASON: usize = 500;

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("decision_stream", check);
}
