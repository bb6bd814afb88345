//! Escapes characters in request targets that a URI may not have.

use bytes::Bytes;
use memchr::memchr;
use memchr::memchr3;

/// Escapes characters that old applications and scripts send unescaped (`/?q={"a":1}`, `/a<b`). The rules read both spellings
/// alike.
pub fn escape(target: Bytes) -> Bytes {
    if memchr3(b'"', b'<', b'>', &target).is_none() && memchr(b'`', &target).is_none() {
        return target;
    }
    let mut escaped = Vec::with_capacity(target.len() + ROOM);
    for byte in target {
        match byte {
            b'"' => escaped.extend_from_slice(b"%22"),
            b'<' => escaped.extend_from_slice(b"%3C"),
            b'>' => escaped.extend_from_slice(b"%3E"),
            b'`' => escaped.extend_from_slice(b"%60"),
            other => escaped.push(other),
        }
    }
    escaped.into()
}

/// In bytes: enough for a few escapes.
const ROOM: usize = 32;
