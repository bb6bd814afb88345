//! Where a key stands with the rates of a limit.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use smallvec::SmallVec;

/// Where a key stands with one rate: shown to clients and people.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Standing {
    /// How many more units may pass now; a request is as many units as it costs.
    pub remaining: u64,
    /// How long until more may pass than now; zero when nothing is used.
    pub reset: Duration,
}

/// One standing for each rate of a limit, in the order of the rates. Hardly any limit has more than three.
pub type Standings = SmallVec<[Standing; 3]>;
