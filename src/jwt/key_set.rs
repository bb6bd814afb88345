//! A set of public keys (JWK set, RFC 7517).

use serde_json::Value;
use smallvec::SmallVec;

use super::Algorithm;
use super::Unverified;
use super::public_key::PublicKey;
use super::public_key::UnusableKey;
use super::strict_json;

/// The keys of an issuer that verify tokens. There is at least one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeySet {
    keys: Vec<PublicKey>,
    /// Whether the set has more of a key than may be known to all.
    pub holds_secrets: bool,
}

/// Why a text is no set of keys. Shows no part of a key.
#[derive(Debug, thiserror::Error)]
pub enum InvalidKeySet {
    /// The error of the library could show a part of the text.
    #[error("it is no JSON object, or repeats a name, at line {} column {}", .0.line(), .0.column())]
    NotJson(#[from] serde_json::Error),
    #[error("it has no list `keys`")]
    NoList,
    #[error("its list `keys` is empty")]
    Empty,
    #[error("it has {0} keys, and more than {MAX_KEYS} are none of an issuer")]
    TooMany(usize),
    /// Each key, counted from 1, and why it is not used.
    #[error("none of its keys verifies tokens: {}", list(.0))]
    NoneUsable(Vec<(usize, UnusableKey)>),
}

/// More than this are none of an issuer.
const MAX_KEYS: usize = 100;

/// Keys that are tried for one token. Several only have one name where an issuer renews keys without giving new names.
const MAX_TRIED: usize = 4;

impl KeySet {
    /// Reads a set. Keys that verify nothing, such as those for encryption, are left out.
    pub fn parse(text: &[u8]) -> Result<Self, InvalidKeySet> {
        let set = strict_json::object(text)?;
        let Some(Value::Array(list)) = set.get("keys") else { return Err(InvalidKeySet::NoList) };
        if list.is_empty() {
            return Err(InvalidKeySet::Empty);
        }
        if list.len() > MAX_KEYS {
            return Err(InvalidKeySet::TooMany(list.len()));
        }
        let (mut keys, mut unusable) = (Vec::new(), Vec::new());
        for (number, jwk) in (1..).zip(list) {
            match PublicKey::read(jwk) {
                Ok(key) => keys.push(key),
                Err(reason) => unusable.push((number, reason)),
            }
        }
        if keys.is_empty() {
            return Err(InvalidKeySet::NoneUsable(unusable));
        }
        // The private half of a key is `d`, a shared secret is `k`.
        let holds_secrets = list.iter().any(|jwk| jwk.get("d").is_some() || jwk.get("k").is_some());
        Ok(Self { keys, holds_secrets })
    }

    /// How many keys verify tokens.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// A set has at least one key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys that may have signed a token with this `kid` and algorithm, at most so many as are tried. Those of its name;
    /// where none has it, or the token has none, those without a name too.
    pub(super) fn candidates(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Candidates<'_>, Unverified> {
        let has_name = |key: &&PublicKey| key.id.as_deref() == id;
        let may_be_meant = |key: &&PublicKey| match id {
            None => true,
            Some(_) if self.keys.iter().any(|key| has_name(&key)) => has_name(key),
            Some(_) => key.id.is_none(),
        };
        if let (Some(id), None) = (id, self.keys.iter().find(may_be_meant)) {
            return Err(Unverified::UnknownKey(id.to_owned()));
        }
        let fitting = self.keys.iter().filter(|key| may_be_meant(key) && key.is_for(algorithm));
        let fitting: Candidates<'_> = fitting.take(MAX_TRIED).collect();
        if fitting.is_empty() { Err(Unverified::NoKeyForAlgorithm) } else { Ok(fitting) }
    }
}

/// The keys that are tried for one token.
pub(super) type Candidates<'s> = SmallVec<[&'s PublicKey; MAX_TRIED]>;

fn list(unusable: &[(usize, UnusableKey)]) -> String {
    let words: Vec<_> =
        unusable.iter().take(MAX_NAMED).map(|(number, reason)| format!("key {number}: {reason}")).collect();
    words.join("; ")
}

/// More would not be read.
const MAX_NAMED: usize = 5;
