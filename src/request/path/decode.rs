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

/// What stands behind an escaped question mark, for each layer of escapes in which there is one.
pub(in crate::request) fn queries_within(path: &str) -> Vec<String> {
    let mut queries = Vec::new();
    let mut text = Cow::Borrowed(path);
    for _ in 0..MAX_DECODE_ROUNDS {
        let Some(plain) = decode_once(&text) else { break };
        if let Some((_, query)) = plain.split_once('?')
            && queries.last().is_none_or(|last| last != query)
        {
            queries.push(query.to_owned());
        }
        text = Cow::Owned(plain);
    }
    queries
}

/// Three rounds: more nesting than that is an attack, not an encoding.
pub(super) const MAX_DECODE_ROUNDS: usize = 3;
