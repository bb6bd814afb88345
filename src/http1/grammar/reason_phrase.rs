//! The reason phrase of a status line, where it is not the usual one.

use bytes::Bytes;

/// An extension of responses: the application's own words behind the status code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReasonPhrase(Bytes);

impl ReasonPhrase {
    /// `None`: the bytes contain one that a reason phrase may not have (RFC 9112, section 4).
    pub fn new(bytes: Bytes) -> Option<Self> {
        let may_stand = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
        bytes.iter().all(may_stand).then_some(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_phrase_has_no_control_characters_but_tabs() {
        for phrase in [&b""[..], b"Not Today", b"a\tb", b"\xff"] {
            assert_eq!(ReasonPhrase::new(Bytes::copy_from_slice(phrase)).unwrap().as_bytes(), phrase);
        }
        for phrase in [&b"\r"[..], b"a\nb", b"\0", b"\x7f"] {
            assert_eq!(ReasonPhrase::new(Bytes::copy_from_slice(phrase)), None);
        }
    }
}
