//! A key or a password that is sent to the API and shown nowhere.

use std::fmt;

use http::HeaderValue;

/// One line of visible ASCII.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Trims white space. `None`: nothing is left, or it has characters that no key and no password of `CrowdSec` has.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_visible = text.chars().all(|letter| letter.is_ascii_graphic() || letter == ' ');
        (!text.is_empty() && is_visible).then(|| Self(text.into()))
    }

    /// The secret itself, for a request and nothing else.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of a header field that debugging output masks.
    pub(super) fn header(&self) -> HeaderValue {
        let mut value = HeaderValue::from_str(self.as_str()).expect("visible ASCII");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_trimmed_and_never_shown() {
        let secret = Secret::new(" s3cret\n").unwrap();
        assert_eq!(
            (secret.as_str(), &*format!("{secret:?} {:?}", secret.header())),
            ("s3cret", "Secret(***) Sensitive")
        );
    }

    #[test]
    fn what_cannot_be_a_key_is_none() {
        for text in ["", " \n", "two\nlines", "k\u{e9}y", "nul\0"] {
            assert_eq!(Secret::new(text), None, "{text:?}");
        }
    }
}
