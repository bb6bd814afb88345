//! Keyed hashes of keys for stores and logs. They do not reveal a value.

use std::hash::Hasher;

use serde::Deserialize;
use serde::Serialize;
use siphasher::sip128::Hasher128;
use siphasher::sip128::SipHasher24;

use super::Key;
use super::KeySpec;

/// A keyed hash of the name of a limit and a key. Stores count under it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct KeyHash(pub u128);

/// So many hexadecimal digits at the beginning of a hash may say whose it is.
pub const CLIENT_DIGITS: usize = 6;

/// Hashes keys with a secret, so that no client can choose keys that collide.
#[derive(Clone)]
pub struct KeyHasher {
    secret: [u8; 16],
    /// All keys of one client begin with the same [`CLIENT_DIGITS`].
    begins_with_client: bool,
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
        Self { secret, begins_with_client: false }
    }

    /// The same for all gateways with one prefix in one Redis, so that they need not exchange a secret.
    ///
    /// Everyone who knows the prefix can compute these hashes. Tables of this process that clients fill therefore use
    /// [`KeyHasher::rehash`].
    pub fn shared(prefix: &str) -> Self {
        let mut hasher = SipHasher24::new_with_key(b"portcullis-redis");
        hasher.write(prefix.as_bytes());
        Self::new(hasher.finish128().as_u128().to_le_bytes())
    }

    /// Another hasher, whose hashes of keys with a client all begin with the digits of that client. Whoever sees hashes then sees
    /// which of them belong to one client.
    #[must_use]
    pub fn beginning_with_client(self) -> Self {
        Self { begins_with_client: true, ..self }
    }

    /// What a key of a limit is counted under.
    pub fn counted(&self, limit: &str, spec: &KeySpec, key: &Key) -> KeyHash {
        let hash = self.hash(limit, key);
        match spec.client_of(key) {
            Some(client) if self.begins_with_client => {
                let mut of_client = Key::default();
                of_client.push(client);
                hash.beginning_as(self.hash(CLIENTS, &of_client))
            }
            Some(_) | None => hash,
        }
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

impl KeyHash {
    /// This hash, with the first [`CLIENT_DIGITS`] of another one.
    fn beginning_as(self, other: Self) -> Self {
        const REST: u128 = u128::MAX >> (4 * CLIENT_DIGITS);
        Self(other.0 & !REST | self.0 & REST)
    }
}

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHasher(***)")
    }
}

/// No limit has a name like this: names have no space.
const CLIENTS: &str = "clients of keys";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyPart;
    use crate::key::Spelling;

    fn key(part: &str) -> Key {
        key_of(&[part])
    }

    fn key_of(parts: &[&str]) -> Key {
        let mut key = Key::default();
        for part in parts {
            key.push(part.as_bytes());
        }
        key
    }

    fn spec(selectors: &[&str]) -> KeySpec {
        let part =
            |selector: &&str| KeyPart { selector: selector.parse().expect(selector), spelling: Spelling::default() };
        KeySpec { parts: selectors.iter().map(part).collect(), ..KeySpec::default() }
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
    fn all_keys_of_one_client_begin_alike_where_that_is_asked_for() {
        let (alone, named) = (spec(&["client_ip"]), spec(&["header.x-key", "client_ip"]));
        let other = spec(&["header.x-key"]);
        let beginning = |hash: KeyHash| hash.0 >> (128 - 4 * CLIENT_DIGITS);
        let (by_key, by_client) =
            (KeyHasher::shared("portcullis"), KeyHasher::shared("portcullis").beginning_with_client());
        let beginnings = |hasher: &KeyHasher| {
            [
                hasher.counted("pace", &alone, &key_of(&["here"])),
                hasher.counted("login", &named, &key_of(&["alice", "here"])),
                hasher.counted("login", &named, &key_of(&["bob", "here"])),
                hasher.counted("login", &named, &key_of(&["alice", "there"])),
                hasher.counted("api", &other, &key_of(&["here"])),
            ]
            .map(beginning)
        };
        let [pace, alice, bob, elsewhere, no_client] = beginnings(&by_client);
        assert_eq!([pace, pace], [alice, bob]);
        assert!(pace != elsewhere && pace != no_client);
        let [pace, alice, bob, ..] = beginnings(&by_key);
        assert!(pace != alice && alice != bob);
        assert_eq!(beginnings(&by_key)[4], no_client);
        // What follows still tells them apart.
        let of = |name: &str| by_client.counted("login", &named, &key_of(&[name, "here"]));
        assert_ne!(of("alice"), of("bob"));
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
