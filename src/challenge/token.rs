//! The question that a client gets, in a form for cookies and pages.

use std::fmt::Write;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::signing::KeyRing;
use crate::signing::SIGNATURE_LENGTH;
use crate::signing::Signature;

/// A signed question. It does not contain the limit and the key that it is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChallengeToken {
    /// In whole seconds since the epoch.
    expires: u64,
    difficulty: u8,
    nonce: [u8; NONCE],
    mac: Signature,
}

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

const MICROS: u64 = 1_000_000;
