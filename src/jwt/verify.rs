//! Verifies a token.

use super::Claims;
use super::KeySet;
use super::Unverified;
use super::Validity;
use super::compact::CompactToken;
use crate::clock::Timestamp;

/// The claims of a token that a key of the set has signed and that is valid at `now`, by the wall clock. What costs least is
/// checked first: of an invented token it is seldom the signature.
pub fn verify(token: &str, keys: &KeySet, validity: &Validity, now: Timestamp) -> Result<Claims, Unverified> {
    let token = CompactToken::parse(token)?;
    let candidates = keys.candidates(token.key_id.as_deref(), token.algorithm)?;
    let ends = validity.check(&token.payload, now)?;
    // Some applications read signatures of other lengths: in another encoding, or filled up.
    if !candidates.iter().any(|key| key.fits(&token)) {
        return Err(Unverified::NotUnderstood("its signature has not the length that those of its key have"));
    }
    if !candidates.iter().any(|key| key.has_signed(&token)) {
        return Err(Unverified::Signature);
    }
    Claims::new(&token.payload, ends).ok_or(Unverified::NotUnderstood("its claims are longer than 32 KiB"))
}

/// Why a token does not verify while no key is known.
pub fn verify_without_keys(token: &str) -> Unverified {
    CompactToken::parse(token).map_or_else(|reason| reason, |_| Unverified::NoKeys)
}
