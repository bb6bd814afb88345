//! Keys as stores and logs know them: keyed hashes, from which nobody learns a value.

use std::hash::Hasher;

use serde::Deserialize;
use serde::Serialize;
use siphasher::sip128::Hasher128;
use siphasher::sip128::SipHasher24;

use super::Key;

/// A keyed hash of a limit's name and a key: what stores count under.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct KeyHash(pub u128);

/// Hashes keys with a secret, so that nobody outside can choose keys that collide.
#[derive(Clone)]
pub struct KeyHasher {
    secret: [u8; 16],
}

/// The two that a store has.
#[derive(Clone, Debug)]
pub struct Hashers {
    /// What it counts keys under.
    pub counted: KeyHasher,
    /// What people are shown of them.
    pub shown: KeyHasher,
}

impl KeyHasher {
    pub fn new(secret: [u8; 16]) -> Self {
        Self { secret }
    }

    /// The same for all gateways that count under one prefix in one Redis, so that they need agree on nothing.
    ///
    /// Whoever knows the prefix can compute such hashes: tables of this process that strangers fill are kept under
    /// [`KeyHasher::rehash`].
    pub fn shared(prefix: &str) -> Self {
        let mut hasher = SipHasher24::new_with_key(b"portcullis-redis");
        hasher.write(prefix.as_bytes());
        Self { secret: hasher.finish128().as_u128().to_le_bytes() }
    }

    /// A hash of a hash that others can compute, which they cannot.
    #[must_use]
    pub fn rehash(&self, hash: KeyHash) -> KeyHash {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        hasher.write(&hash.0.to_le_bytes());
        KeyHash(hasher.finish128().as_u128())
    }

    /// Counters belong to a limit by its name: the same key under two limits is two hashes.
    pub fn hash(&self, limit: &str, key: &Key) -> KeyHash {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        // The name behind its length, as every part of the key is.
        hasher.write_u64((limit.len() as u64).to_le());
        hasher.write(limit.as_bytes());
        hasher.write(key.as_bytes());
        KeyHash(hasher.finish128().as_u128())
    }
}

impl KeyHasher {
    /// Four hexadecimal digits that tell a value from another one with the same mask.
    pub fn digits(&self, value: &[u8]) -> String {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        hasher.write(value);
        format!("{:04x}", hasher.finish128().h2 & 0xffff)
    }

    /// A value that is told apart from others under one key.
    pub fn item(&self, value: &Key) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        hasher.write(value.as_bytes());
        hasher.finish128().h1
    }
}

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHasher(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(part: &str) -> Key {
        let mut key = Key::default();
        key.push(part.as_bytes());
        key
    }

    #[test]
    fn limits_do_not_share_a_key() {
        let hasher = KeyHasher::new([7; 16]);
        assert_eq!(hasher.hash("login", &key("alice")), hasher.hash("login", &key("alice")));
        assert_ne!(hasher.hash("login", &key("alice")), hasher.hash("login", &key("bob")));
        assert_ne!(hasher.hash("login", &key("alice")), hasher.hash("api", &key("alice")));
        assert_ne!(hasher.hash("a", &key("alice")), hasher.hash("a\u{5}alice", &Key::default()));
    }

    #[test]
    fn another_secret_makes_other_hashes() {
        let hash = |secret| KeyHasher::new(secret).hash("login", &key("alice"));
        assert_ne!(hash([1; 16]), hash([2; 16]));
    }

    #[test]
    fn gateways_of_one_prefix_agree_and_others_do_not() {
        let hash = |prefix| KeyHasher::shared(prefix).hash("login", &key("alice"));
        assert_eq!(hash("portcullis"), hash("portcullis"));
        assert_ne!(hash("portcullis"), hash("staging"));
    }

    #[test]
    fn hashed_again_it_is_another_for_each_secret() {
        let hash = KeyHasher::shared("portcullis").hash("login", &key("alice"));
        let rehash = |secret| KeyHasher::new(secret).rehash(hash);
        assert_eq!(rehash([1; 16]), rehash([1; 16]));
        assert_ne!(rehash([1; 16]), rehash([2; 16]));
        assert_ne!(rehash([1; 16]), hash);
    }
}
