//! What a client may write in a target, though no URI has it.

use bytes::Bytes;
use memchr::memchr;
use memchr::memchr3;

/// Escapes what old applications and scripts write as it is (`/?q={"a":1}`, `/a<b`), and a URI may not have. The rules
/// read both spellings alike.
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

/// For a handful of them.
const ROOM: usize = 32;
