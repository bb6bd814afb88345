//! When a request was decided.

use std::time::Duration;

use crate::clock::Timestamp;

/// When a request was decided.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// By the clock of the worker.
    pub decided: Timestamp,
    /// How long the request had been here by then.
    pub age: Duration,
    /// How long the decision took, the store included.
    pub took: Duration,
}
