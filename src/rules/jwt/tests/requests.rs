//! Requests with several tokens, and with other things beside them.

use std::sync::Arc;

use serde_json::json;
use smallvec::smallvec;

use crate::rules::jwt::{Claims, PresentedTokens, RequestClaims, Unverified};

/// The claims of a request with these tokens: a name verifies and is the subject, but for those that fail.
fn claims(tokens: &[&str], has_others: bool) -> RequestClaims {
    let mut presented = PresentedTokens { tokens: smallvec![], has_others, may_hide: false };
    presented.tokens.extend(tokens.iter().map(|token| (*token).into()));
    RequestClaims::of(&presented, |token| match token {
        "expired" => Err(Unverified::Expired),
        "odd" => Err(Unverified::NotUnderstood("it is odd")),
        "anonymous" => Ok(Arc::new(Claims::new(json!({}).as_object().unwrap(), None).unwrap())),
        name => Ok(Arc::new(Claims::new(json!({ "sub": name }).as_object().unwrap(), None).unwrap())),
    })
}

#[track_caller]
fn check(tokens: &[&str], has_others: bool, subjects: &[&str], may_hide: bool) {
    let claims = claims(tokens, has_others);
    assert_eq!(claims.values("sub").collect::<Vec<_>>(), subjects, "{tokens:?}");
    assert_eq!(claims.may_hide("sub"), may_hide, "{tokens:?}");
    assert_eq!(claims.is_verified(), tokens.iter().any(|token| !["expired", "odd"].contains(token)));
}

#[test]
fn each_verified_token_counts_and_what_stands_beside_one_may_hide_another() {
    check(&[], false, &[], false);
    check(&["alice"], false, &["alice"], false);
    check(&["alice", "bob"], false, &["alice", "bob"], false);
    check(&["alice", "expired"], false, &["alice"], true);
    check(&["expired", "alice"], false, &["alice"], true);
    check(&["alice"], true, &["alice"], true);
    check(&["alice", "anonymous"], false, &["alice"], true);
    check(&["anonymous"], false, &[], false);
}

#[test]
fn a_token_that_surely_does_not_verify_hides_nothing() {
    check(&["expired"], false, &[], false);
    check(&[], true, &[], false);
    check(&["odd"], false, &[], true);
    check(&["alice", "odd"], false, &["alice"], true);
    assert_eq!(RequestClaims::NONE, &RequestClaims::default());
}
