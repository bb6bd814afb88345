//! The key ring in force, shared by all cores.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::rules::key::KeyHash;
use crate::store::bans::{Bans, codec};
use crate::store::denied_until::DeniedUntil;
use crate::store::memory::MemoryStore;
use crate::store::sessions::Sessions;
use crate::store::sessions::codec::is_about_sessions;
use crate::store::slab::process_hasher;
use crate::words::clock::{Clock, Timestamp};
use crate::words::signing::{KeyRing, KeySeed};

/// The key ring in force. It is replaced when a key's time is over and when Redis has new keys.
#[derive(Debug)]
pub struct LiveKeyRing {
    ring: ArcSwap<KeyRing>,
}

impl LiveKeyRing {
    /// With a random key of this process.
    pub fn new(now: Timestamp) -> Self {
        Self { ring: ArcSwap::from_pointee(KeyRing::new(random_seed(now))) }
    }

    /// The ring in force, to verify signatures.
    pub fn load(&self) -> Arc<KeyRing> {
        self.ring.load_full()
    }

    /// The ring in force, to sign: first makes a new key of this process when one is due.
    pub fn load_for_signing(&self, now: Timestamp) -> Arc<KeyRing> {
        if self.ring.load().needs_rotation(now) {
            let seed = random_seed(now);
            self.ring.rcu(|ring| {
                if ring.needs_rotation(now) { Arc::new(ring.rotated(seed.clone())) } else { Arc::clone(ring) }
            });
        }
        self.load()
    }

    /// Takes over the keys of an earlier process, and signs with the newest of them.
    pub fn import(&self, seeds: &[KeySeed], now: Timestamp) {
        self.ring.rcu(|ring| ring.with_own_seeds(seeds, now));
    }

    /// Signs from now on with the newest of the keys that all gateways share. See [`KeyRing::with_shared_seeds`].
    pub fn share(&self, seeds: &[KeySeed], pepper: &[u8]) {
        self.ring.rcu(|ring| ring.with_shared_seeds(seeds, pepper));
    }
}

pub(in crate::store) fn random_seed(made: Timestamp) -> KeySeed {
    KeySeed { made, secret: random_bytes() }
}

// Random bytes of the operating system.

pub(super) fn random_bytes<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes
}

// Applies the resets of all gateways in this process.

const DIGITS: usize = 32;

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
        if codec::is_about_bans(message) {
            return codec::apply_message(self.local.bans(), message, &self.key_ring.load());
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

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::rules::decision::{Batch, Charge};
    use crate::rules::limit::Rule;
    use crate::store::memory::MemorySettings;
    use crate::words::clock::ManualClock;
    use crate::words::signing::{MAX_KEYS, ROTATION_PERIOD, SIGNATURE_LENGTH};

    #[test]
    fn a_reset_of_one_gateway_resets_the_key_in_another() {
        let local = Arc::new(MemoryStore::new(
            &MemorySettings { max_keys: 100, max_sessions: 1000, snapshot: None },
            Clock::Manual(ManualClock::default()),
        ));
        let resets = Resets::new(&Arc::new(DeniedUntil::new(100)), &local, local.key_ring());
        let rates = "1/day".parse().expect("a rate");
        let rule = Rule::Rates { algorithm: crate::rules::limit::Algorithm::default(), rates, cost: NonZeroU32::MIN };
        let keys = [KeyHash(7), KeyHash(u128::MAX), KeyHash(0)];
        let charges = keys.iter().map(|key| Charge::new(0, local_key(*key), &rule));
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

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
    const MESSAGE: &[&[u8]] = &[b"alice", b"laptop"];

    #[test]
    fn hashes_for_operators_are_made_with_the_seeds_and_the_password_of_the_gateways() {
        let (one, other, stranger) = (LiveKeyRing::new(NOW), LiveKeyRing::new(NOW), LiveKeyRing::new(NOW));
        assert_ne!(one.load().display_secret(), other.load().display_secret());
        let seeds = [random_seed(NOW)];
        one.share(&seeds, b"password");
        other.share(&seeds, b"password");
        stranger.share(&seeds, b"");
        assert_eq!(one.load().display_secret(), other.load().display_secret());
        assert_ne!(one.load().display_secret(), stranger.load().display_secret());
    }
    #[test]
    fn a_ring_verifies_its_own_signatures_only() {
        let ring = LiveKeyRing::new(NOW);
        let mac = ring.load_for_signing(NOW).sign("device", MESSAGE);
        assert!(ring.load().verify("device", MESSAGE, &mac));
        assert!(!ring.load().verify("challenge", MESSAGE, &mac));
        assert!(!ring.load().verify("device", &[b"alicelaptop"], &mac));
        assert!(!ring.load().verify("device", &[b"alice", b"laptop", b""], &mac));
        assert!(!LiveKeyRing::new(NOW).load().verify("device", MESSAGE, &mac));
        for position in 0..SIGNATURE_LENGTH {
            let mut forged = mac;
            forged.0[position] ^= 1;
            assert!(!ring.load().verify("device", MESSAGE, &forged), "{position}");
        }
    }

    #[test]
    fn a_new_key_signs_when_it_is_due_and_old_keys_stay_valid_for_a_while() {
        let ring = LiveKeyRing::new(NOW);
        let first = ring.load_for_signing(NOW).sign("device", MESSAGE);
        assert_eq!(ring.load_for_signing(NOW + ROTATION_PERIOD * 9 / 10).sign("device", MESSAGE), first);
        let periods = u32::try_from(MAX_KEYS).unwrap();
        for number in 1..periods {
            assert_ne!(ring.load_for_signing(NOW + ROTATION_PERIOD * number).sign("device", MESSAGE), first);
            assert!(ring.load().verify("device", MESSAGE, &first));
        }
        ring.load_for_signing(NOW + ROTATION_PERIOD * periods).sign("device", MESSAGE);
        assert!(!ring.load().verify("device", MESSAGE, &first));
        assert_eq!(ring.load().own_seeds().len(), MAX_KEYS);
    }

    #[test]
    fn a_restart_knows_the_keys_again() {
        let (before, after) = (LiveKeyRing::new(NOW), LiveKeyRing::new(NOW));
        let old = before.load_for_signing(NOW).sign("device", MESSAGE);
        let new = before.load_for_signing(NOW + ROTATION_PERIOD).sign("device", MESSAGE);
        after.import(&before.load().own_seeds(), NOW + ROTATION_PERIOD);
        assert!(after.load().verify("device", MESSAGE, &old));
        assert_eq!(after.load_for_signing(NOW).sign("device", MESSAGE), new);
        // Nothing to take over leaves what there is.
        after.import(&[], NOW);
        assert!(after.load().verify("device", MESSAGE, &new));
    }

    #[test]
    fn shared_keys_sign_as_soon_as_they_are_known_and_need_the_pepper() {
        let (one, other, thief) = (LiveKeyRing::new(NOW), LiveKeyRing::new(NOW), LiveKeyRing::new(NOW));
        let own = one.load_for_signing(NOW).sign("device", MESSAGE);
        let seeds = [random_seed(NOW), random_seed(NOW + ROTATION_PERIOD)];
        one.share(&seeds, b"password");
        other.share(&seeds, b"password");
        thief.share(&seeds, b"");
        let mac = one.load_for_signing(NOW).sign("device", MESSAGE);
        assert!(other.load().verify("device", MESSAGE, &mac));
        assert!(!thief.load().verify("device", MESSAGE, &mac));
        // What was signed during the outage of Redis stays valid here.
        assert!(one.load().verify("device", MESSAGE, &own) && !other.load().verify("device", MESSAGE, &own));
        // Only Redis rotates shared keys.
        assert_eq!(one.load_for_signing(NOW + ROTATION_PERIOD * 9).sign("device", MESSAGE), mac);
        // A signature stays valid here when an emptied Redis has lost its key.
        other.share(&[random_seed(NOW)], b"password");
        assert_ne!(other.load_for_signing(NOW).sign("device", MESSAGE), mac);
        assert!(other.load().verify("device", MESSAGE, &mac));
    }

    #[test]
    fn debug_output_shows_no_key() {
        let ring = LiveKeyRing::new(NOW);
        assert!(!format!("{ring:?} {:?}", ring.load().own_seeds()).contains("secret"));
        assert!(format!("{ring:?}").contains("SigningKey(***)"));
    }
}
