//! Masked keys as logs, audit trails and the API show them.

use serde_json::Value;

/// Removes the four digits behind each `***`, and fails if they are missing.
#[track_caller]
pub fn without_digits(shown: &str) -> String {
    let mut pieces = shown.split("***");
    let mut plain = pieces.next().expect("there is always a first piece").to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(4).unwrap_or_else(|| panic!("no digits in {shown}"));
        assert!(digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')), "{shown}");
        plain.push_str("***");
        plain.push_str(rest);
    }
    plain
}

/// The same for a key in JSON.
#[track_caller]
pub fn key_without_digits(key: &Value) -> Value {
    serde_json::from_str(&without_digits(&key.to_string())).expect("it was JSON before")
}
