//! The request line, as formats of text have it.

use http::Method;

/// The method and the target of a request line. `None`: what was sent is no request of HTTP/1 or later, and so no rule
/// has seen it.
pub(super) fn read(line: &[u8]) -> Option<(Method, &str)> {
    let line = str::from_utf8(line).ok()?;
    let (method, rest) = line.split_once(' ')?;
    let (target, version) = rest.rsplit_once(' ')?;
    if !version.starts_with("HTTP/") || target.is_empty() || target.contains(' ') {
        return None;
    }
    Some((Method::from_bytes(method.as_bytes()).ok()?, target))
}
