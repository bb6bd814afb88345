//! The fuzz target of tokens.

use std::sync::LazyLock;

use super::KeySet;
use super::Validity;
use super::claims::Claims;
use super::compact::CompactToken;
use super::compact::MAX_LENGTH;
use super::verify;
use crate::base64;
use crate::clock::Timestamp;
#[cfg(test)]
use crate::corpus;

/// The key of RFC 8037, whose private half everybody knows; the corpus holds no token that it has signed.
static KEYS: LazyLock<KeySet> = LazyLock::new(|| {
    let set = br#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    KeySet::parse(set).expect("a key that can be used")
});

/// Checks what is promised of any text: nothing verifies that was not signed, and a token has one spelling.
pub fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let verified = verify(text, &KEYS, &Validity::default(), Timestamp::EPOCH);
    assert!(verified.is_err(), "an unsigned token verifies");
    let Ok(token) = CompactToken::parse(text) else { return };
    assert!(text.len() <= MAX_LENGTH, "a token that is too long is parsed");
    let parts: Vec<_> = text.split('.').collect();
    assert_eq!(parts.len(), 3, "a token has three parts");
    for part in parts {
        let decoded = base64::decode_url(part.as_bytes()).expect("each part is decoded");
        assert_eq!(base64::encode_url(&decoded), part, "a part has another spelling");
    }
    assert_eq!(token.signed.len() + 1 + token.signature.len(), text.len());
    if let Some(claims) = Claims::new(&token.payload, None) {
        assert!(claims.weight() <= 64 * 1024 + 32 * text.len(), "claims take too much memory");
    }
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("jwt", check);
}
