//! `SELECTOR=VALUE` arguments, and names in the path of a request.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::cli::output;

/// Parses `param.username=alice`.
pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as SELECTOR=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// `client_ip=198.51.100.7 param.username=alice`
pub(super) fn key_words(key: &BTreeMap<String, String>) -> String {
    if key.is_empty() {
        return "one for all".to_owned();
    }
    let parts: Vec<_> = key.iter().map(|(selector, value)| format!("{selector}={value}")).collect();
    output::plain(&parts.join(" "))
}

/// A name encoded as one segment of a path.
pub(super) fn path_segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            segment.push(char::from(byte));
        } else {
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}
