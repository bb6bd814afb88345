//! The fuzz target of this parser.

use serde_json::Value;

use super::scalars::MAX_VALUES;
use super::values;
#[cfg(test)]
use crate::corpus;

/// Whatever a strict library reads is read here too, and values are bounded in number and size.
pub fn check(bytes: &[u8]) {
    if let Ok(Value::Object(fields)) = serde_json::from_slice(bytes)
        && let Some(Value::String(text)) = fields.get("username")
    {
        let found = values(bytes, "username");
        let before_nul = |value: &str| value.split('\0').next().unwrap_or_default().to_owned();
        let is_found = found.iter().any(|value| before_nul(value) == before_nul(text));
        assert!(is_found || found.len() >= MAX_VALUES, "{text:?} is not among {found:?}");
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
