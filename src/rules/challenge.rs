//! Proof of work: the challenge for a client, and the check of its solution. No state is kept between the two.
//!
//! A [`ChallengeToken`] is signed for one key of one limit and says when it expires and how hard it is. Its solution is
//! a counter such that SHA-256 of `TOKEN.COUNTER` begins with the required number of zero bits. The proof is
//! `TOKEN.COUNTER`. A store says whether a proof was used before, by its [`VerifiedProof::id`].

use std::fmt::Write;
use std::time::Duration;

use aws_lc_rs::digest;

use crate::rules::key::KeyHash;
use crate::words::clock::Timestamp;
use crate::words::signing::{KeyRing, SIGNATURE_LENGTH, Signature};

// The question that a client gets, in a form for cookies and pages.

/// The zero bits asked for: a second or so of a browser, a tenth of that for a program.
pub const DIFFICULTY: u8 = 19;

/// How long a token is valid: the slowest device is done by then.
pub const LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Random bytes in each token. With this many a token fills two blocks of SHA-256, and each try adds one block.
pub const NONCE: usize = 18;

/// The signed bytes: version, difficulty, expiry, nonce.
const SIGNED: usize = 2 + 8 + NONCE;

/// The hexadecimal digits of a token.
pub const LENGTH: usize = 2 * (SIGNED + SIGNATURE_LENGTH);

const VERSION: u8 = 1;

/// The purpose of these signatures.
const PURPOSE: &str = "challenge";

const MICROS: u64 = 1_000_000;

/// A signed question. It does not contain the limit and the key that it is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChallengeToken {
    /// In whole seconds since the epoch.
    expires: u64,
    difficulty: u8,
    nonce: [u8; NONCE],
    mac: Signature,
}

impl ChallengeToken {
    /// A question whose solution resets this key once. `nonce` is random, and different each time.
    pub fn issue(ring: &KeyRing, limit: &str, key: KeyHash, now: Timestamp, nonce: [u8; NONCE]) -> Self {
        let expires = (now + LIFETIME).as_micros().div_ceil(MICROS);
        let signed = signed(DIFFICULTY, expires, &nonce);
        let mac = ring.sign(PURPOSE, &message(&signed, limit, &key.0.to_le_bytes()));
        Self { expires, difficulty: DIFFICULTY, nonce, mac }
    }

    /// Reads what [`ChallengeToken::to_text`] wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; LENGTH] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; LENGTH / 2];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        let (head, mac) = bytes.split_at(SIGNED);
        let [VERSION, difficulty, rest @ ..] = head else { return None };
        let (expires, nonce) = rest.split_at_checked(8)?;
        Some(Self {
            expires: u64::from_be_bytes(expires.try_into().ok()?),
            difficulty: *difficulty,
            nonce: nonce.try_into().ok()?,
            mac: Signature(mac.try_into().ok()?),
        })
    }

    /// Whether a gateway with this key ring issued it for this key of this limit, and it has not expired.
    pub(super) fn is_valid(&self, ring: &KeyRing, limit: &str, key: KeyHash, now: Timestamp) -> bool {
        let end = Timestamp::from_micros(self.expires.saturating_mul(MICROS));
        // A token of a clock far ahead would stay valid after stores forget that its proof was used.
        let is_current = now < end && end.since(now) <= LIFETIME * 2;
        let signed = signed(self.difficulty, self.expires, &self.nonce);
        is_current && ring.verify(PURPOSE, &message(&signed, limit, &key.0.to_le_bytes()), &self.mac)
    }

    pub fn difficulty(&self) -> u8 {
        self.difficulty
    }

    pub(super) fn nonce(&self) -> [u8; NONCE] {
        self.nonce
    }

    /// How long it is still valid.
    pub fn left(&self, now: Timestamp) -> Duration {
        Timestamp::from_micros(self.expires.saturating_mul(MICROS)).since(now)
    }

    /// Lower-case hexadecimal digits.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(LENGTH);
        for byte in signed(self.difficulty, self.expires, &self.nonce).iter().chain(&self.mac.0) {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

fn signed(difficulty: u8, expires: u64, nonce: &[u8; NONCE]) -> [u8; SIGNED] {
    let mut signed = [0; SIGNED];
    signed[0] = VERSION;
    signed[1] = difficulty;
    signed[2..10].copy_from_slice(&expires.to_be_bytes());
    signed[10..].copy_from_slice(nonce);
    signed
}

fn message<'m>(signed: &'m [u8], limit: &'m str, key: &'m [u8]) -> [&'m [u8]; 3] {
    [signed, limit.as_bytes(), key]
}

/// Accepts only lower case, so that each token has one spelling.
fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

// Verifies proofs of work.

/// How long a store remembers that a proof was used: longer than the clocks of gateways are apart.
pub const REPLAY_WINDOW: Duration = Duration::from_secs(15 * 60);

/// The page counts no further.
const MOST_DIGITS: usize = 10;

/// A valid proof.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VerifiedProof {
    /// Unique to its token. A store remembers it, so that a proof is valid once.
    pub id: [u8; NONCE],
}

/// Verifies a proof for this key of this limit. `None` when it is for another key, expired, forged, or wrong.
pub fn verify(ring: &KeyRing, proof: &str, limit: &str, key: KeyHash, now: Timestamp) -> Option<VerifiedProof> {
    let (token, counter) = proof.split_at_checked(LENGTH)?;
    let counter = counter.strip_prefix('.')?;
    let is_number = (1..=MOST_DIGITS).contains(&counter.len()) && counter.bytes().all(|byte| byte.is_ascii_digit());
    let token = ChallengeToken::parse(token)?;
    let is_work = is_number && is_solution(proof, token.difficulty());
    (is_work && token.is_valid(ring, limit, key, now)).then(|| VerifiedProof { id: token.nonce() })
}

/// Whether the hash of the proof begins with this many zero bits.
pub fn is_solution(proof: &str, difficulty: u8) -> bool {
    let hash = digest::digest(&digest::SHA256, proof.as_bytes());
    let mut zeros = 0;
    for byte in hash.as_ref() {
        zeros += byte.leading_zeros();
        if *byte != 0 {
            break;
        }
    }
    zeros >= u32::from(difficulty)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DIFFICULTY, LIFETIME, *};
    use crate::words::signing::KeySeed;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
    const KEY: KeyHash = KeyHash(7);

    fn ring_of(secret: u8) -> KeyRing {
        KeyRing::new(KeySeed { made: NOW, secret: [secret; 32] })
    }

    fn solve(token: &ChallengeToken) -> String {
        let text = token.to_text();
        let proofs = (0u32..).map(|counter| format!("{text}.{counter}"));
        let mut solutions = proofs.filter(|proof| is_solution(proof, token.difficulty()));
        solutions.next().expect("there is one")
    }

    #[test]
    fn work_done_for_a_key_counts_for_that_key_and_limit_until_it_is_over() {
        let ring = ring_of(1);
        let token = ChallengeToken::issue(&ring, "login", KEY, NOW, [3; NONCE]);
        assert_eq!(token.difficulty(), DIFFICULTY);
        assert_eq!(ChallengeToken::parse(&token.to_text()), Some(token.clone()));
        let proof = solve(&token);
        let verify = |proof: &str, limit, key, now| verify(&ring, proof, limit, key, now);
        assert_eq!(verify(&proof, "login", KEY, NOW), Some(VerifiedProof { id: [3; NONCE] }));
        let late = NOW + LIFETIME;
        assert!(verify(&proof, "login", KEY, NOW + LIFETIME.checked_sub(Duration::from_secs(1)).unwrap()).is_some());
        assert_eq!(verify(&proof, "login", KEY, late), None);
        assert_eq!(verify(&proof, "login", KeyHash(8), NOW), None);
        assert_eq!(verify(&proof, "other", KEY, NOW), None);
        assert_eq!(super::verify(&ring_of(2), &proof, "login", KEY, NOW), None);
        // By a clock that is far behind the one it was made by.
        assert_eq!(verify(&proof, "login", KEY, Timestamp::from_micros(NOW.as_micros() - 600_000_000)), None);
    }

    #[test]
    fn what_was_changed_or_is_no_proof_proves_nothing() {
        let ring = ring_of(1);
        let token = ChallengeToken::issue(&ring, "login", KEY, NOW, [3; NONCE]);
        let proof = solve(&token);
        let is_taken = |proof: &str| verify(&ring, proof, "login", KEY, NOW).is_some();
        assert!(is_taken(&proof));
        let text = token.to_text();
        for nothing in [String::new(), text.clone(), format!("{text}."), format!("{text}.-1"), format!("{proof}x")] {
            assert!(!is_taken(&nothing), "{nothing}");
        }
        assert!(!is_taken(&format!("{text}.{}", "0".repeat(11))));
        assert!(!is_taken(&proof.to_uppercase()));
        assert!(!is_taken(&"é".repeat(200)));
        // An easier question than was asked is another one.
        let easy = format!("{}00{}", &text[..2], &text[4..]);
        assert!(!is_taken(&format!("{easy}.0")));
    }

    proptest! {
        #[test]
        fn a_token_has_one_spelling_and_nothing_else_is_one(nonce in any::<[u8; NONCE]>(), noise in "[0-9a-fA-F.]{0,130}", at in 0..LENGTH) {
            let ring = ring_of(1);
            let text = ChallengeToken::issue(&ring, "login", KEY, NOW, nonce).to_text();
            let token = ChallengeToken::parse(&text).expect("what was written is read");
            prop_assert_eq!(token.to_text(), text.as_str());
            prop_assert!(ChallengeToken::parse(&noise).is_none_or(|token| token.to_text() == noise));
            prop_assert!(verify(&ring, &noise, "login", KEY, NOW).is_none());

            let mut forged = text.into_bytes();
            forged[at] = if forged[at] == b'0' { b'1' } else { b'0' };
            let forged = ChallengeToken::parse(str::from_utf8(&forged).expect("digits"));
            prop_assert!(forged.is_none_or(|forged| !forged.is_valid(&ring, "login", KEY, NOW)));
        }
    }
}
