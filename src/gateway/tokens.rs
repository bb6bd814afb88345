//! Verifies the tokens of requests with the keys that are known now, and remembers those that verify.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hashbrown::HashTable;
use parking_lot::Mutex;
use siphasher::sip128::SipHasher24;
use tokio::sync::Notify;

use crate::rules::jwt;
use crate::rules::jwt::{Claims, KeySet, RequestClaims, TokenPlace, Unverified, Validity};
use crate::wire::head::{FieldName, Fields};
use crate::wire::http_client::RemoteDocument;
use crate::words::clock::Timestamp;

// Verifies the tokens of requests.

/// Verifies the tokens of requests with the keys that are known at the moment. All workers share it.
#[derive(Debug)]
pub struct TokenVerifier {
    place: TokenPlace,
    validity: Validity,
    keys: Arc<LiveKeys>,
    verified: VerifiedTokens,
}

impl TokenVerifier {
    /// The verifier of a configuration. That before stays if nothing is different, with what it has verified.
    pub fn carry_over(settings: &TokenSettings, keys: &Arc<LiveKeys>, before: Option<&Arc<Self>>) -> Arc<Self> {
        let is_same = |before: &&Arc<Self>| {
            Arc::ptr_eq(&before.keys, keys)
                && (&before.place, &before.validity) == (&settings.place, &settings.validity)
        };
        if let Some(before) = before.filter(is_same) {
            return Arc::clone(before);
        }
        Arc::new(Self {
            place: settings.place.clone(),
            validity: settings.validity.clone(),
            keys: Arc::clone(keys),
            verified: VerifiedTokens::default(),
        })
    }

    /// The claims in the tokens of a request. `now` is wall-clock time, as in the tokens.
    pub fn claims(&self, fields: &Fields, now: Timestamp) -> RequestClaims {
        RequestClaims::of(&self.place.presented(fields), |token| self.verify(token, now))
    }

    fn verify(&self, token: &str, now: Timestamp) -> Result<Arc<Claims>, Unverified> {
        let Some(keys) = self.keys.set() else { return Err(jwt::verify_without_keys(token)) };
        let hash = self.verified.hash(token);
        if let Some(claims) = self.verified.get(hash, &keys, now) {
            return Ok(claims);
        }
        match jwt::verify(token, &keys, &self.validity, now) {
            Ok(claims) => {
                let claims = Arc::new(claims);
                self.verified.add(hash, &keys, Arc::clone(&claims));
                Ok(claims)
            }
            Err(reason) => {
                if matches!(reason, Unverified::UnknownKey(_)) {
                    self.keys.miss();
                }
                Err(reason)
            }
        }
    }

    /// The header that tokens stand in, if it is one that the configuration names.
    pub fn header(&self) -> Option<&FieldName> {
        self.place.header()
    }

    /// The keys that are known now, and how their source is.
    pub fn keys(&self) -> &LiveKeys {
        &self.keys
    }
}

// Remembers tokens that were verified, so that a signature is checked once.

const SHARDS: usize = 16;

/// The memory of all tokens, in bytes, about.
const MOST_MEMORY: usize = 32 * 1024 * 1024;

/// The memory of an entry without its claims, in bytes, about.
const ENTRY: usize = 64;

/// Verified tokens by keyed hashes, until they end. All workers share them.
pub struct VerifiedTokens {
    /// Random.
    secret: [u8; 16],
    shards: [Mutex<Shard>; SHARDS],
}

/// A keyed hash of a whole token, with its signature.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TokenHash(u128);

/// Two generations of tokens: used lately, and used before. When the first is full it becomes the second, and the old
/// second is dropped.
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

/// The secret is not shown: a client that knows it can choose tokens that collide.
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

// The keys that are known now.

/// A set of keys, replaced as a whole, and how its source is. All workers share it.
#[derive(Debug, Default)]
pub struct LiveKeys {
    /// `None`: none was fetched yet.
    set: ArcSwapOption<KeySet>,
    /// A token names a key that is not in the set.
    unknown: Notify,
    /// Why the set could not be fetched the last time.
    failure: ArcSwapOption<KeyFailure>,
}

/// Why a set of keys could not be had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyFailure {
    /// Where the set comes from.
    pub source: String,
    pub reason: String,
}

impl LiveKeys {
    pub fn of(set: Arc<KeySet>) -> Self {
        Self { set: ArcSwapOption::new(Some(set)), ..Self::default() }
    }

    /// The set in force.
    pub fn set(&self) -> Option<Arc<KeySet>> {
        self.set.load_full()
    }

    /// Puts a set in force. One that is equal to that in force changes nothing: tokens that were verified stay so.
    pub fn replace(&self, set: KeySet) {
        self.failure.store(None);
        if self.set.load().as_deref() != Some(&set) {
            self.set.store(Some(Arc::new(set)));
        }
    }

    /// The set stays, because there is none to replace it with.
    pub fn fail(&self, failure: KeyFailure) {
        self.failure.store(Some(Arc::new(failure)));
    }

    /// Why the set could not be fetched the last time; `None`: it could.
    pub fn failure(&self) -> Option<Arc<KeyFailure>> {
        self.failure.load_full()
    }

    /// A token names a key that is not in the set: perhaps there is a new one.
    pub(super) fn miss(&self) {
        self.unknown.notify_one();
    }

    /// Waits until a token names a key that is not in the set. Returns at once if one has since the last time.
    pub async fn missed(&self) {
        self.unknown.notified().await;
    }
}

// The settings for tokens.

/// The settings of the `jwt` section.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSettings {
    pub place: TokenPlace,
    pub validity: Validity,
    pub keys: KeySource,
}

/// Where the keys come from.
#[derive(Clone, Debug, PartialEq)]
pub enum KeySource {
    /// A file, read with the configuration.
    File(Arc<KeySet>),
    /// Fetched while the gateway runs.
    Url(RemoteDocument),
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
