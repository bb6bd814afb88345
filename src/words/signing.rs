//! Signatures on what the gateway hands to clients and reads back later: device cookies and challenge tokens. The same keys
//! seal what gateways tell each other.
//!
//! A [`KeyRing`] is a plain value. The store keeps the one in force, replaces it, and makes the random seeds.

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

use crate::words::clock::Timestamp;

/// After this a new key signs.
pub const ROTATION_PERIOD: Duration = Duration::from_secs(60 * 24 * 3600);

/// So many keys are kept: a signature is valid for 420 days at least, longer than browsers keep cookies.
pub const MAX_KEYS: usize = 8;

/// The keys of one process, and the keys of all gateways on one Redis.
#[derive(Clone, Debug)]
pub struct KeyRing {
    /// The keys of all gateways on one Redis, the newest first. If there are any, the newest signs.
    shared: Vec<SigningKey>,
    /// The keys of this process, the newest first. There is always one.
    own: Vec<SigningKey>,
}

impl KeyRing {
    /// A ring with one key of this process.
    pub fn new(seed: KeySeed) -> Self {
        Self { shared: Vec::new(), own: vec![SigningKey::new(seed, b"")] }
    }

    /// Signs a message of several parts, which are separated by their lengths. A signature for one purpose is not valid
    /// for another.
    pub fn sign(&self, purpose: &str, message: &[&[u8]]) -> Signature {
        self.newest().sign(purpose, message)
    }

    /// Whether a key of this ring signed this for that purpose.
    pub fn verify(&self, purpose: &str, message: &[&[u8]], signature: &Signature) -> bool {
        let expected = self.sign_with_key_of(signature, purpose, message);
        expected.is_some_and(|expected| verify_slices_are_equal(&expected.0, &signature.0).is_ok())
    }

    /// Signs with the key that made another signature. `None`: that key is not, or no longer, on this ring.
    pub fn sign_with_key_of(&self, other: &Signature, purpose: &str, message: &[&[u8]]) -> Option<Signature> {
        let key = self.keys().find(|key| other.key_id() == key.id)?;
        Some(key.sign(purpose, message))
    }

    /// The secret of the hashes that operators see in place of key values. Gateways that share the ring have the same
    /// one until the next key signs.
    pub fn display_secret(&self) -> [u8; 16] {
        self.newest().display_secret
    }

    /// Whether a new key of this process is due. Shared keys are rotated by Redis.
    pub fn needs_rotation(&self, now: Timestamp) -> bool {
        self.shared.is_empty() && self.own.first().is_some_and(|key| now.since(key.seed.made) >= ROTATION_PERIOD)
    }

    /// This ring with a new key of this process, and without the oldest where there are too many.
    #[must_use]
    pub fn rotated(&self, seed: KeySeed) -> Self {
        let new = SigningKey::new(seed, b"");
        let own = std::iter::once(&new).chain(&self.own).take(MAX_KEYS).cloned().collect();
        Self { own, shared: self.shared.clone() }
    }

    /// The keys of this process, the newest first: what a snapshot keeps for the time after a restart.
    pub fn own_seeds(&self) -> Vec<KeySeed> {
        self.own.iter().map(|key| key.seed.clone()).collect()
    }

    /// This ring with the keys of an earlier process in place of this one's. Keys made in the future count as made now.
    /// Without any seed it stays as it is.
    #[must_use]
    pub fn with_own_seeds(&self, seeds: &[KeySeed], now: Timestamp) -> Self {
        let own = newest_keys(seeds.iter().map(|seed| KeySeed { made: seed.made.min(now), ..seed.clone() }), b"");
        Self { own: if own.is_empty() { self.own.clone() } else { own }, shared: self.shared.clone() }
    }

    /// This ring with the keys that all gateways share: from now on the newest of them signs. `pepper` is a secret that
    /// only the gateways have, so that the seeds alone make no key.
    ///
    /// Shared keys that a Redis has lost go on being valid in this process.
    #[must_use]
    pub fn with_shared_seeds(&self, seeds: &[KeySeed], pepper: &[u8]) -> Self {
        let shared = newest_keys(seeds.iter().cloned(), pepper);
        let is_lost = |key: &&SigningKey| !shared.iter().any(|kept| kept.id == key.id);
        let own = self.shared.iter().filter(is_lost).chain(&self.own).take(MAX_KEYS).cloned().collect();
        Self { shared, own }
    }

    fn newest(&self) -> &SigningKey {
        self.keys().next().expect("a ring has a key")
    }

    fn keys(&self) -> impl Iterator<Item = &SigningKey> {
        self.shared.iter().chain(&self.own)
    }
}

fn newest_keys(seeds: impl Iterator<Item = KeySeed>, pepper: &[u8]) -> Vec<SigningKey> {
    let mut keys: Vec<SigningKey> = seeds.map(|seed| SigningKey::new(seed, pepper)).collect();
    keys.sort_by_key(|key| Reverse(key.seed.made));
    keys.truncate(MAX_KEYS);
    keys
}

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

// One signing key, made from a random seed.

/// A key as a snapshot on disk or Redis keeps it.
#[derive(Clone, Eq, PartialEq)]
pub struct KeySeed {
    /// When it was made, by the clock of the process or Redis that keeps it.
    pub made: Timestamp,
    /// Random.
    pub secret: [u8; 32],
}

/// A key, ready to sign.
#[derive(Clone)]
pub(super) struct SigningKey {
    pub(super) id: [u8; KEY_ID_LENGTH],
    pub(super) seed: KeySeed,
    /// See [`KeyRing::display_secret`](KeyRing::display_secret).
    pub(super) display_secret: [u8; 16],
    hmac: hmac::Key,
}

impl SigningKey {
    /// `pepper` is a secret that is stored apart from the seed. Without both there is no key.
    pub(super) fn new(seed: KeySeed, pepper: &[u8]) -> Self {
        let secret = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &seed.secret), pepper);
        let hmac = hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref());
        // Gateways of one Redis derive both values alike, so these texts never change.
        let mut id = [0; KEY_ID_LENGTH];
        id.copy_from_slice(&hmac::sign(&hmac, b"the name of this key").as_ref()[..KEY_ID_LENGTH]);
        let mut display_secret = [0; 16];
        display_secret.copy_from_slice(&hmac::sign(&hmac, b"what hashes that people see are made with").as_ref()[..16]);
        Self { id, seed, display_secret, hmac }
    }

    pub(super) fn sign(&self, purpose: &str, message: &[&[u8]]) -> Signature {
        let mut context = hmac::Context::with_key(&self.hmac);
        for part in [purpose.as_bytes()].iter().chain(message) {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut signature = [0; SIGNATURE_LENGTH];
        signature[..KEY_ID_LENGTH].copy_from_slice(&self.id);
        signature[KEY_ID_LENGTH..].copy_from_slice(context.sign().as_ref());
        Signature(signature)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(***)")
    }
}

impl fmt::Debug for KeySeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySeed(***)")
    }
}

// A signature, and which key made it.

/// 4 bytes of key id, 32 of HMAC-SHA256.
pub const SIGNATURE_LENGTH: usize = KEY_ID_LENGTH + 32;

pub(super) const KEY_ID_LENGTH: usize = 4;

/// The id of a key, then a keyed hash.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Signature(pub [u8; SIGNATURE_LENGTH]);

impl Signature {
    /// Whether one key made both.
    pub fn has_key_of(&self, other: &Self) -> bool {
        self.key_id() == other.key_id()
    }

    /// The keyed hash alone.
    pub fn hash(&self) -> &[u8] {
        &self.0[KEY_ID_LENGTH..]
    }

    pub(super) fn key_id(&self) -> &[u8] {
        &self.0[..KEY_ID_LENGTH]
    }
}

// Encrypts texts that only gateways with the same keys may read.

// Encrypts texts that only gateways with the same keys may read.
//
// A sealed text is `key id 4 | salt 16 | ciphertext | tag 16`. Each has a key of its own, derived from the signing key,
// the purpose and the salt; so a nonce is never used twice with one key, for any number of texts. The cipher is AES-256
// in GCM, and a text opens only in the context that it was sealed for.

/// The length of the random bytes that each sealing needs.
pub const SALT_LENGTH: usize = 16;

/// Gateways of one Redis derive keys alike, so this text never changes.
const SEALING: &[u8] = b"the key of a sealed text";

fn cipher(derived: &Signature) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, derived.hash()).expect("the hash has 32 bytes"))
}

/// One for each key.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

#[cfg(test)]
mod tests {
    use super::{KeySeed, *};
    use crate::words::clock::Timestamp;

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
