//! Tokens of every algorithm, and the attacks on them.

mod attacks;
mod keys;
mod requests;
#[path = "../../../../tests/support/signing_key.rs"]
#[expect(unreachable_pub, reason = "shared with the tests of whole processes")]
mod signing_key;

use std::time::Duration;

use serde_json::{Value, json};

use self::signing_key::SigningKey;
use super::{Claims, KeySet, Unverified, Validity, verify};
use crate::words::clock::Timestamp;

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

fn set(keys: &[Value]) -> KeySet {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn verified(token: &str, keys: &KeySet) -> Result<Claims, Unverified> {
    verify(token, keys, &Validity { leeway: Duration::from_secs(30), ..Validity::default() }, NOW)
}

#[track_caller]
fn assert_subject(token: &str, keys: &KeySet, expected: &str) {
    let claims = verified(token, keys).unwrap();
    assert_eq!(claims.values("sub").collect::<Vec<_>>(), [expected]);
}

#[test]
fn tokens_of_every_algorithm_verify_with_a_key_of_their_kind() {
    let all = [
        (SigningKey::rsa(), &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"][..]),
        (SigningKey::p256(), &["ES256"]),
        (SigningKey::p384(), &["ES384"]),
        (SigningKey::ed25519(), &["EdDSA", "Ed25519"]),
    ];
    let keys = set(&all.each_ref().map(|(key, _)| key.jwk(json!({}))));
    for (key, algorithms) in &all {
        for algorithm in *algorithms {
            let token = key.token(&json!({ "alg": algorithm, "typ": "JWT" }), &json!({ "sub": algorithm }));
            assert_subject(&token, &keys, algorithm);
        }
    }
}

#[test]
fn a_token_is_kept_until_its_end_and_the_leeway() {
    let key = SigningKey::ed25519();
    let claims = json!({ "sub": "alice", "exp": 1_700_000_001, "nbf": 1_700_000_000 });
    let claims = verified(&key.token(&json!({ "alg": "EdDSA" }), &claims), &set(&[key.jwk(json!({}))])).unwrap();
    assert_eq!(claims.ends, Some(NOW + Duration::from_secs(31)));
}
