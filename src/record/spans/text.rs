//! Texts of clients as attributes: a queue of long ones would take too much memory.

use opentelemetry::Value;

/// Bytes that a span keeps of one text.
const MAX_TEXT: usize = 1024;

/// The beginning of a text.
pub(super) fn short(text: &str) -> Value {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    Value::from(text[..end.unwrap_or(0)].to_owned())
}

/// The beginning of bytes that need not be UTF-8.
pub(super) fn short_bytes(bytes: &[u8]) -> Value {
    short(&String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(short("/a").as_str(), "/a");
        assert_eq!(short(&"é".repeat(600)).as_str().len(), MAX_TEXT);
        assert_eq!(short(&format!("a{}", "é".repeat(600))).as_str().len(), MAX_TEXT - 1);
        assert_eq!(short_bytes(b"a\xffb").as_str(), "a\u{fffd}b");
        assert!(short_bytes(&[0xff; 9000]).as_str().len() <= MAX_TEXT);
    }
}
