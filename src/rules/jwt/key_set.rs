//! A set of public keys (JWK set, RFC 7517).

use std::fmt;

use aws_lc_rs::signature;
use aws_lc_rs::signature::{UnparsedPublicKey, VerificationAlgorithm};
use jsonwebtoken::{DecodingKey, crypto};
use serde_json::{Map, Value};
use smallvec::SmallVec;

use super::{Algorithm, Unverified};
use crate::rules::jwt::compact::CompactToken;
use crate::rules::jwt::{KeyKind, compact};
use crate::words::base64;

/// More than this are none of an issuer.
const MAX_KEYS: usize = 100;

/// Keys that are tried for one token. Several only have one name where an issuer renews keys without giving new names.
const MAX_TRIED: usize = 4;

/// More would not be read.
const MAX_NAMED: usize = 5;

/// The keys of an issuer that verify tokens. There is at least one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeySet {
    keys: Vec<PublicKey>,
    /// Whether the set has more of a key than may be known to all.
    pub holds_secrets: bool,
}

/// Why a text is no set of keys. Shows no part of a key.
#[derive(Debug, thiserror::Error)]
pub enum InvalidKeySet {
    /// The error of the library could show a part of the text.
    #[error("it is no JSON object, or repeats a name, at line {} column {}", .0.line(), .0.column())]
    NotJson(#[from] serde_json::Error),
    #[error("it has no list `keys`")]
    NoList,
    #[error("its list `keys` is empty")]
    Empty,
    #[error("it has {0} keys, and more than {MAX_KEYS} are none of an issuer")]
    TooMany(usize),
    /// Each key, counted from 1, and why it is not used.
    #[error("none of its keys verifies tokens: {}", list(.0))]
    NoneUsable(Vec<(usize, UnusableKey)>),
}

impl KeySet {
    /// Reads a set. Keys that verify no signatures, such as keys for encryption, are left out.
    pub fn parse(text: &[u8]) -> Result<Self, InvalidKeySet> {
        let set = compact::object(text)?;
        let Some(Value::Array(list)) = set.get("keys") else { return Err(InvalidKeySet::NoList) };
        if list.is_empty() {
            return Err(InvalidKeySet::Empty);
        }
        if list.len() > MAX_KEYS {
            return Err(InvalidKeySet::TooMany(list.len()));
        }
        let (mut keys, mut unusable) = (Vec::new(), Vec::new());
        for (number, jwk) in (1..).zip(list) {
            match PublicKey::read(jwk) {
                Ok(key) => keys.push(key),
                Err(reason) => unusable.push((number, reason)),
            }
        }
        if keys.is_empty() {
            return Err(InvalidKeySet::NoneUsable(unusable));
        }
        // The private half of a key is `d`, a shared secret is `k`.
        let holds_secrets = list.iter().any(|jwk| jwk.get("d").is_some() || jwk.get("k").is_some());
        Ok(Self { keys, holds_secrets })
    }

    /// How many keys verify tokens.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// A set has at least one key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys that may have signed a token with this `kid` and algorithm, up to the number that is tried. Keys with
    /// this `kid`; if there is none, keys without one. For a token without `kid`: all keys.
    pub(super) fn candidates(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Candidates<'_>, Unverified> {
        let has_name = |key: &&PublicKey| key.id.as_deref() == id;
        let may_be_meant = |key: &&PublicKey| match id {
            None => true,
            Some(_) if self.keys.iter().any(|key| has_name(&key)) => has_name(key),
            Some(_) => key.id.is_none(),
        };
        if let (Some(id), None) = (id, self.keys.iter().find(may_be_meant)) {
            return Err(Unverified::UnknownKey(id.to_owned()));
        }
        let fitting = self.keys.iter().filter(|key| may_be_meant(key) && key.is_for(algorithm));
        let fitting: Candidates<'_> = fitting.take(MAX_TRIED).collect();
        if fitting.is_empty() { Err(Unverified::NoKeyForAlgorithm) } else { Ok(fitting) }
    }
}

/// The keys that are tried for one token.
pub(super) type Candidates<'s> = SmallVec<[&'s PublicKey; MAX_TRIED]>;

fn list(unusable: &[(usize, UnusableKey)]) -> String {
    let words: Vec<_> =
        unusable.iter().take(MAX_NAMED).map(|(number, reason)| format!("key {number}: {reason}")).collect();
    words.join("; ")
}

// A public key of a set.

/// The first byte of an uncompressed point: both coordinates follow.
const UNCOMPRESSED: u8 = 4;

/// A key that verifies signatures (JWK, RFC 7517).
#[derive(Clone)]
pub struct PublicKey {
    /// `kid`
    pub id: Option<Box<str>>,
    kind: KeyKind,
    /// The only algorithm that it is for; `None`: all of its kind.
    algorithm: Option<Algorithm>,
    /// The bytes of the modulus, or of the point with its first byte.
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

    /// Whether a signature has the length of this key's signatures.
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

/// Whether a key is for signatures, if it declares its use.
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
