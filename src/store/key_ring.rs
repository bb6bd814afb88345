//! The key ring in force, shared by all cores.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::random::random_bytes;
use crate::clock::Timestamp;
use crate::signing::KeyRing;
use crate::signing::KeySeed;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signing::SIGNATURE_LENGTH;
    use crate::signing::key_ring::MAX_KEYS;
    use crate::signing::key_ring::ROTATION_PERIOD;

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
        // What was signed with keys that an emptied Redis has lost stays valid here.
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
