//! One spelling for names people type: NFKC, folded case, trimmed.

use std::borrow::Cow;

/// `  Ａlice ` and `alice` are one user.
pub fn normalise(_text: &str) -> Cow<'_, str> {
    todo!()
}
