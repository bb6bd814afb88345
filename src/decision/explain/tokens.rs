//! The tokens of a request: which verify, and why the others do not.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::head::Fields;
use crate::jwt;
use crate::jwt::KeySet;
use crate::jwt::RequestClaims;
use crate::jwt::TokenPlace;
use crate::jwt::Validity;

/// What the tokens of a request prove.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExplainedTokens {
    pub claims: RequestClaims,
    /// Each, in the order in which they stand.
    pub tokens: Vec<TokenExplanation>,
}

/// Whether a token verifies.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct TokenExplanation {
    /// `bearer`, or the cookie or header that it stands in.
    pub place: String,
    pub verified: bool,
    /// Why it does not verify.
    pub reason: Option<String>,
}

impl ExplainedTokens {
    /// `keys` are those of a file, or the URL that they would have to be fetched from. `now` is by the wall clock.
    pub fn of(
        place: &TokenPlace,
        validity: &Validity,
        keys: Result<&KeySet, &str>,
        fields: &Fields,
        now: Timestamp,
    ) -> Self {
        let mut tokens = Vec::new();
        let claims = RequestClaims::of(&place.presented(fields), |token| {
            let verified = match &keys {
                Ok(keys) => jwt::verify(token, keys, validity, now),
                Err(_) => Err(jwt::verify_without_keys(token)),
            };
            let reason = verified.as_ref().err().map(|reason| match (reason, &keys) {
                (jwt::Unverified::NoKeys, Err(url)) => {
                    format!("its keys are not fetched from {url} to explain a request")
                }
                (reason, _) => reason.to_string(),
            });
            tokens.push(TokenExplanation { place: place.to_string(), verified: reason.is_none(), reason });
            verified.map(Arc::new)
        });
        Self { claims, tokens }
    }
}

impl fmt::Display for TokenExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            None => write!(f, "{}: verified", self.place),
            Some(reason) => write!(f, "{}: not verified, {reason}", self.place),
        }
    }
}
