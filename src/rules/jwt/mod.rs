//! Signed tokens (JWT, RFC 7519): whether one verifies with a set of public keys, and what it claims.
//!
//! The library checks signatures. What is read of a token before and after is stricter than the standards: who can write a
//! token in two ways, or have one read in two ways, must not have two budgets.

pub mod claims;
pub mod compact;
pub mod key_set;

use std::time::Duration;

use serde_json::{Map, Value};

pub use self::claims::{Claims, PresentedTokens, RequestClaims, TokenPlace};
pub use self::key_set::{InvalidKeySet, KeySet};
use crate::rules::jwt::compact::CompactToken;
use crate::words::clock::Timestamp;

// Verifies a token.

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

// Why a token does not verify.

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

// The conditions on the claims of a token that is valid here and now.

/// The conditions on every token.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Validity {
    /// `iss` must be one of these. Empty: any, or none.
    pub issuers: Vec<String>,
    /// `aud` must name one of these. Empty: any, or none.
    pub audiences: Vec<String>,
    /// By how much the clock of the issuer may differ from ours.
    pub leeway: Duration,
}

impl Validity {
    /// Where the configuration leaves it out.
    pub const LEEWAY: Duration = Duration::from_secs(30);

    /// When a token with these claims ends; `None`: never. `now` is by the wall clock.
    pub(super) fn check(&self, claims: &Map<String, Value>, now: Timestamp) -> Result<Option<Timestamp>, Unverified> {
        let ends = moment(claims, "exp")?.map(|expiry| expiry + self.leeway);
        if ends.is_some_and(|ends| now >= ends) {
            return Err(Unverified::Expired);
        }
        if moment(claims, "nbf")?.is_some_and(|begins| now + self.leeway < begins) {
            return Err(Unverified::NotYetValid);
        }
        let names_one_of = |name: &str, expected: &[String]| {
            let is_expected =
                |value: &Value| value.as_str().is_some_and(|value| expected.iter().any(|one| one == value));
            match claims.get(name) {
                _ if expected.is_empty() => true,
                // Only an audience may be several.
                Some(Value::Array(several)) if name == "aud" => several.iter().any(is_expected),
                Some(value) => is_expected(value),
                None => false,
            }
        };
        if !names_one_of("iss", &self.issuers) {
            return Err(Unverified::Issuer);
        }
        if !names_one_of("aud", &self.audiences) {
            return Err(Unverified::Audience);
        }
        Ok(ends)
    }
}

/// A claim that is a number of seconds since the epoch, perhaps with a fraction.
fn moment(claims: &Map<String, Value>, name: &str) -> Result<Option<Timestamp>, Unverified> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|_| value.is_number());
    let seconds = seconds.ok_or(Unverified::NotUnderstood("its `exp` or `nbf` is no number"))?;
    // Before the epoch is long ago, and beyond what a duration holds is never.
    let since_epoch = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    Ok(Some(Timestamp::EPOCH + since_epoch))
}

// The algorithms of signatures. `none` and algorithms with a shared secret (`HS256`) are left out.

/// The signature algorithm that a token declares (RFC 7518, RFC 8037).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

/// The kind of a public key. Each verifies only algorithms of its own kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl Algorithm {
    /// The algorithm of this name. Names are compared with case.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            // RFC 9864 names the curve.
            "EdDSA" | "Ed25519" => Self::EdDsa,
            _ => return None,
        })
    }

    /// The only kind of key that verifies it.
    pub fn key_kind(self) -> KeyKind {
        match self {
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => KeyKind::Rsa,
            Self::Es256 => KeyKind::P256,
            Self::Es384 => KeyKind::P384,
            Self::EdDsa => KeyKind::Ed25519,
        }
    }

    /// As the library names it.
    pub(super) fn of_library(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Rs384 => jsonwebtoken::Algorithm::RS384,
            Self::Rs512 => jsonwebtoken::Algorithm::RS512,
            Self::Ps256 => jsonwebtoken::Algorithm::PS256,
            Self::Ps384 => jsonwebtoken::Algorithm::PS384,
            Self::Ps512 => jsonwebtoken::Algorithm::PS512,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::Es384 => jsonwebtoken::Algorithm::ES384,
            Self::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz {
    //! The fuzz target of tokens.

    use std::sync::LazyLock;

    use super::{KeySet, Validity, verify};
    use crate::rules::jwt::claims::Claims;
    use crate::rules::jwt::compact::{CompactToken, MAX_LENGTH};
    use crate::words::base64;
    use crate::words::clock::Timestamp;
    #[cfg(test)]
    use crate::words::corpus;

    /// The key of RFC 8037, whose private half everybody knows; the corpus holds no token that it has signed.
    static KEYS: LazyLock<KeySet> = LazyLock::new(|| {
        let set = br#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        KeySet::parse(set).expect("a key that can be used")
    });

    /// Checks two promises for any text: only signed text verifies, and a token has one spelling.
    pub fn check(bytes: &[u8]) {
        let Ok(text) = str::from_utf8(bytes) else { return };
        let verified = verify(text, &KEYS, &Validity::default(), Timestamp::EPOCH);
        assert!(verified.is_err(), "an unsigned token verifies");
        let Ok(token) = CompactToken::parse(text) else { return };
        assert!(text.len() <= MAX_LENGTH, "a token that is too long is parsed");
        let parts: Vec<_> = text.split('.').collect();
        assert_eq!(parts.len(), 3, "a token has three parts");
        for part in parts {
            let decoded = base64::decode_url(part.as_bytes()).expect("each part is decoded");
            assert_eq!(base64::encode_url(&decoded), part, "a part has another spelling");
        }
        assert_eq!(token.signed.len() + 1 + token.signature.len(), text.len());
        if let Some(claims) = Claims::new(&token.payload, None) {
            assert!(claims.weight() <= 64 * 1024 + 32 * text.len(), "claims take too much memory");
        }
    }

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("jwt", check);
    }
}

#[cfg(test)]
mod verify_tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_700_000_000;

    #[track_caller]
    fn check(validity: &Validity, claims: &Value, expected: Result<Option<u64>, &Unverified>) {
        let now = Timestamp::from_micros(NOW * 1_000_000);
        let found = validity.check(claims.as_object().unwrap(), now);
        let found = found.map(|ends| ends.map(|ends| ends.as_micros() / 1_000_000));
        assert_eq!(found.as_ref().map(|ends| *ends), expected, "{claims}");
    }

    fn leeway(seconds: u64) -> Validity {
        Validity { leeway: Duration::from_secs(seconds), ..Validity::default() }
    }

    #[test]
    fn a_token_ends_at_its_expiry_and_the_leeway() {
        check(&leeway(0), &json!({}), Ok(None));
        check(&leeway(0), &json!({ "exp": NOW + 1 }), Ok(Some(NOW + 1)));
        check(&leeway(0), &json!({ "exp": NOW }), Err(&Unverified::Expired));
        check(&leeway(30), &json!({ "exp": NOW - 29 }), Ok(Some(NOW + 1)));
        check(&leeway(30), &json!({ "exp": NOW - 30 }), Err(&Unverified::Expired));
        check(&leeway(0), &json!({ "exp": 1_700_000_000.5 }), Ok(Some(NOW)));
        check(&leeway(0), &json!({ "exp": -5 }), Err(&Unverified::Expired));
        check(&leeway(30), &json!({ "exp": 1e300 }), Ok(Some(u64::MAX / 1_000_000)));
    }

    #[test]
    fn a_token_begins_the_leeway_before_it_says() {
        check(&leeway(0), &json!({ "nbf": NOW }), Ok(None));
        check(&leeway(0), &json!({ "nbf": NOW + 1 }), Err(&Unverified::NotYetValid));
        check(&leeway(30), &json!({ "nbf": NOW + 30 }), Ok(None));
        check(&leeway(30), &json!({ "nbf": NOW + 31 }), Err(&Unverified::NotYetValid));
        check(&leeway(0), &json!({ "nbf": -1 }), Ok(None));
    }

    #[test]
    fn a_time_that_is_no_number_is_not_understood() {
        for claims in
            [json!({ "exp": "4000000000" }), json!({ "exp": null }), json!({ "nbf": true }), json!({ "nbf": [1] })]
        {
            let found = leeway(0).check(claims.as_object().unwrap(), Timestamp::EPOCH);
            assert!(found.unwrap_err().may_hide_claims(), "{claims}");
        }
    }

    #[test]
    fn issuer_and_audience_are_kept_where_given() {
        let strict = Validity {
            issuers: vec!["https://a.example".to_owned(), "https://b.example".to_owned()],
            audiences: vec!["api".to_owned(), "web".to_owned()],
            leeway: Duration::ZERO,
        };
        check(&leeway(0), &json!({ "iss": "anyone", "aud": ["anything"] }), Ok(None));
        check(&strict, &json!({ "iss": "https://b.example", "aud": "web" }), Ok(None));
        check(&strict, &json!({ "iss": "https://a.example", "aud": ["other", "api"] }), Ok(None));
        for issuer in
            [json!(null), json!("https://a.example/"), json!("HTTPS://a.example"), json!(["https://a.example"])]
        {
            check(&strict, &json!({ "iss": issuer, "aud": "api" }), Err(&Unverified::Issuer));
        }
        check(&strict, &json!({ "aud": "api" }), Err(&Unverified::Issuer));
        for audience in
            [json!(null), json!("API"), json!([]), json!(["other"]), json!([["api"]]), json!({ "api": true })]
        {
            let claims = json!({ "iss": "https://a.example", "aud": audience });
            check(&strict, &claims, Err(&Unverified::Audience));
        }
        check(&strict, &json!({ "iss": "https://a.example" }), Err(&Unverified::Audience));
    }
}

#[cfg(test)]
mod tests;
