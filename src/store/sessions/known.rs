//! A session, in full.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::decision::SignIn;
use crate::key::KeyHash;

/// A session, in full.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::store) struct KnownSession {
    pub(in crate::store) session: KeyHash,
    pub(in crate::store) account: KeyHash,
    pub(in crate::store) keep: Duration,
    pub(in crate::store) used: Timestamp,
}

impl KnownSession {
    /// The sessions that a success teaches.
    pub(in crate::store) fn learned(sign_in: &SignIn, now: Timestamp) -> impl Iterator<Item = Self> {
        let SignIn { account, keep, learned, .. } = sign_in;
        learned.iter().map(move |session| Self { session: *session, account: *account, keep: *keep, used: now })
    }
}
