//! Keyed hashes of keys for stores and logs. They do not reveal a value.

use std::borrow::Cow;
use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher24};
use smallvec::{SmallVec, smallvec};

use super::KeySpec;
use crate::rules::key::extract::{MAX_KEYS, MAX_VALUES};
use crate::rules::key::{KeyPart, Selector, TooManyValues};

/// So many hexadecimal digits at the beginning of a hash may say whose it is.
pub const CLIENT_DIGITS: usize = 6;

/// No limit has a name like this: names have no space.
const CLIENTS: &str = "clients of keys";

/// A keyed hash of the name of a limit and a key. Stores count under it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct KeyHash(pub u128);

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

    /// All gateways with one prefix in one Redis have the same hasher, so they need not exchange a secret.
    ///
    /// Everyone who knows the prefix can compute these hashes. Tables of this process that clients fill therefore use
    /// [`KeyHasher::rehash`].
    pub fn shared(prefix: &str) -> Self {
        let mut hasher = SipHasher24::new_with_key(b"portcullis-redis");
        hasher.write(prefix.as_bytes());
        Self::new(hasher.finish128().as_u128().to_le_bytes())
    }

    /// Another hasher: its hashes of keys with a client all begin with the digits of that client, so hashes show which
    /// keys belong to one client.
    #[must_use]
    pub fn beginning_with_client(self) -> Self {
        Self { begins_with_client: true, ..self }
    }

    /// The hash that a key of a limit is counted under.
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

    /// Hashes a key with the name of its limit, so that each limit has its own hash of the same key.
    pub fn hash(&self, limit: &str, key: &Key) -> KeyHash {
        // The name comes after its length, like every part of the key.
        let (length, name, key) = ((limit.len() as u64).to_le_bytes(), limit.as_bytes(), key.as_bytes());
        let hasher = SipHasher24::new_with_key(&self.secret);
        // Hashed in one piece: the hasher is slower with pieces that end within a machine word.
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

// The values of a key as one sequence of bytes.

/// The values of one key, each after its length, so that different values never make the same key.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Key(SmallVec<[u8; 40]>);

impl Key {
    pub fn push(&mut self, part: &[u8]) {
        // Seven bits of the length in each byte, the lowest first. The last byte is below 128.
        let mut length = part.len();
        while length >= 0x80 {
            self.0.push(length.to_le_bytes()[0] | 0x80);
            length >>= 7;
        }
        self.0.push(length.to_le_bytes()[0]);
        self.0.extend_from_slice(part);
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The parts, in the order in which they were pushed.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let digits = rest.iter().position(|&byte| byte < 0x80)? + 1;
            let length = rest[..digits].iter().rev().fold(0, |length, &byte| (length << 7) | usize::from(byte & 0x7f));
            let (part, after) = rest[digits..].split_at(length);
            rest = after;
            Some(part)
        })
    }
}

// Descriptors, and the keys that they are counted under.

/// A descriptor: entries of a name and a value that a proxy asks about instead of a request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Descriptor {
    pub entries: Vec<DescriptorEntry>,
}

/// An entry of a descriptor. One without a value has the empty value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DescriptorEntry {
    pub name: String,
    pub value: String,
}

impl Descriptor {
    /// The values of all entries of this name.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.entries.iter().filter(move |entry| entry.name == name).map(|entry| &*entry.value)
    }

    /// Every key that `spec` makes of it: all combinations of the values of its parts. `None`: it lacks an entry.
    pub fn keys(&self, spec: &KeySpec) -> Result<Option<SmallVec<[Key; 1]>>, TooManyValues> {
        let mut keys: SmallVec<[Key; 1]> = smallvec![Key::default()];
        for part in &spec.parts {
            let values = self.different_values(part)?;
            if values.len() * keys.len() > MAX_KEYS {
                return Err(TooManyValues);
            }
            let with_values = keys.iter().flat_map(|key| {
                values.iter().map(move |value| {
                    let mut key = key.clone();
                    key.push(value.as_bytes());
                    key
                })
            });
            keys = with_values.collect();
        }
        Ok(Some(keys).filter(|keys| !keys.is_empty()))
    }

    /// The different values of a part in it. None where it lacks the entry.
    pub fn different_values(&self, part: &KeyPart) -> Result<SmallVec<[Cow<'_, str>; 1]>, TooManyValues> {
        let mut different = SmallVec::new();
        let Selector::Descriptor(name) = &part.selector else { return Ok(different) };
        let mut sent: SmallVec<[&str; 1]> = SmallVec::new();
        for entry in self.entries.iter().filter(|entry| *entry.name == **name) {
            let value = entry.value.as_str();
            for reading in part.as_compared(value).map_err(|_| TooManyValues)? {
                if !different.contains(&reading) {
                    different.push(reading);
                }
            }
            if !sent.contains(&value) {
                sent.push(value);
            }
        }
        let is_too_many = if part.has_readings() { sent.len() > MAX_VALUES } else { different.len() > MAX_VALUES };
        if is_too_many { Err(TooManyValues) } else { Ok(different) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::key::{KeyPart, Spelling};

    fn key(parts: &[Vec<u8>]) -> Key {
        let mut key = Key::default();
        for part in parts {
            key.push(part);
        }
        key
    }

    #[test]
    fn parts_that_join_to_the_same_text_are_different_keys() {
        let of = |parts: &[&str]| key(&parts.iter().map(|part| part.as_bytes().to_vec()).collect::<Vec<_>>());
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["", "a"]), of(&["a", ""]));
        assert_ne!(of(&[""]), of(&[]));
        assert_ne!(of(&["a\u{1}b"]), of(&["a", "b"]));
    }

    proptest! {
        #[test]
        fn every_key_tells_its_parts_so_no_two_tuples_share_one(
            tuple in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
        ) {
            prop_assert_eq!(key(&tuple).parts().map(<[u8]>::to_vec).collect::<Vec<_>>(), tuple);
        }
    }

    fn spec(names: &[&str]) -> KeySpec {
        let part = |name: &&str| KeyPart { selector: Selector::Descriptor((*name).into()), spelling: Spelling::Usual };
        KeySpec { parts: names.iter().map(part).collect(), ..KeySpec::default() }
    }

    #[track_caller]
    fn check(entries: &[(&str, &str)], names: &[&str], expected: Option<&[&[&str]]>) {
        let entry = |(name, value): &(&str, &str)| DescriptorEntry { name: (*name).into(), value: (*value).into() };
        let descriptor = Descriptor { entries: entries.iter().map(entry).collect() };
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let keys = descriptor.keys(&spec(names)).expect("few values");
        let keys = keys.map(|keys| keys.iter().map(|key| key.parts().map(text).collect()).collect::<Vec<Vec<_>>>());
        let expected =
            expected.map(|keys| keys.iter().map(|key| key.iter().map(|part| (*part).into()).collect()).collect());
        assert_eq!(keys, expected);
    }

    #[test]
    fn a_key_has_the_values_of_its_entries_and_no_others() {
        check(&[("a", "1"), ("b", "2")], &["b", "a"], Some(&[&["2", "1"]]));
        check(&[("a", "1"), ("b", "2")], &["a"], Some(&[&["1"]]));
        check(&[("a", "1")], &[], Some(&[&[]]));
        check(&[("a", "1")], &["A"], None);
        check(&[("a", "1")], &["a", "b"], None);
    }

    #[test]
    fn an_entry_without_a_value_is_there_and_empty() {
        check(&[("a", "")], &["a"], Some(&[&[""]]));
    }

    #[test]
    fn an_entry_that_comes_twice_counts_against_both_values() {
        check(&[("a", "1"), ("a", "2"), ("a", "1")], &["a"], Some(&[&["1"], &["2"]]));
    }

    #[test]
    fn more_values_than_an_honest_proxy_sends_are_refused() {
        let entries = (0..9).map(|value| DescriptorEntry { name: "a".into(), value: value.to_string() });
        assert_eq!(Descriptor { entries: entries.collect() }.keys(&spec(&["a"])), Err(TooManyValues));
    }

    fn key_hashed(part: &str) -> Key {
        key_of(&[part])
    }

    fn key_of(parts: &[&str]) -> Key {
        let mut key = Key::default();
        for part in parts {
            key.push(part.as_bytes());
        }
        key
    }

    fn spec_hashed(selectors: &[&str]) -> KeySpec {
        let part =
            |selector: &&str| KeyPart { selector: selector.parse().expect(selector), spelling: Spelling::default() };
        KeySpec { parts: selectors.iter().map(part).collect(), ..KeySpec::default() }
    }

    #[test]
    fn limits_do_not_share_a_key() {
        let hasher = KeyHasher::new([7; 16]);
        assert_eq!(hasher.hash("login", &key_hashed("alice")), hasher.hash("login", &key_hashed("alice")));
        assert_ne!(hasher.hash("login", &key_hashed("alice")), hasher.hash("login", &key_hashed("bob")));
        assert_ne!(hasher.hash("login", &key_hashed("alice")), hasher.hash("api", &key_hashed("alice")));
        assert_ne!(hasher.hash("a", &key_hashed("alice")), hasher.hash("a\u{5}alice", &Key::default()));
    }

    #[test]
    fn a_hash_is_the_same_in_every_version() {
        for part in
            ["", "alice", "a value that is longer than the space for most keys, so that it needs memory of its own"]
        {
            let mut hasher = SipHasher24::new_with_key(&[7; 16]);
            hasher.write(&[5, 0, 0, 0, 0, 0, 0, 0]);
            hasher.write(b"login");
            hasher.write(key_hashed(part).as_bytes());
            assert_eq!(
                KeyHasher::new([7; 16]).hash("login", &key_hashed(part)).0,
                hasher.finish128().as_u128(),
                "{part}"
            );
        }
    }

    #[test]
    fn another_secret_makes_other_hashes() {
        let hash = |secret| KeyHasher::new(secret).hash("login", &key_hashed("alice"));
        assert_ne!(hash([1; 16]), hash([2; 16]));
    }

    #[test]
    fn gateways_of_one_prefix_agree_and_others_do_not() {
        let hash = |prefix| KeyHasher::shared(prefix).hash("login", &key_hashed("alice"));
        assert_eq!(hash("portcullis"), hash("portcullis"));
        assert_ne!(hash("portcullis"), hash("staging"));
    }

    #[test]
    fn all_keys_of_one_client_begin_alike_where_that_is_asked_for() {
        let (alone, named) = (spec_hashed(&["client_ip"]), spec_hashed(&["header.x-key", "client_ip"]));
        let other = spec_hashed(&["header.x-key"]);
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
        let hash = KeyHasher::shared("portcullis").hash("login", &key_hashed("alice"));
        let rehash = |secret| KeyHasher::new(secret).rehash(hash);
        assert_eq!(rehash([1; 16]), rehash([1; 16]));
        assert_ne!(rehash([1; 16]), rehash([2; 16]));
        assert_ne!(rehash([1; 16]), hash);
    }
}
