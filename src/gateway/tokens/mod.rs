//! Verifies the tokens of requests with the keys that are known now, and remembers those that verify.

pub mod live_keys;
pub mod settings;
pub mod verified_tokens;
pub mod verifier;

pub use self::live_keys::LiveKeys;
pub use self::settings::KeySource;
pub use self::settings::TokenSettings;
pub use self::verifier::TokenVerifier;
