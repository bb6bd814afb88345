//! The fuzz target of this parser.

use super::MAX_VALUES;
use super::names_a_part;
use super::values;
#[cfg(test)]
use crate::corpus;

/// Values are bounded in number and size, with the boundary of the body and without one.
pub fn check(bytes: &[u8]) {
    let line = bytes.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
    let of_the_body = line.strip_prefix(b"--").unwrap_or(line).to_vec();
    for boundaries in [&[][..], &[of_the_body][..]] {
        let values = values(bytes, boundaries, "username");
        assert!(names_a_part(bytes) || values.is_empty(), "values without parts");
        assert!(values.len() <= MAX_VALUES, "{} values", values.len());
        let longest = values.iter().map(|value| value.len()).max().unwrap_or_default();
        // A byte that is not UTF-8 becomes a character of three.
        assert!(longest <= 3 * bytes.len(), "{longest} bytes of {}", bytes.len());
    }
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("multipart", check);
}
