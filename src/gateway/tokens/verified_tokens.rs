//! Remembers tokens that were verified, so that a signature is checked once.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashTable;
use parking_lot::Mutex;
use siphasher::sip128::SipHasher24;

use crate::clock::Timestamp;
use crate::jwt::Claims;
use crate::jwt::KeySet;

/// Verified tokens by keyed hashes, until they end. All workers share them.
pub struct VerifiedTokens {
    /// Random.
    secret: [u8; 16],
    shards: [Mutex<Shard>; SHARDS],
}

/// A keyed hash of a whole token, with its signature.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TokenHash(u128);

/// Two generations: what was used lately, and what was used before. When the first is full it becomes the second, which is
/// forgotten.
#[derive(Debug, Default)]
struct Shard {
    /// The set that verified them.
    keys: Option<Arc<KeySet>>,
    recent: Generation,
    before: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    tokens: HashTable<(TokenHash, Arc<Claims>)>,
    weight: usize,
}

const SHARDS: usize = 16;

/// What all tokens take, in bytes, about.
const MOST_MEMORY: usize = 32 * 1024 * 1024;

/// What an entry takes beside its claims, in bytes, about.
const ENTRY: usize = 64;

impl VerifiedTokens {
    pub fn hash(&self, token: &str) -> TokenHash {
        TokenHash(SipHasher24::new_with_key(&self.secret).hash(token.as_bytes()).as_u128())
    }

    /// The claims of a token that these keys have verified, and that has not ended by `now`.
    pub fn get(&self, token: TokenHash, keys: &Arc<KeySet>, now: Timestamp) -> Option<Arc<Claims>> {
        let mut shard = self.shard(token).lock();
        if !shard.is_of(keys) {
            return None;
        }
        let mut claims = shard.recent.get(token);
        if claims.is_none() {
            claims = shard.before.get(token);
            if let Some(claims) = &claims {
                shard.add(token, Arc::clone(claims));
            }
        }
        let claims = claims?;
        claims.ends.is_none_or(|ends| now < ends).then_some(claims)
    }

    /// Remembers the claims of a token that these keys have verified.
    pub fn add(&self, token: TokenHash, keys: &Arc<KeySet>, claims: Arc<Claims>) {
        let mut shard = self.shard(token).lock();
        if !shard.is_of(keys) {
            *shard = Shard { keys: Some(Arc::clone(keys)), ..Shard::default() };
        }
        shard.add(token, claims);
    }

    fn shard(&self, TokenHash(hash): TokenHash) -> &Mutex<Shard> {
        // The table uses the lower bits.
        &self.shards[(hash >> 120) as usize % SHARDS]
    }
}

impl Default for VerifiedTokens {
    fn default() -> Self {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).expect("the system has random bytes");
        Self { secret, shards: Default::default() }
    }
}

/// Whoever knows the secret can choose tokens that collide.
impl fmt::Debug for VerifiedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedTokens").finish_non_exhaustive()
    }
}

impl Shard {
    fn is_of(&self, keys: &Arc<KeySet>) -> bool {
        self.keys.as_ref().is_some_and(|known| Arc::ptr_eq(known, keys))
    }

    fn add(&mut self, token: TokenHash, claims: Arc<Claims>) {
        if self.recent.weight >= MOST_MEMORY / SHARDS / 2 {
            self.before = std::mem::take(&mut self.recent);
        }
        self.recent.add(token, claims);
    }
}

impl Generation {
    fn get(&self, token: TokenHash) -> Option<Arc<Claims>> {
        self.tokens.find(bucket(token), |(known, _)| *known == token).map(|(_, claims)| Arc::clone(claims))
    }

    fn add(&mut self, token: TokenHash, claims: Arc<Claims>) {
        // Two workers may verify one token at a time.
        if self.get(token).is_none() {
            self.weight += ENTRY + claims.weight();
            self.tokens.insert_unique(bucket(token), (token, claims), |(known, _)| bucket(*known));
        }
    }
}

/// The hash is random already.
fn bucket(TokenHash(hash): TokenHash) -> u64 {
    u64::from_le_bytes(hash.to_le_bytes()[..8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn keys() -> Arc<KeySet> {
        let set = br#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        Arc::new(KeySet::parse(set).expect("a key that can be used"))
    }

    fn claims(ends: Option<Timestamp>) -> Arc<Claims> {
        Arc::new(Claims::new(&serde_json::Map::new(), ends).expect("no claim is too long"))
    }

    #[test]
    fn a_token_is_remembered_until_it_ends_or_the_keys_change() {
        let (tokens, keys, end) = (VerifiedTokens::default(), keys(), Timestamp::from_micros(5));
        let (ending, endless) = (tokens.hash("ending"), tokens.hash("endless"));
        tokens.add(ending, &keys, claims(Some(end)));
        tokens.add(endless, &keys, claims(None));
        let is_known = |token, keys, now| tokens.get(token, keys, now).is_some();
        assert!(is_known(ending, &keys, Timestamp::EPOCH));
        assert!(!is_known(ending, &keys, end));
        assert!(is_known(endless, &keys, end + Duration::from_secs(1)));
        assert!(!is_known(tokens.hash("other"), &keys, Timestamp::EPOCH));
        // An equal set is another one: what it has verified is unknown.
        assert!(!is_known(endless, &self::keys(), end));
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let (tokens, keys) = (VerifiedTokens::default(), keys());
        let used = tokens.hash("used");
        tokens.add(used, &keys, claims(None));
        let weight = ENTRY + claims(None).weight();
        for number in 0..3 * MOST_MEMORY / weight {
            tokens.add(tokens.hash(&number.to_string()), &keys, claims(None));
            if number % 1000 == 0 {
                assert!(tokens.get(used, &keys, Timestamp::EPOCH).is_some());
            }
        }
        let kept: usize =
            tokens.shards.iter().map(|shard| shard.lock()).map(|shard| shard.recent.weight + shard.before.weight).sum();
        assert!(kept <= MOST_MEMORY + SHARDS * weight, "{kept}");
    }
}
