//! Keyed hashes of keys for stores and logs. They do not reveal a value.

use std::hash::Hasher;

use serde::Deserialize;
use serde::Serialize;
use siphasher::sip128::Hasher128;
use siphasher::sip128::SipHasher24;

use super::Key;

/// A keyed hash of the name of a limit and a key. Stores count under it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct KeyHash(pub u128);

/// Hashes keys with a secret, so that no client can choose keys that collide.
#[derive(Clone)]
pub struct KeyHasher {
    secret: [u8; 16],
}

/// The two hashers of a store.
#[derive(Clone, Debug)]
pub struct Hashers {
    /// For the keys that the store counts under.
    pub counted: KeyHasher,
    /// For the hashes that operators see.
    pub shown: KeyHasher,
}

impl KeyHasher {
    pub fn new(secret: [u8; 16]) -> Self {
        Self { secret }
    }

    /// The same for all gateways with one prefix in one Redis, so that they need not exchange a secret.
    ///
    /// Everyone who knows the prefix can compute these hashes. Tables of this process that clients fill therefore use
    /// [`KeyHasher::rehash`].
    pub fn shared(prefix: &str) -> Self {
        let mut hasher = SipHasher24::new_with_key(b"portcullis-redis");
        hasher.write(prefix.as_bytes());
        Self { secret: hasher.finish128().as_u128().to_le_bytes() }
    }

    /// Hashes with this secret a hash that others can compute.
    #[must_use]
    pub fn rehash(&self, hash: KeyHash) -> KeyHash {
        KeyHash(SipHasher24::new_with_key(&self.secret).hash(&hash.0.to_le_bytes()).as_u128())
    }

    /// The same key has another hash under each limit, by the name of the limit.
    pub fn hash(&self, limit: &str, key: &Key) -> KeyHash {
        // The name comes after its length, like every part of the key.
        let (length, name, key) = ((limit.len() as u64).to_le_bytes(), limit.as_bytes(), key.as_bytes());
        let hasher = SipHasher24::new_with_key(&self.secret);
        // In one piece, which costs less than pieces that end within a word.
        let mut piece = [0; 96];
        let hash = match piece.get_mut(..length.len() + name.len() + key.len()) {
            Some(piece) => {
                let (start, end) = piece.split_at_mut(length.len() + name.len());
                start[..length.len()].copy_from_slice(&length);
                start[length.len()..].copy_from_slice(name);
                end.copy_from_slice(key);
                hasher.hash(piece)
            }
            None => hasher.hash(&[&length, name, key].concat()),
        };
        KeyHash(hash.as_u128())
    }

    /// Four hexadecimal digits that distinguish values with the same mask.
    pub fn digits(&self, value: &[u8]) -> String {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        hasher.write(value);
        format!("{:04x}", hasher.finish128().h2 & 0xffff)
    }

    /// One of the different values that are counted under a key.
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
    fn a_hash_is_the_same_in_every_version() {
        for part in
            ["", "alice", "a value that is longer than the space for most keys, so that it needs memory of its own"]
        {
            let mut hasher = SipHasher24::new_with_key(&[7; 16]);
            hasher.write(&[5, 0, 0, 0, 0, 0, 0, 0]);
            hasher.write(b"login");
            hasher.write(key(part).as_bytes());
            assert_eq!(KeyHasher::new([7; 16]).hash("login", &key(part)).0, hasher.finish128().as_u128(), "{part}");
        }
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
