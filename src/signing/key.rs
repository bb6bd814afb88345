//! One signing key, made from a random seed.

use std::fmt;

use aws_lc_rs::hmac;

use super::signature::KEY_ID_LENGTH;
use super::signature::SIGNATURE_LENGTH;
use super::signature::Signature;
use crate::clock::Timestamp;

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
    /// See [`KeyRing::display_secret`](super::KeyRing::display_secret).
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
