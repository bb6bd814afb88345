//! The fuzz target of this parser.

use super::WellFormed;
use super::scalars::MAX_VALUES;
use super::values;
use super::well_formed;
#[cfg(test)]
use crate::corpus;

/// Whatever a strict library reads is well-formed here too, and its values are bounded in number and size.
pub fn check(bytes: &[u8]) {
    if serde_json::from_slice::<serde_json::Value>(bytes).is_ok() {
        assert_eq!(well_formed(bytes), WellFormed::Yes);
    } else {
        let _ = well_formed(bytes);
    }
    for path in ["username", "user.name", "0", ""] {
        let values = values(bytes, path);
        assert!(values.len() <= 2 * MAX_VALUES + 1, "{} values", values.len());
        let longest = values.iter().map(|value| value.len()).max().unwrap_or_default();
        // A byte that is not UTF-8 becomes a character of three, and a number in the usual spelling has 400 digits at
        // most.
        assert!(longest <= 3 * bytes.len() + 400, "{longest} bytes of {}", bytes.len());
    }
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("json", check);
}
