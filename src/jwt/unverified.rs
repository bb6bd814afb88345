//! Why a token does not verify.

/// Why a token does not verify, in words for the operator who explains a request. Never in a log: it may show what a client
/// wrote.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unverified {
    /// No reader takes it for a signed token.
    #[error("it is no signed token: three parts separated by dots, of which the first is a JSON object in Base64")]
    NoToken,
    /// Some reader may take it for one that verifies.
    #[error("{0}")]
    NotUnderstood(&'static str),
    #[error("it is signed with `{0}`: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA are verified")]
    Algorithm(String),
    #[error("no key set is known yet")]
    NoKeys,
    /// A set that was fetched meanwhile may have it.
    #[error("no key in the set has its `kid`, `{0}`")]
    UnknownKey(String),
    #[error("no key in the set is for its algorithm")]
    NoKeyForAlgorithm,
    #[error("its signature is not by a key in the set")]
    Signature,
    #[error("it has expired: its `exp` is in the past")]
    Expired,
    #[error("it is not valid yet: its `nbf` is in the future")]
    NotYetValid,
    #[error("its `iss` is not the `issuer` of the configuration")]
    Issuer,
    #[error("its `aud` does not name the `audience` of the configuration")]
    Audience,
}

impl Unverified {
    /// Whether a lenient application may nevertheless take it for a valid token, so that it may hide claims.
    pub fn may_hide_claims(&self) -> bool {
        matches!(self, Self::NotUnderstood(_))
    }
}
