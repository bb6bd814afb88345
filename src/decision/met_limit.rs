//! What one limit made of a request that was denied or held.

use std::time::Duration;

use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::limit::Standings;

/// A limit that a denied or held request met.
#[derive(Clone, Debug, PartialEq)]
pub struct MetLimit {
    pub limit: LimitId,
    /// The key that it denies, or else the one with the least left. `None`: a part of the key is missing, and the limit
    /// denies such requests.
    pub key: Option<KeyHash>,
    /// Whether the limit denies or holds the request. A shadow limit only would.
    pub denied: bool,
    /// How long until it lets such a request pass. `None`: it does now, or no wait helps.
    pub wait: Option<Duration>,
    /// Where the key stands, one standing for each rate. Empty where it was not counted, and for `concurrent`.
    pub standings: Standings,
}
