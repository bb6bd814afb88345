//! Signs tokens, with keys that are made when a test runs.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair, RsaPublicKeyComponents};
use aws_lc_rs::{rsa, signature};
use serde_json::{Value, json};

/// A private key of an issuer.
#[derive(Debug)]
pub enum SigningKey {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    pub fn rsa() -> Self {
        Self::Rsa(rsa::KeyPair::generate(rsa::KeySize::Rsa2048).unwrap())
    }

    pub fn p256() -> Self {
        Self::P256(EcdsaKeyPair::generate(&signature::ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub fn p384() -> Self {
        Self::P384(EcdsaKeyPair::generate(&signature::ECDSA_P384_SHA384_FIXED_SIGNING).unwrap())
    }

    pub fn ed25519() -> Self {
        Self::Ed25519(Ed25519KeyPair::generate().unwrap())
    }

    /// The public half, with these members more.
    pub fn jwk(&self, more: Value) -> Value {
        let mut jwk = match self {
            Self::Rsa(key) => {
                let components = RsaPublicKeyComponents::<Vec<u8>>::from(key.public_key());
                json!({ "kty": "RSA", "n": encode_url(&components.n), "e": encode_url(&components.e) })
            }
            Self::P256(key) => point("P-256", key.public_key().as_ref()),
            Self::P384(key) => point("P-384", key.public_key().as_ref()),
            Self::Ed25519(key) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": encode_url(key.public_key().as_ref()) })
            }
        };
        let Value::Object(more) = more else { panic!("members") };
        jwk.as_object_mut().unwrap().extend(more);
        jwk
    }

    /// A token with this header and these claims.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        self.token_of(&header.to_string(), &claims.to_string(), header["alg"].as_str().unwrap_or_default())
    }

    /// A token of these texts, signed with an algorithm that fits the key.
    pub fn token_of(&self, header: &str, claims: &str, algorithm: &str) -> String {
        let signed = format!("{}.{}", encode_url(header.as_bytes()), encode_url(claims.as_bytes()));
        let signature = self.sign(signed.as_bytes(), algorithm);
        format!("{signed}.{}", encode_url(&signature))
    }

    pub fn sign(&self, message: &[u8], algorithm: &str) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let encoding: &'static dyn signature::RsaEncoding = match algorithm {
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    "PS256" => &signature::RSA_PSS_SHA256,
                    "PS384" => &signature::RSA_PSS_SHA384,
                    "PS512" => &signature::RSA_PSS_SHA512,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(encoding, &random, message, &mut signature).unwrap();
                signature
            }
            Self::P256(key) | Self::P384(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }
}

fn point(curve: &str, point: &[u8]) -> Value {
    let (x, y) = point[1..].split_at(point.len() / 2);
    json!({ "kty": "EC", "crv": curve, "x": encode_url(x), "y": encode_url(y) })
}

/// Base64 for URLs, without padding.
fn encode_url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        text.extend((0..=group.len()).map(|place| char::from(DIGITS[bits >> (18 - 6 * place) & 63])));
    }
    text
}
