//! Sets of keys: which keys are used, and for which tokens.

use serde_json::{Value, json};

use super::{SigningKey, assert_subject, set, verified};
use crate::rules::jwt::{KeySet, Unverified};
use crate::words::base64::encode_url;

#[track_caller]
fn assert_unusable(jwk: &Value, expected: &str) {
    let error = KeySet::parse(json!({ "keys": [jwk] }).to_string().as_bytes()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    // Beside one that is usable it is left out.
    let other = SigningKey::ed25519();
    assert_eq!(set(&[jwk.clone(), other.jwk(json!({}))]).len(), 1);
}

#[test]
fn keys_that_are_not_for_signatures_are_left_out() {
    let (rsa, p256, ed25519) = (SigningKey::rsa(), SigningKey::p256(), SigningKey::ed25519());
    assert_unusable(&rsa.jwk(json!({ "use": "enc" })), "`use` or `key_ops`");
    assert_unusable(&rsa.jwk(json!({ "use": 1 })), "`use` or `key_ops`");
    assert_unusable(&rsa.jwk(json!({ "key_ops": ["encrypt", "wrapKey"] })), "`use` or `key_ops`");
    assert_unusable(&rsa.jwk(json!({ "key_ops": "verify" })), "`use` or `key_ops`");
    assert_unusable(&rsa.jwk(json!({ "alg": "RSA-OAEP" })), "`alg`");
    assert_unusable(&rsa.jwk(json!({ "alg": "ES256" })), "`alg`");
    assert_unusable(&rsa.jwk(json!({ "alg": "HS256" })), "`alg`");
    assert_unusable(&p256.jwk(json!({ "alg": "ES384" })), "`alg`");
    assert_unusable(&p256.jwk(json!({ "alg": null })), "`alg`");
    assert_unusable(&ed25519.jwk(json!({ "kid": 7 })), "`kid`");
    for fine in
        [json!({ "use": "sig" }), json!({ "key_ops": ["verify"] }), json!({ "alg": "ES256", "x5c": ["ignored"] })]
    {
        assert_eq!(set(&[p256.jwk(fine)]).len(), 1);
    }
}

#[test]
fn keys_that_are_none_are_left_out() {
    let (rsa, p256, ed25519) = (SigningKey::rsa(), SigningKey::p256(), SigningKey::ed25519());
    assert_unusable(&json!({ "kty": "oct", "k": "c2VjcmV0" }), "secret");
    assert_unusable(&json!({ "kty": "XYZ" }), "`kty`, `XYZ`");
    assert_unusable(&json!({}), "`kty`");
    assert_unusable(&json!("key"), "no JSON object");
    assert_unusable(&p256.jwk(json!({ "crv": "secp256k1" })), "`crv`, `secp256k1`");
    assert_unusable(&p256.jwk(json!({ "crv": "P-384" })), "numbers");
    assert_unusable(&ed25519.jwk(json!({ "crv": "X25519" })), "`crv`, `X25519`");
    assert_unusable(&p256.jwk(json!({ "x": encode_url(&[1; 32]) })), "numbers");
    assert_unusable(&p256.jwk(json!({ "y": "AA==" })), "`y`");
    assert_unusable(&ed25519.jwk(json!({ "x": "AA" })), "numbers");
    assert_unusable(&rsa.jwk(json!({ "n": encode_url(&[255; 128]) })), "1024");
    assert_unusable(&rsa.jwk(json!({ "n": "" })), "0");
    assert_unusable(&rsa.jwk(json!({ "n": encode_url(&[255; 1025]) })), "8200");
    for exponent in [&[1][..], &[2], &[0], &[], &[1, 0, 0, 0, 1, 1]] {
        assert_unusable(&rsa.jwk(json!({ "e": encode_url(exponent) })), "numbers");
    }
}

#[test]
fn a_modulus_with_a_byte_for_the_sign_is_the_same_key() {
    let key = SigningKey::rsa();
    let jwk = key.jwk(json!({}));
    let modulus = crate::words::base64::decode_url(jwk["n"].as_str().unwrap().as_bytes()).unwrap();
    let signed = key.jwk(json!({ "n": encode_url(&[&[0][..], &modulus].concat()) }));
    assert_eq!(set(&[signed]), set(&[jwk]));
}

#[test]
fn what_is_no_set_is_refused_in_words() {
    let check = |text: &str, expected: &str| {
        let error = KeySet::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    check("", "no JSON object");
    check("<html>", "no JSON object");
    check("[]", "no JSON object");
    check(r#"{"keys":[],"keys":[]}"#, "repeats a name, at line 1 column 17");
    check("\"secret\"", "at line 1 column 8");
    check("{}", "no list `keys`");
    check(r#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#, "no list `keys`");
    check(r#"{"keys":{}}"#, "no list `keys`");
    check(r#"{"keys":[]}"#, "is empty");
    check(&json!({ "keys": vec![1; 101] }).to_string(), "101 keys");
    check(&json!({ "keys": vec![1; 9] }).to_string(), "key 5: it is no JSON object");
}

#[test]
fn private_keys_and_secrets_in_a_set_are_noticed() {
    let key = SigningKey::ed25519();
    assert!(!set(&[key.jwk(json!({}))]).holds_secrets);
    assert!(set(&[key.jwk(json!({ "d": "private" }))]).holds_secrets);
    assert!(set(&[key.jwk(json!({})), json!({ "kty": "oct", "k": "c2VjcmV0" })]).holds_secrets);
}

#[test]
fn a_key_is_chosen_by_its_name_and_its_algorithm() {
    let (first, second, unnamed, rsa) = (SigningKey::p256(), SigningKey::p256(), SigningKey::p256(), SigningKey::rsa());
    let keys = set(&[
        first.jwk(json!({ "kid": "1" })),
        // Two keys may have one name if their kinds differ.
        rsa.jwk(json!({ "kid": "1" })),
        second.jwk(json!({ "kid": "2" })),
    ]);
    let token = |key: &SigningKey, header: Value| key.token(&header, &json!({ "sub": "alice" }));
    assert_subject(&token(&first, json!({ "alg": "ES256", "kid": "1" })), &keys, "alice");
    assert_subject(&token(&rsa, json!({ "alg": "RS256", "kid": "1" })), &keys, "alice");
    assert_subject(&token(&second, json!({ "alg": "ES256", "kid": "2" })), &keys, "alice");
    // Without a name each that fits is tried.
    assert_subject(&token(&second, json!({ "alg": "ES256" })), &keys, "alice");
    let refused = |token: &str, keys: &KeySet| verified(token, keys).unwrap_err();
    assert_eq!(refused(&token(&second, json!({ "alg": "ES256", "kid": "1" })), &keys), Unverified::Signature);
    assert_eq!(refused(&token(&rsa, json!({ "alg": "RS256", "kid": "2" })), &keys), Unverified::NoKeyForAlgorithm);
    for name in ["3", "", "1 ", "2\0"] {
        let token = token(&second, json!({ "alg": "ES256", "kid": name }));
        assert_eq!(refused(&token, &keys), Unverified::UnknownKey(name.to_owned()));
    }
    // Keys without a name may have any.
    let keys = set(&[first.jwk(json!({ "kid": "1" })), unnamed.jwk(json!({}))]);
    assert_subject(&token(&unnamed, json!({ "alg": "ES256", "kid": "any" })), &keys, "alice");
    assert_eq!(refused(&token(&unnamed, json!({ "alg": "ES256", "kid": "1" })), &keys), Unverified::Signature);
}

#[test]
fn few_keys_are_tried_for_one_token() {
    let keys: Vec<_> = (0..5).map(|_| SigningKey::ed25519()).collect();
    let all = set(&keys.iter().map(|key| key.jwk(json!({}))).collect::<Vec<_>>());
    let token = |key: &SigningKey| key.token(&json!({ "alg": "EdDSA" }), &json!({ "sub": "alice" }));
    assert_subject(&token(&keys[3]), &all, "alice");
    assert_eq!(verified(&token(&keys[4]), &all).unwrap_err(), Unverified::Signature);
}
