//! All keys of a gateway: the newest signs, and signatures of older ones stay valid.

use std::cmp::Reverse;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;

use super::key::KeySeed;
use super::key::SigningKey;
use super::signature::Signature;
use crate::clock::Timestamp;

/// The keys of one process, and those of all gateways on one Redis.
#[derive(Clone, Debug)]
pub struct KeyRing {
    /// Those of all gateways on one Redis, the newest first. While there are any, they sign.
    shared: Vec<SigningKey>,
    /// Those of this process, the newest first. There is always one.
    own: Vec<SigningKey>,
}

/// After this a new key signs.
pub const ROTATION_PERIOD: Duration = Duration::from_secs(60 * 24 * 3600);

/// So many keys are kept: a signature is valid for 420 days at least, longer than browsers keep cookies.
pub const MAX_KEYS: usize = 8;

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
