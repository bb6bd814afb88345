//! Which clients a route remembers after a success.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::client::Prefix;
use crate::key::KeyPart;

/// `known_clients`: after a success the client is known for that subject.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownClients {
    /// What a client is known for: a user name.
    pub of: KeyPart,
    /// So many of them for each subject, the latest.
    pub remember: NonZeroU32,
    /// For so long after the last success.
    pub keep: Duration,
    pub by: KnownBy,
    /// Addresses are cut to this before they are compared.
    pub prefix: Prefix,
}

/// What a known client is recognised by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KnownBy {
    #[default]
    Address,
    /// A signed device cookie.
    Cookie,
}
