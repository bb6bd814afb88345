//! What requests and answers say of sessions, for the store.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use smallvec::SmallVec;

use crate::key::KeyHash;

/// Sessions of one request or answer, as hashes.
pub type SessionHashes = SmallVec<[KeyHash; 2]>;

/// An answer that looks like a success of this account. It is the account's own unless the request carried a session of
/// another account.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SignIn {
    pub account: KeyHash,
    /// How long each session is remembered after its last use.
    pub keep: Duration,
    /// The sessions of the account from now on, if the success is its own.
    pub learned: SessionHashes,
    /// The sessions that the request carried.
    pub carried: SessionHashes,
}

/// What an answer does to the session that its request carried.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum SessionChange {
    /// `new` is a session of the account of `old`, and so is `old` still. Nothing happens if `old` is not known.
    Renew { old: KeyHash, new: KeyHash },
    /// The application has ended the session.
    Forget(KeyHash),
}
