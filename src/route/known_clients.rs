//! Which clients a route remembers after a success.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::client::Prefix;
use crate::key::KeySpec;

/// `known_clients`: after a success the client is known for a user name.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownClients {
    /// The user name, and what else tells accounts apart, such as the host.
    pub of: KeySpec,
    /// How many clients are remembered for each user name, the latest ones.
    pub remember: NonZeroU32,
    /// How long a client is known after its last success.
    pub keep: Duration,
    pub by: KnownBy,
    /// Addresses are cut to this prefix before they are compared.
    pub prefix: Prefix,
}

/// What a client is known by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KnownBy {
    #[default]
    Address,
    /// A signed device cookie.
    Cookie,
}
