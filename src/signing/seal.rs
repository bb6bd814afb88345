//! Encrypts what only gateways with the same keys may read.
//!
//! A sealed text is `key id 4 | salt 16 | ciphertext | tag 16`. Each has a key of its own, derived from the signing key, the
//! purpose and the salt; so a nonce is never used twice with one key, however many texts are sealed. The cipher is AES-256 in
//! GCM, and a text opens only in the context that it was sealed for.

use aws_lc_rs::aead::AES_256_GCM;
use aws_lc_rs::aead::Aad;
use aws_lc_rs::aead::LessSafeKey;
use aws_lc_rs::aead::Nonce;
use aws_lc_rs::aead::UnboundKey;

use super::key_ring::KeyRing;
use super::signature::KEY_ID_LENGTH;
use super::signature::SIGNATURE_LENGTH;
use super::signature::Signature;

/// The length of the random bytes that each sealing needs.
pub const SALT_LENGTH: usize = 16;

impl KeyRing {
    /// Encrypts a text with the newest key. `context` is not in the result: it must be the same when the text is opened.
    pub fn seal(&self, purpose: &str, context: &[u8], salt: &[u8; SALT_LENGTH], text: &[u8]) -> Vec<u8> {
        let derived = self.sign(purpose, &[SEALING, salt]);
        let mut sealed = [derived.key_id(), salt].concat();
        let mut body = text.to_vec();
        cipher(&derived)
            .seal_in_place_append_tag(nonce(), Aad::from(context), &mut body)
            .expect("a text is shorter than 64 GiB");
        sealed.append(&mut body);
        sealed
    }

    /// The text; `None`: it was changed, it belongs to another purpose or context, or its key is not on this ring.
    pub fn open(&self, purpose: &str, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (key_id, rest) = sealed.split_first_chunk::<KEY_ID_LENGTH>()?;
        let (salt, body) = rest.split_first_chunk::<SALT_LENGTH>()?;
        let mut named = Signature([0; SIGNATURE_LENGTH]);
        named.0[..KEY_ID_LENGTH].copy_from_slice(key_id);
        let derived = self.sign_with_key_of(&named, purpose, &[SEALING, salt])?;
        let mut body = body.to_vec();
        let text = cipher(&derived).open_in_place(nonce(), Aad::from(context), &mut body).ok()?;
        Some(text.to_vec())
    }
}

fn cipher(derived: &Signature) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, derived.hash()).expect("the hash has 32 bytes"))
}

/// One for each key.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Gateways of one Redis derive keys alike, so this text never changes.
const SEALING: &[u8] = b"the key of a sealed text";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::signing::KeySeed;

    fn ring(secret: u8) -> KeyRing {
        KeyRing::new(KeySeed { made: Timestamp::EPOCH, secret: [secret; 32] })
    }

    #[test]
    fn only_a_gateway_with_the_key_opens_a_text_and_only_where_it_belongs() {
        let (ring, stranger) = (ring(1), ring(2));
        let sealed = ring.seal("records", b"gateway a", &[7; 16], b"198.51.100.7");
        assert!(!sealed.windows(4).any(|four| four == b"198."));
        assert_eq!(ring.open("records", b"gateway a", &sealed).as_deref(), Some(&b"198.51.100.7"[..]));
        assert_eq!(ring.open("records", b"gateway b", &sealed), None);
        assert_eq!(ring.open("others", b"gateway a", &sealed), None);
        assert_eq!(stranger.open("records", b"gateway a", &sealed), None);
        for position in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[position] ^= 1;
            assert_eq!(ring.open("records", b"gateway a", &changed), None, "{position}");
            assert_eq!(ring.open("records", b"gateway a", &sealed[..position]), None, "{position}");
        }
    }

    #[test]
    fn a_text_opens_after_the_next_key_signs() {
        let before = ring(1);
        let sealed = before.seal("records", b"", &[7; 16], b"text");
        let after = before.rotated(KeySeed { made: Timestamp::EPOCH, secret: [2; 32] });
        assert!(after.open("records", b"", &sealed).is_some());
        assert_ne!(after.seal("records", b"", &[7; 16], b"text"), sealed);
    }
}
