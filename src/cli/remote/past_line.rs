//! One line of what happened.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

/// One line of the output, in words and for programs.
#[derive(Debug)]
pub(super) struct PastLine {
    /// RFC 3339.
    pub(super) last: String,
    pub(super) words: String,
    pub(super) json: Value,
}

/// Whose key it is: `198.51.100.7`, or `client_ip=198.51.100.7 param.username=a***`.
pub(super) fn key_owner(key: &BTreeMap<String, String>) -> String {
    match key.iter().collect::<Vec<_>>()[..] {
        [] => "all".to_owned(),
        [(selector, value)] if selector == "client_ip" => value.clone(),
        ref parts => parts.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
    }
}

/// ` in 20 s`, rounded up. Empty: it took no time, or these are no moments.
pub(super) fn span_words(first: &str, last: &str) -> String {
    let seconds = || {
        let (first, last) = (first.parse::<Timestamp>().ok()?, last.parse::<Timestamp>().ok()?);
        Some((last.duration_since(first).as_millis().max(0) + 999) / 1000).filter(|seconds| *seconds > 0)
    };
    seconds().map(|seconds| format!(" in {seconds} s")).unwrap_or_default()
}
