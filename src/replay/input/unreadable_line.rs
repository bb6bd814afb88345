//! A line that is of no known format.

use std::sync::Arc;

use serde::Serialize;

use crate::secret;

/// A line that could not be read.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct UnreadableLine {
    pub file: Arc<str>,
    /// From 1.
    pub line: u64,
    /// Its start, with everything escaped that is not plain text, and without what may be a secret.
    pub text: String,
}

/// The start of a line, in which nothing moves a terminal's cursor, and no secret stands.
pub(super) fn shown(line: &[u8]) -> String {
    // It is masked before it is cut: half of a secret is not recognized as one.
    let text = String::from_utf8_lossy(&line[..line.len().min(MASKED_BYTES)]);
    let text = without_credentials(&secret::hidden(&text));
    let mut shown: String = text.chars().take(SHOWN_LETTERS).collect::<String>().escape_debug().to_string();
    if text.chars().nth(SHOWN_LETTERS).is_some() || line.len() > MASKED_BYTES {
        shown.push_str("...");
    }
    shown
}

/// Masks the values of queries, where tokens stand, and what follows the name of a scheme of `Authorization`.
fn without_credentials(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut is_credential = false;
    for word in text.split_inclusive(|letter: char| letter.is_whitespace() || letter == '"') {
        let (value, end) = word.split_at(word.trim_end_matches(|c: char| c.is_whitespace() || c == '"').len());
        if value.is_empty() {
            shown.push_str(end);
            continue;
        }
        match value.split_once('?') {
            _ if is_credential => shown.push_str(secret::MASK),
            Some((path, query)) if !query.is_empty() => {
                shown.push_str(path);
                shown.push('?');
                shown.push_str(secret::MASK);
            }
            _ => shown.push_str(value),
        }
        is_credential = SCHEMES.iter().any(|scheme| value.eq_ignore_ascii_case(scheme));
        shown.push_str(end);
    }
    shown
}

const SCHEMES: [&str; 3] = ["Bearer", "Basic", "Token"];

/// Longer than the start of a line with the URL of any ordinary request.
const MASKED_BYTES: usize = 8 * 1024;

const SHOWN_LETTERS: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_line_shows_no_secret() {
        for (line, expected) in [
            ("GET /a?token=s3cret HTTP/1.1", "GET /a?*** HTTP/1.1"),
            ("https://u:s3cret@h/a?b=s3cret", "https://***@h/a?***"),
            ("\"Bearer s3cret\" \"/a?b\"", "\\\"Bearer ***\\\" \\\"/a?***\\\""),
            ("is it? so", "is it? so"),
        ] {
            assert_eq!(shown(line.as_bytes()), expected);
        }
        let long = format!("{}http://user:{}@h", "x".repeat(100), "s3cret".repeat(100));
        assert_eq!(shown(long.as_bytes()), format!("{}http://***@h", "x".repeat(100)));
    }
}
