//! Verifies proofs of work.

use std::time::Duration;

use aws_lc_rs::digest;

use super::ChallengeToken;
use super::token::LENGTH;
use super::token::NONCE;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::signing::KeyRing;

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

/// How long a store remembers that a proof was used: longer than the clocks of gateways are apart.
pub const REPLAY_WINDOW: Duration = Duration::from_secs(15 * 60);

/// The page counts no further.
const MOST_DIGITS: usize = 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::challenge::DIFFICULTY;
    use crate::challenge::LIFETIME;
    use crate::signing::KeySeed;

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
