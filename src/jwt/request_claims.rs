//! What the tokens of one request claim.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Claims;
use super::PresentedTokens;
use super::Unverified;

/// The claims of the verified tokens in a request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RequestClaims {
    verified: SmallVec<[Arc<Claims>; 1]>,
    /// Whether something beside them may be taken for a valid token.
    may_hide: bool,
}

impl RequestClaims {
    /// Of a request without a token.
    pub const NONE: &'static Self = &Self { verified: SmallVec::new_const(), may_hide: false };

    /// Verifies everything that a request presents.
    pub fn of(
        presented: &PresentedTokens<'_>,
        mut verify: impl FnMut(&str) -> Result<Arc<Claims>, Unverified>,
    ) -> Self {
        let mut claims = Self { may_hide: presented.may_hide, ..Self::default() };
        let mut has_unverified = presented.has_others;
        for token in &presented.tokens {
            match verify(token) {
                Ok(verified) => claims.verified.push(verified),
                Err(reason) => {
                    has_unverified = true;
                    claims.may_hide |= reason.may_hide_claims();
                }
            }
        }
        // An application that reads something else than the verified token may take its client for somebody else.
        claims.may_hide |= has_unverified && !claims.verified.is_empty();
        claims
    }

    /// The values of a claim in every verified token.
    pub fn values<'c>(&'c self, path: &'c str) -> impl Iterator<Item = &'c str> {
        self.verified.iter().flat_map(move |claims| claims.values(path))
    }

    /// Whether an application may read a claim there that is not among its [`values`](Self::values): beside the verified
    /// token stands something else, or a verified token lacks the claim that another has.
    pub fn may_hide(&self, path: &str) -> bool {
        let lacks = |claims: &Arc<Claims>| claims.values(path).next().is_none();
        self.may_hide || (self.verified.len() > 1 && self.verified.iter().any(lacks))
    }

    /// Whether a token was verified.
    pub fn is_verified(&self) -> bool {
        !self.verified.is_empty()
    }
}
