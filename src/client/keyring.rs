//! What the gateway signs: words handed to a client, which it can bring back and nobody else can make.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

use crate::clock::Timestamp;

/// The keys of a process, or of all gateways on one Redis: signs with the newest, and believes the older ones too.
#[derive(Debug)]
pub struct KeyRing {
    keys: ArcSwap<SigningKeys>,
}

/// A key as it is kept: in a snapshot on disk, or in Redis.
#[derive(Clone, Eq, PartialEq)]
pub struct KeySeed {
    /// When it was made, by the clock of whoever keeps it.
    pub made: Timestamp,
    pub secret: [u8; 32],
}

/// A signature: which key made it, and the keyed hash.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Signature(pub [u8; SIGNATURE_LENGTH]);

/// 4 bytes that name a key, 32 of HMAC-SHA256.
pub const SIGNATURE_LENGTH: usize = KEY_NAME + 32;

/// After this a new key signs.
pub const PERIOD: Duration = Duration::from_secs(60 * 24 * 3600);

/// So many keys are kept: what is signed is believed for 420 days at least, longer than browsers keep cookies.
pub const MAX_KEYS: usize = 8;

const KEY_NAME: usize = 4;

#[derive(Clone, Debug, Default)]
struct SigningKeys {
    /// Those of all gateways on one Redis, the newest first. While there are any, they sign.
    shared: Vec<SigningKey>,
    /// Those of this process, the newest first.
    own: Vec<SigningKey>,
}

#[derive(Clone)]
struct SigningKey {
    name: [u8; KEY_NAME],
    hmac: hmac::Key,
    shown: [u8; 16],
    seed: KeySeed,
}

impl KeyRing {
    /// With a random key of this process.
    pub fn new(now: Timestamp) -> Self {
        let own = vec![SigningKey::of(KeySeed::random(now), b"")];
        Self { keys: ArcSwap::from_pointee(SigningKeys { shared: Vec::new(), own }) }
    }

    /// Signs a message of several parts, which are told apart by their lengths. What is signed for one purpose is
    /// nothing for another. A key whose time is over gives way to a new one first.
    pub fn sign(&self, now: Timestamp, purpose: &str, message: &[&[u8]]) -> Signature {
        self.rotate(now);
        let keys = self.keys.load();
        // There is always a key of our own.
        let key = keys.all().next().expect("a ring has a key");
        key.mac(purpose, message)
    }

    /// Whether a key of this ring signed this for that purpose.
    pub fn verify(&self, purpose: &str, message: &[&[u8]], mac: &Signature) -> bool {
        let expected = self.sign_like(mac, purpose, message);
        expected.is_some_and(|expected| verify_slices_are_equal(&expected.0, &mac.0).is_ok())
    }

    /// Signs with the key that another signature was made with. `None`: it is not, or no longer, on this ring.
    pub fn sign_like(&self, other: &Signature, purpose: &str, message: &[&[u8]]) -> Option<Signature> {
        let keys = self.keys.load();
        let key = keys.all().find(|key| other.0.starts_with(&key.name))?;
        Some(key.mac(purpose, message))
    }

    /// The secret that hashes are made with which people see: the same for all gateways that share the ring, as long as
    /// one key signs.
    pub fn shown(&self) -> [u8; 16] {
        self.keys.load().all().next().expect("a ring has a key").shown
    }

    /// Makes a new key of this process where the newest is older than [`PERIOD`], and lets the oldest go. Keys that are
    /// shared are made by whoever keeps them.
    fn rotate(&self, now: Timestamp) {
        let is_due = |keys: &SigningKeys| {
            keys.shared.is_empty() && keys.own.first().is_some_and(|key| now.since(key.seed.made) >= PERIOD)
        };
        if !is_due(&self.keys.load()) {
            return;
        }
        let next = SigningKey::of(KeySeed::random(now), b"");
        self.keys.rcu(|keys| {
            let mut keys = SigningKeys::clone(keys);
            if is_due(&keys) {
                keys.own.insert(0, next.clone());
                keys.own.truncate(MAX_KEYS);
            }
            keys
        });
    }

    /// The keys of this process, the newest first: what a restart is to know again.
    pub fn export(&self) -> Vec<KeySeed> {
        self.keys.load().own.iter().map(|key| key.seed.clone()).collect()
    }

    /// Takes the keys of an earlier process over, and signs with the newest of them. Those made in the future count as
    /// made now.
    pub fn import(&self, seeds: &[KeySeed], now: Timestamp) {
        let own = keys(seeds.iter().map(|seed| KeySeed { made: seed.made.min(now), ..seed.clone() }), b"");
        if !own.is_empty() {
            self.keys.rcu(|keys| Arc::new(SigningKeys { own: own.clone(), ..SigningKeys::clone(keys) }));
        }
    }

    /// Signs from now on with the newest of the keys that all gateways share, and believes what any of them signed.
    /// `pepper` is what only the gateways know: who reads the seeds alone has no key. Shared keys that were known before
    /// and are lost, with a Redis that keeps nothing, are believed here to the end of the process.
    pub fn share(&self, seeds: &[KeySeed], pepper: &[u8]) {
        let shared = keys(seeds.iter().cloned(), pepper);
        self.keys.rcu(|keys| {
            let is_lost = |key: &&SigningKey| !shared.iter().any(|kept| kept.name == key.name);
            let own = keys.shared.iter().filter(is_lost).chain(&keys.own).take(MAX_KEYS).cloned();
            SigningKeys { own: own.collect(), shared: shared.clone() }
        });
    }
}

fn keys(seeds: impl Iterator<Item = KeySeed>, pepper: &[u8]) -> Vec<SigningKey> {
    let mut keys: Vec<SigningKey> = seeds.map(|seed| SigningKey::of(seed, pepper)).collect();
    keys.sort_by_key(|key| std::cmp::Reverse(key.seed.made));
    keys.truncate(MAX_KEYS);
    keys
}

impl Signature {
    /// Whether one key made both.
    pub fn is_by_key_of(&self, other: &Self) -> bool {
        self.0[..KEY_NAME] == other.0[..KEY_NAME]
    }

    /// The keyed hash alone.
    pub fn hash(&self) -> &[u8] {
        &self.0[KEY_NAME..]
    }
}

impl KeySeed {
    pub fn random(made: Timestamp) -> Self {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the system has random bytes");
        Self { made, secret }
    }
}

impl SigningKeys {
    fn all(&self) -> impl Iterator<Item = &SigningKey> {
        self.shared.iter().chain(&self.own)
    }
}

impl SigningKey {
    fn of(seed: KeySeed, pepper: &[u8]) -> Self {
        let secret = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &seed.secret), pepper);
        let hmac = hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref());
        let mut name = [0; KEY_NAME];
        name.copy_from_slice(&hmac::sign(&hmac, b"the name of this key").as_ref()[..KEY_NAME]);
        let mut shown = [0; 16];
        shown.copy_from_slice(&hmac::sign(&hmac, b"what hashes that people see are made with").as_ref()[..16]);
        Self { name, hmac, shown, seed }
    }

    fn mac(&self, purpose: &str, message: &[&[u8]]) -> Signature {
        let mut context = hmac::Context::with_key(&self.hmac);
        for part in [purpose.as_bytes()].iter().chain(message) {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut mac = [0; SIGNATURE_LENGTH];
        mac[..KEY_NAME].copy_from_slice(&self.name);
        mac[KEY_NAME..].copy_from_slice(context.sign().as_ref());
        Signature(mac)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(***)")
    }
}

impl fmt::Debug for KeySeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySeed(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    #[test]
    fn hashes_that_people_see_are_made_with_what_gateways_share_and_nobody_else_has() {
        let (one, other, stranger) = (KeyRing::new(NOW), KeyRing::new(NOW), KeyRing::new(NOW));
        assert_ne!(one.shown(), other.shown());
        let seeds = [KeySeed::random(NOW)];
        one.share(&seeds, b"password");
        other.share(&seeds, b"password");
        stranger.share(&seeds, b"");
        assert_eq!(one.shown(), other.shown());
        assert_ne!(one.shown(), stranger.shown());
    }
    const MESSAGE: &[&[u8]] = &[b"alice", b"laptop"];

    #[test]
    fn what_a_ring_signed_it_believes_and_nothing_else() {
        let ring = KeyRing::new(NOW);
        let mac = ring.sign(NOW, "device", MESSAGE);
        assert!(ring.verify("device", MESSAGE, &mac));
        assert!(!ring.verify("challenge", MESSAGE, &mac));
        assert!(!ring.verify("device", &[b"alicelaptop"], &mac));
        assert!(!ring.verify("device", &[b"alice", b"laptop", b""], &mac));
        assert!(!KeyRing::new(NOW).verify("device", MESSAGE, &mac));
        for position in 0..SIGNATURE_LENGTH {
            let mut forged = mac;
            forged.0[position] ^= 1;
            assert!(!ring.verify("device", MESSAGE, &forged), "{position}");
        }
    }

    #[test]
    fn a_new_key_signs_when_its_time_has_come_and_old_ones_are_believed_for_a_while() {
        let ring = KeyRing::new(NOW);
        let first = ring.sign(NOW, "device", MESSAGE);
        assert_eq!(ring.sign(NOW + PERIOD * 9 / 10, "device", MESSAGE), first);
        let periods = u32::try_from(MAX_KEYS).unwrap();
        for number in 1..periods {
            assert_ne!(ring.sign(NOW + PERIOD * number, "device", MESSAGE), first);
            assert!(ring.verify("device", MESSAGE, &first));
        }
        ring.sign(NOW + PERIOD * periods, "device", MESSAGE);
        assert!(!ring.verify("device", MESSAGE, &first));
        assert_eq!(ring.export().len(), MAX_KEYS);
    }

    #[test]
    fn a_restart_knows_the_keys_again() {
        let (before, after) = (KeyRing::new(NOW), KeyRing::new(NOW));
        let old = before.sign(NOW, "device", MESSAGE);
        let new = before.sign(NOW + PERIOD, "device", MESSAGE);
        after.import(&before.export(), NOW + PERIOD);
        assert!(after.verify("device", MESSAGE, &old));
        assert_eq!(after.sign(NOW, "device", MESSAGE), new);
        // Nothing to take over leaves what there is.
        after.import(&[], NOW);
        assert!(after.verify("device", MESSAGE, &new));
    }

    #[test]
    fn shared_keys_sign_as_soon_as_they_are_known_and_need_the_pepper() {
        let (one, other, thief) = (KeyRing::new(NOW), KeyRing::new(NOW), KeyRing::new(NOW));
        let own = one.sign(NOW, "device", MESSAGE);
        let seeds = [KeySeed::random(NOW), KeySeed::random(NOW + PERIOD)];
        one.share(&seeds, b"password");
        other.share(&seeds, b"password");
        thief.share(&seeds, b"");
        let mac = one.sign(NOW, "device", MESSAGE);
        assert!(other.verify("device", MESSAGE, &mac));
        assert!(!thief.verify("device", MESSAGE, &mac));
        // What was signed while Redis was away goes on to be believed here.
        assert!(one.verify("device", MESSAGE, &own) && !other.verify("device", MESSAGE, &own));
        // Nobody makes a shared key but who keeps them.
        assert_eq!(one.sign(NOW + PERIOD * 9, "device", MESSAGE), mac);
        // A Redis that was emptied costs nobody what this gateway has known.
        other.share(&[KeySeed::random(NOW)], b"password");
        assert_ne!(other.sign(NOW, "device", MESSAGE), mac);
        assert!(other.verify("device", MESSAGE, &mac));
    }

    #[test]
    fn nobody_sees_a_key() {
        let ring = KeyRing::new(NOW);
        assert!(!format!("{ring:?} {:?}", ring.export()).contains("secret"));
        assert!(format!("{ring:?}").contains("SigningKey(***)"));
    }
}
