//! What must not verify, whatever an attacker writes.

use aws_lc_rs::hmac;
use serde_json::{Value, json};

use super::{SigningKey, assert_subject, set, verified};
use crate::rules::jwt::{KeySet, Unverified};
use crate::words::base64::{decode_url, encode_url};

fn victim() -> Value {
    json!({ "sub": "victim" })
}

#[track_caller]
fn assert_refused(token: &str, keys: &KeySet, expected: &Unverified) {
    assert_eq!(&verified(token, keys).unwrap_err(), expected, "{token}");
}

#[track_caller]
fn assert_not_understood(token: &str, keys: &KeySet) {
    let reason = verified(token, keys).unwrap_err();
    assert!(reason.may_hide_claims(), "{token}: {reason}");
}

#[test]
fn a_public_key_is_no_secret() {
    for key in [SigningKey::rsa(), SigningKey::p256(), SigningKey::ed25519()] {
        let jwk = key.jwk(json!({ "kid": "a" }));
        let keys = set(std::slice::from_ref(&jwk));
        let member = |name: &str| decode_url(jwk[name].as_str().unwrap_or_default().as_bytes()).unwrap();
        let (jwk_text, modulus, point) =
            (jwk.to_string(), member("n"), [&[4][..], &member("x"), &member("y")].concat());
        let secrets: [&[u8]; 4] = [jwk_text.as_bytes(), &modulus, &point, b""];
        for (name, algorithm) in
            [("HS256", hmac::HMAC_SHA256), ("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)]
        {
            for secret in secrets {
                let signed = format!(
                    "{}.{}",
                    encode_url(json!({ "alg": name, "kid": "a" }).to_string().as_bytes()),
                    encode_url(victim().to_string().as_bytes())
                );
                let tag = hmac::sign(&hmac::Key::new(algorithm, secret), signed.as_bytes());
                let token = format!("{signed}.{}", encode_url(tag.as_ref()));
                assert_refused(&token, &keys, &Unverified::Algorithm(name.to_owned()));
            }
        }
    }
}

#[test]
fn an_unsigned_token_is_none() {
    let keys = set(&[SigningKey::ed25519().jwk(json!({}))]);
    for name in ["none", "None", "NONE", "nOnE", "", "RS1", "ES256K", "es256", "RS256 "] {
        let signed = format!("{}.{}", encode_url(json!({ "alg": name }).to_string().as_bytes()), encode_url(b"{}"));
        for signature in ["", "AA"] {
            assert_refused(&format!("{signed}.{signature}"), &keys, &Unverified::Algorithm(name.to_owned()));
        }
    }
}

#[test]
fn a_key_verifies_only_algorithms_of_its_own_kind() {
    let (rsa, p256, p384, ed25519) = (SigningKey::rsa(), SigningKey::p256(), SigningKey::p384(), SigningKey::ed25519());
    for (key, others) in [
        (&rsa, &["ES256", "ES384", "EdDSA"][..]),
        (&p256, &["ES384", "RS256", "PS256", "EdDSA"]),
        (&p384, &["ES256", "RS256", "EdDSA"]),
        (&ed25519, &["ES256", "RS256"]),
    ] {
        let keys = set(&[key.jwk(json!({ "kid": "a" }))]);
        for algorithm in others {
            let token = key.token(&json!({ "alg": algorithm, "kid": "a" }), &victim());
            assert_refused(&token, &keys, &Unverified::NoKeyForAlgorithm);
        }
    }
    // One that names its algorithm is for no other of its kind.
    let keys = set(&[rsa.jwk(json!({ "alg": "RS256" }))]);
    assert_subject(&rsa.token(&json!({ "alg": "RS256" }), &victim()), &keys, "victim");
    for algorithm in ["RS384", "PS256"] {
        assert_refused(&rsa.token(&json!({ "alg": algorithm }), &victim()), &keys, &Unverified::NoKeyForAlgorithm);
    }
    // What is signed with one algorithm and says another.
    let keys = set(&[rsa.jwk(json!({}))]);
    let token = rsa.token_of(r#"{"alg":"RS256"}"#, r#"{"sub":"victim"}"#, "PS256");
    assert_refused(&token, &keys, &Unverified::Signature);
}

#[test]
fn a_signature_of_another_key_or_of_other_claims_is_none() {
    let (ours, theirs) = (SigningKey::p256(), SigningKey::p256());
    let keys = set(&[ours.jwk(json!({}))]);
    let header = json!({ "alg": "ES256" });
    assert_refused(&theirs.token(&header, &victim()), &keys, &Unverified::Signature);
    let (own, other) = (ours.token(&header, &json!({ "sub": "attacker" })), ours.token(&header, &victim()));
    assert_subject(&own, &keys, "attacker");
    let (signed, _) = other.rsplit_once('.').unwrap();
    let (_, signature) = own.rsplit_once('.').unwrap();
    assert_refused(&format!("{signed}.{signature}"), &keys, &Unverified::Signature);
    // The key that a token brings along verifies nothing.
    let header =
        json!({ "alg": "ES256", "jwk": theirs.jwk(json!({})), "jku": "https://attacker.example/keys", "x5c": [] });
    assert_refused(&theirs.token(&header, &victim()), &keys, &Unverified::Signature);
    // ECDSA with zeros (CVE-2022-21449).
    let zeros = format!("{signed}.{}", encode_url(&[0; 64]));
    assert_refused(&zeros, &keys, &Unverified::Signature);
}

#[test]
fn a_token_has_one_spelling() {
    let key = SigningKey::ed25519();
    let keys = set(&[key.jwk(json!({ "kid": "a" }))]);
    let token = key.token(&json!({ "alg": "EdDSA", "kid": "a" }), &json!({ "sub": "alice" }));
    assert_subject(&token, &keys, "alice");
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, payload) = signed.split_once('.').unwrap();
    // 64 bytes leave two bits in the last character.
    let last = signature.chars().last().unwrap();
    let next = char::from(u8::try_from(last).unwrap() + 1);
    let other_bits = format!("{}{next}", &signature[..signature.len() - 1]);
    for odd in [
        format!("{signed}.{signature}="),
        format!("{signed}.{signature}=="),
        format!("{signed}.{other_bits}"),
        format!("{signed}.{signature}!"),
        format!("{signed}.{signature} "),
        format!("{signed}. {signature}"),
        format!("{signed}.{signature}."),
        format!("{signed}..{signature}"),
        format!("{signed}.{signature}A"),
        format!("{signed}.{signature}AAAA"),
        format!("{signed}.{}", &signature[1..]),
        format!("{signed}."),
        format!("{signed}.{}", signature.replace('-', "+").replace('_', "/") + "+"),
        format!("{header}=.{payload}.{signature}"),
        format!(" {header}.{payload}.{signature}"),
        format!("{header}.{payload}=.{signature}"),
        format!("{header}.{payload}\n.{signature}"),
        format!("{token}.{}", "A".repeat(9000)),
    ] {
        assert_not_understood(&odd, &keys);
    }
    for other in
        ["", ".", "..", "opaque", "a.b.c", "ghp_1234.5678.90", signed, signature, &format!("{payload}x.y.z")[1..]]
    {
        assert_refused(other, &keys, &Unverified::NoToken);
    }
}

#[test]
fn what_libraries_read_differently_is_not_understood() {
    let key = SigningKey::ed25519();
    let keys = set(&[key.jwk(json!({}))]);
    let claims = r#"{"sub":"victim"}"#;
    assert_subject(&key.token_of(r#" {"alg":"EdDSA","typ":"at+JWT"} "#, claims, "EdDSA"), &keys, "victim");
    assert_subject(&key.token_of(r#"{"alg":"EdDSA","typ":"application/jwt"}"#, claims, "EdDSA"), &keys, "victim");
    for header in [
        r#"{"alg":"EdDSA","alg":"EdDSA"}"#,
        r#"{"alg":"HS256","alg":"EdDSA"}"#,
        r#"{"alg":"EdDSA","crit":["exp"],"exp":1}"#,
        r#"{"alg":"EdDSA","crit":[]}"#,
        r#"{"alg":"EdDSA","b64":false}"#,
        r#"{"alg":["EdDSA"]}"#,
        r#"{"alg":null}"#,
        r#"{"kid":"a"}"#,
        r#"{"alg":"EdDSA","kid":7}"#,
        r#"{"alg":"EdDSA","typ":"logout+jwt"}"#,
        r#"{"alg":"EdDSA","typ":1}"#,
        r#"{"alg":"EdDSA"} trailing"#,
        "{",
    ] {
        assert_not_understood(&key.token_of(header, claims, "EdDSA"), &keys);
    }
    let header = r#"{"alg":"EdDSA"}"#;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let long = format!("{{\"sub\":\"{}\"}}", "a".repeat(7000));
    for claims in [
        r#"{"sub":"attacker","sub":"victim"}"#,
        r#"{"sub":"a","s\u0075b":"b"}"#,
        r#"{"a":{"b":1,"b":2}}"#,
        r#"{"sub":"a","exp":"never"}"#,
        "\"a text\"",
        "[]",
        "",
        &deep,
        &long,
    ] {
        assert_not_understood(&key.token_of(header, claims, "EdDSA"), &keys);
    }
}
