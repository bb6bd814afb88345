//! Signatures on what the gateway hands to clients and reads back later: device cookies and challenge tokens. The same keys
//! seal what gateways tell each other.
//!
//! A [`KeyRing`] is a plain value. The store keeps the one in force, replaces it, and makes the random seeds.

pub mod key;
pub mod key_ring;
pub mod seal;
pub mod signature;

pub use self::key::KeySeed;
pub use self::key_ring::KeyRing;
pub use self::signature::SIGNATURE_LENGTH;
pub use self::signature::Signature;
