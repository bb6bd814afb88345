//! What one limit made of a request that was denied or held.

use crate::key::KeyHash;
use crate::limit::ActionSeverity;
use crate::limit::LimitId;
use crate::limit::Standings;

/// A limit that a denied or held request met.
#[derive(Clone, Debug, PartialEq)]
pub struct MetLimit {
    pub limit: LimitId,
    /// The key that it denies, or else the one with the least left. `None`: a part of the key is missing, and the limit
    /// denies such requests.
    pub key: Option<KeyHash>,
    /// What the limit does to the request. `None`: it lets it pass. A shadow limit only would.
    pub applied: Option<ActionSeverity>,
    /// Where the key stands, one standing for each rate. Empty where it was not counted, and for `concurrent`.
    pub standings: Standings,
}
