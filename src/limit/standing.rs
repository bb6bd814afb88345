//! How much of each rate of a limit a key has left.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use smallvec::SmallVec;

/// How much of one rate a key has left. Shown to clients and operators.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Standing {
    /// How many more units may pass now. A request has as many units as it costs.
    pub remaining: u64,
    /// How long until more units may pass than now. Zero when nothing is used.
    pub reset: Duration,
}

/// One standing for each rate of a limit, in the order of the rates. Few limits have more than three.
pub type Standings = SmallVec<[Standing; 3]>;
