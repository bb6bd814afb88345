//! Applies the resets of all gateways in this process.

use super::process_hasher::process_hasher;
use std::sync::Arc;

use super::bans::Bans;
use super::bans::message;
use super::denied_until::DeniedUntil;
use super::key_ring::LiveKeyRing;
use super::memory::MemoryStore;
use super::sessions::Sessions;
use super::sessions::message::is_about_sessions;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::key::KeyHash;

/// The tables of this process in which a reset removes keys.
///
/// Redis publishes resets as text: the hashes of the keys, 32 hexadecimal digits each, separated by spaces. A key with
/// a `+` before it was not reset: it had no room, and has some again. Before all keys stands an `@` with the time of
/// the server in us: later charges were not reset.
#[derive(Clone, Debug)]
pub struct Resets {
    denied: Arc<DeniedUntil>,
    local: Arc<MemoryStore>,
    /// Decrypts what bans tell only gateways.
    key_ring: Arc<LiveKeyRing>,
}

impl Resets {
    pub fn new(denied: &Arc<DeniedUntil>, local: &Arc<MemoryStore>, key_ring: &Arc<LiveKeyRing>) -> Self {
        Self { denied: Arc::clone(denied), local: Arc::clone(local), key_ring: Arc::clone(key_ring) }
    }

    /// Applies a message. Words that are not keys are ignored.
    pub fn apply_message(&self, message: &[u8]) {
        if message::is_about_bans(message) {
            return message::apply_message(self.local.bans(), message, &self.key_ring.load());
        }
        if is_about_sessions(message) {
            return self.sessions().apply_message(message, self.clock().now());
        }
        let mut until = None;
        for word in message.split(|byte| *byte == b' ') {
            match word.split_first() {
                Some((b'@', digits)) => until = moment_of(digits),
                Some((b'+', digits)) => key_of(digits).into_iter().for_each(|key| self.reopened(key)),
                _ => key_of(word).into_iter().for_each(|key| self.reset(key, until)),
            }
        }
    }

    /// The key has room again, because a charge was taken back: the next request asks Redis.
    pub fn reopened(&self, key: KeyHash) {
        self.denied.reset(local_key(key));
    }

    /// The bans of this process, which come on the same channel.
    pub(super) fn bans(&self) -> &Arc<Bans> {
        self.local.bans()
    }

    /// The sessions of this process, which come on the same channel.
    pub(super) fn sessions(&self) -> &Arc<Sessions> {
        self.local.sessions()
    }

    pub(super) fn clock(&self) -> &Clock {
        self.local.clock()
    }

    /// Resets what Redis has charged to a key up to `until`, by its clock, if that is known.
    pub fn reset(&self, key: KeyHash, until: Option<Timestamp>) {
        let key = local_key(key);
        self.denied.reset(key);
        self.local.reset_now(key, until);
    }

    /// This process receives every reset, ban and session from now on. It may have missed earlier ones.
    pub fn subscribed(&self) {
        self.denied.subscribed();
        self.bans().set_subscribed(true);
        self.sessions().set_subscribed(true);
    }

    /// A server may have lost its keys.
    pub fn server_emptied(&self) {
        self.denied.server_emptied();
        self.bans().request_sync();
        self.sessions().request_sync();
    }

    /// This process does not receive resets, bans and sessions any more.
    pub fn unsubscribed(&self) {
        self.denied.unsubscribed();
        self.bans().set_subscribed(false);
        self.sessions().set_subscribed(false);
    }
}

/// The key under which the tables of this process have a shared key: hashed with a secret, so that no client can choose
/// keys that collide in them.
pub fn local_key(key: KeyHash) -> KeyHash {
    process_hasher().rehash(key)
}

fn key_of(word: &[u8]) -> Option<KeyHash> {
    let digits = std::str::from_utf8(word).ok().filter(|digits| digits.len() == DIGITS)?;
    // The parser would accept a sign.
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u128::from_str_radix(digits, 16).ok().filter(|_| are_digits).map(KeyHash)
}

fn moment_of(word: &[u8]) -> Option<Timestamp> {
    let digits = std::str::from_utf8(word).ok().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))?;
    digits.parse().ok().map(Timestamp::from_micros)
}

const DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::clock::ManualClock;
    use crate::decision::Batch;
    use crate::decision::Charge;
    use crate::decision::batch::Force;
    use crate::decision::batch::Items;
    use crate::limit::Count;
    use crate::limit::OnFailure;
    use crate::limit::Rule;
    use crate::store::memory::Settings;

    #[test]
    fn a_reset_of_one_gateway_resets_the_key_in_another() {
        let local = Arc::new(MemoryStore::new(
            &Settings { max_keys: 100, max_sessions: 1000, snapshot: None },
            Clock::Manual(ManualClock::default()),
        ));
        let resets = Resets::new(&Arc::new(DeniedUntil::new(100)), &local, local.key_ring());
        let rates = "1/day".parse().expect("a rate");
        let rule = Rule::Rates { algorithm: crate::limit::Algorithm::default(), rates, cost: NonZeroU32::MIN };
        let keys = [KeyHash(7), KeyHash(u128::MAX), KeyHash(0)];
        let charges = keys.iter().map(|key| Charge {
            limit: 0,
            key: local_key(*key),
            rule: &rule,
            count: Count::Requests,
            force: Force::Binding,
            on_failure: OnFailure::Local,
            items: Items::new(),
            unless_known: false,
            is_free: false,
            leases: false,
        });
        local.decide_now(&Batch { charges: charges.collect(), ..Batch::default() });
        assert_eq!(local.len(), 3);
        let message = |before: &str, keys: &[KeyHash]| {
            keys.iter().map(|key| format!("{before}{:032x}", key.0)).collect::<Vec<_>>().join(" ")
        };
        // A key that only has room again keeps its counts.
        resets.apply_message(message("+", &keys).as_bytes());
        assert_eq!(local.len(), 3);
        resets.apply_message(message("", &keys[1..]).as_bytes());
        assert_eq!(local.len(), 1);
        resets.apply_message(b"");
        resets.apply_message(b"7 \xff 0000000000000000000000000000000g ++000000000000000000000000000007");
        assert_eq!(local.len(), 1);
        resets.apply_message(format!("@1700000000000000 {}", message("", &keys)).as_bytes());
        assert_eq!(local.len(), 0);
    }

    proptest! {
        #[test]
        fn a_key_is_so_many_digits_and_a_moment_is_digits_alone(key in any::<u128>(), word in "[0-9a-f+ -]{0,34}") {
            prop_assert_eq!(key_of(format!("{key:032x}").as_bytes()), Some(KeyHash(key)));
            let again = key_of(word.as_bytes()).map(|key| format!("{:032x}", key.0));
            prop_assert!(again.is_none_or(|again| again == word));
            prop_assert!(moment_of(word.as_bytes()).is_none() || word.bytes().all(|byte| byte.is_ascii_digit()));
        }
    }
}
