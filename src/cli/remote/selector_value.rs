//! `SELECTOR=VALUE` arguments, and names in the path of a request.

use std::fmt::Write;

/// Parses `param.username=alice`.
pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as SELECTOR=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
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
