//! Verifies the tokens of requests.

use std::sync::Arc;

use super::LiveKeys;
use super::TokenSettings;
use super::verified_tokens::VerifiedTokens;
use crate::clock::Timestamp;
use crate::head::FieldName;
use crate::head::Fields;
use crate::jwt;
use crate::jwt::Claims;
use crate::jwt::RequestClaims;
use crate::jwt::TokenPlace;
use crate::jwt::Unverified;
use crate::jwt::Validity;

/// Verifies the tokens of requests with the keys that are known at the moment. All workers share it.
#[derive(Debug)]
pub struct TokenVerifier {
    place: TokenPlace,
    validity: Validity,
    keys: Arc<LiveKeys>,
    verified: VerifiedTokens,
}

impl TokenVerifier {
    /// The verifier of a configuration. That before stays if nothing is different, with what it has verified.
    pub fn carry_over(settings: &TokenSettings, keys: &Arc<LiveKeys>, before: Option<&Arc<Self>>) -> Arc<Self> {
        let is_same = |before: &&Arc<Self>| {
            Arc::ptr_eq(&before.keys, keys)
                && (&before.place, &before.validity) == (&settings.place, &settings.validity)
        };
        if let Some(before) = before.filter(is_same) {
            return Arc::clone(before);
        }
        Arc::new(Self {
            place: settings.place.clone(),
            validity: settings.validity.clone(),
            keys: Arc::clone(keys),
            verified: VerifiedTokens::default(),
        })
    }

    /// What the tokens of a request claim. `now` is by the wall clock, which issuers go by.
    pub fn claims(&self, fields: &Fields, now: Timestamp) -> RequestClaims {
        RequestClaims::of(&self.place.presented(fields), |token| self.verify(token, now))
    }

    fn verify(&self, token: &str, now: Timestamp) -> Result<Arc<Claims>, Unverified> {
        let Some(keys) = self.keys.set() else { return Err(jwt::verify_without_keys(token)) };
        let hash = self.verified.hash(token);
        if let Some(claims) = self.verified.get(hash, &keys, now) {
            return Ok(claims);
        }
        match jwt::verify(token, &keys, &self.validity, now) {
            Ok(claims) => {
                let claims = Arc::new(claims);
                self.verified.add(hash, &keys, Arc::clone(&claims));
                Ok(claims)
            }
            Err(reason) => {
                if matches!(reason, Unverified::UnknownKey(_)) {
                    self.keys.miss();
                }
                Err(reason)
            }
        }
    }

    /// The header that tokens stand in, if it is one that the configuration names.
    pub fn header(&self) -> Option<&FieldName> {
        self.place.header()
    }

    /// The keys that are known now, and how their source is.
    pub fn keys(&self) -> &LiveKeys {
        &self.keys
    }
}
