//! A public key of a set.

use std::fmt;

use aws_lc_rs::signature;
use aws_lc_rs::signature::UnparsedPublicKey;
use aws_lc_rs::signature::VerificationAlgorithm;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto;
use serde_json::Map;
use serde_json::Value;

use super::Algorithm;
use super::algorithm::KeyKind;
use super::compact::CompactToken;
use crate::base64;

/// A key that verifies signatures (JWK, RFC 7517).
#[derive(Clone)]
pub struct PublicKey {
    /// `kid`
    pub id: Option<Box<str>>,
    kind: KeyKind,
    /// The only algorithm that it is for; `None`: all of its kind.
    algorithm: Option<Algorithm>,
    /// Of the modulus, or of the point with its first byte.
    bytes: Vec<u8>,
    /// The only length of its signatures.
    signature_length: usize,
    key: DecodingKey,
}

/// Why a key of a set is not used. Shows no part of the key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UnusableKey {
    #[error("it is no JSON object")]
    NoObject,
    #[error("its `{0}` is missing, or no text")]
    NoText(&'static str),
    #[error("it is a secret (`kty: oct`), and whoever can verify with a secret can sign with it")]
    Secret,
    #[error("its `kty`, `{0}`, is not supported: RSA, EC and OKP are")]
    Kind(String),
    #[error("its `crv`, `{0}`, is not supported: P-256, P-384 and Ed25519 are")]
    Curve(String),
    #[error("its `use` or `key_ops` says that it is not for signatures")]
    Purpose,
    #[error("its `alg` is none that is verified with such a key")]
    Algorithm,
    #[error("its `{0}` is not in Base64 for URLs")]
    Encoding(&'static str),
    #[error("an RSA key has 2048 to 8192 bits, and this one {0}")]
    Bits(usize),
    #[error("its numbers are no public key")]
    Numbers,
}

impl PublicKey {
    /// Reads one key of a set. What else it says, such as a certificate, is not looked at.
    pub(super) fn read(jwk: &Value) -> Result<Self, UnusableKey> {
        let Value::Object(jwk) = jwk else { return Err(UnusableKey::NoObject) };
        let id = match jwk.get("kid") {
            None => None,
            Some(Value::String(name)) => Some(name.as_str().into()),
            Some(_) => return Err(UnusableKey::NoText("kid")),
        };
        if !is_for_signatures(jwk) {
            return Err(UnusableKey::Purpose);
        }
        let (kind, bytes, key) = match text(jwk, "kty")? {
            "RSA" => rsa(jwk)?,
            "EC" => match text(jwk, "crv")? {
                "P-256" => on_curve(jwk, KeyKind::P256, 32)?,
                "P-384" => on_curve(jwk, KeyKind::P384, 48)?,
                other => return Err(UnusableKey::Curve(other.to_owned())),
            },
            "OKP" => match text(jwk, "crv")? {
                "Ed25519" => ed25519(jwk)?,
                other => return Err(UnusableKey::Curve(other.to_owned())),
            },
            "oct" => return Err(UnusableKey::Secret),
            other => return Err(UnusableKey::Kind(other.to_owned())),
        };
        let algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => {
                let named = name.as_str().and_then(Algorithm::named);
                Some(named.filter(|algorithm| algorithm.key_kind() == kind).ok_or(UnusableKey::Algorithm)?)
            }
        };
        let signature_length = match kind {
            KeyKind::Rsa => bytes.len(),
            KeyKind::P256 | KeyKind::Ed25519 => 64,
            KeyKind::P384 => 96,
        };
        Ok(Self { id, kind, algorithm, bytes, signature_length, key })
    }

    /// Whether it may verify this algorithm.
    pub(super) fn is_for(&self, algorithm: Algorithm) -> bool {
        self.kind == algorithm.key_kind() && self.algorithm.is_none_or(|own| own == algorithm)
    }

    /// Whether a signature has the one length that those of this key have.
    pub(super) fn fits(&self, token: &CompactToken<'_>) -> bool {
        token.signature_length == self.signature_length
    }

    /// Whether this key has signed the token. To be asked only where it [is for](Self::is_for) the algorithm.
    pub(super) fn has_signed(&self, token: &CompactToken<'_>) -> bool {
        let algorithm = token.algorithm.of_library();
        self.fits(token)
            && crypto::verify(token.signature, token.signed.as_bytes(), &self.key, algorithm).unwrap_or(false)
    }
}

impl Eq for PublicKey {}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, self.kind, self.algorithm, &self.bytes) == (&other.id, other.kind, other.algorithm, &other.bytes)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey").field("id", &self.id).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What a key is for, where it says so.
fn is_for_signatures(jwk: &Map<String, Value>) -> bool {
    let is_used = jwk.get("use").is_none_or(|purpose| purpose == "sig");
    let verifies =
        |operations: &Value| operations.as_array().is_some_and(|list| list.iter().any(|one| one == "verify"));
    is_used && jwk.get("key_ops").is_none_or(verifies)
}

fn rsa(jwk: &Map<String, Value>) -> Result<(KeyKind, Vec<u8>, DecodingKey), UnusableKey> {
    // Some encoders write a byte for the sign.
    let number = |name| bytes(jwk, name).map(|bytes| without_leading_zeros(&bytes).to_vec());
    let (modulus, exponent) = (number("n")?, number("e")?);
    let bits = modulus.first().map_or(0, |first| modulus.len() * 8 - first.leading_zeros() as usize);
    if !(2048..=8192).contains(&bits) {
        return Err(UnusableKey::Bits(bits));
    }
    let is_odd = |number: &[u8]| number.last().is_some_and(|byte| byte % 2 == 1);
    // From 3 to 33 bits, as the provider of cryptography has it.
    let fits = (1..=4).contains(&exponent.len()) && exponent != [1];
    if !is_odd(&modulus) || !is_odd(&exponent) || !fits {
        return Err(UnusableKey::Numbers);
    }
    let key = DecodingKey::from_rsa_raw_components(&modulus, &exponent);
    Ok((KeyKind::Rsa, modulus, key))
}

fn on_curve(
    jwk: &Map<String, Value>,
    kind: KeyKind,
    length: usize,
) -> Result<(KeyKind, Vec<u8>, DecodingKey), UnusableKey> {
    let (x, y) = (bytes(jwk, "x")?, bytes(jwk, "y")?);
    if x.len() != length || y.len() != length {
        return Err(UnusableKey::Numbers);
    }
    let point = [&[UNCOMPRESSED], &x[..], &y].concat();
    let algorithm: &'static dyn VerificationAlgorithm = match kind {
        KeyKind::P384 => &signature::ECDSA_P384_SHA384_FIXED,
        _ => &signature::ECDSA_P256_SHA256_FIXED,
    };
    check(algorithm, &point)?;
    let key = DecodingKey::from_ec_der(&point);
    Ok((kind, point, key))
}

/// The first byte of a point of which both coordinates follow.
const UNCOMPRESSED: u8 = 4;

fn ed25519(jwk: &Map<String, Value>) -> Result<(KeyKind, Vec<u8>, DecodingKey), UnusableKey> {
    let point = bytes(jwk, "x")?;
    check(&signature::ED25519, &point)?;
    let key = DecodingKey::from_ed_der(&point);
    Ok((KeyKind::Ed25519, point, key))
}

fn check(algorithm: &'static dyn VerificationAlgorithm, key: &[u8]) -> Result<(), UnusableKey> {
    UnparsedPublicKey::new(algorithm, key).parse().map(drop).map_err(|_| UnusableKey::Numbers)
}

fn text<'k>(jwk: &'k Map<String, Value>, name: &'static str) -> Result<&'k str, UnusableKey> {
    jwk.get(name).and_then(Value::as_str).ok_or(UnusableKey::NoText(name))
}

fn bytes(jwk: &Map<String, Value>, name: &'static str) -> Result<Vec<u8>, UnusableKey> {
    base64::decode_url(text(jwk, name)?.as_bytes()).ok_or(UnusableKey::Encoding(name))
}

fn without_leading_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
