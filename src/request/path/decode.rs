//! Percent-decoding of paths, repeated for paths that were encoded more than once.

use std::borrow::Cow;

use crate::request::percent;
use crate::request::percent::Escapes;

/// Decodes a path until nothing changes, or for as many rounds as are allowed.
pub(super) fn decode(path: &str) -> Cow<'_, str> {
    let mut path = Cow::Borrowed(path);
    for _ in 0..MAX_DECODE_ROUNDS {
        let Some(plain) = decode_once(&path) else { break };
        path = Cow::Owned(plain);
    }
    path
}

/// Decodes one layer of escapes; `None` when there is none.
pub(super) fn decode_once(path: &str) -> Option<String> {
    let plain = percent::decode(path.as_bytes(), Escapes { plus: false, code_units: true })?;
    Some(percent::text(Cow::Owned(plain)).into_owned())
}

/// Three rounds: more nesting than that is an attack, not an encoding.
pub(super) const MAX_DECODE_ROUNDS: usize = 3;
