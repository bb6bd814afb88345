//! Signed tokens (JWT, RFC 7519): whether one verifies with a set of public keys, and what it claims.
//!
//! The library checks signatures. What is read of a token before and after is stricter than the standards: who can write a
//! token in two ways, or have one read in two ways, must not have two budgets.

pub mod algorithm;
pub mod claims;
pub mod compact;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod key_set;
pub mod place;
pub mod public_key;
pub mod request_claims;
pub mod strict_json;
#[cfg(test)]
mod tests;
pub mod unverified;
pub mod validity;
pub mod verify;

pub use self::algorithm::Algorithm;
pub use self::claims::Claims;
pub use self::key_set::InvalidKeySet;
pub use self::key_set::KeySet;
pub use self::place::PresentedTokens;
pub use self::place::TokenPlace;
pub use self::request_claims::RequestClaims;
pub use self::unverified::Unverified;
pub use self::validity::Validity;
pub use self::verify::verify;
pub use self::verify::verify_without_keys;
