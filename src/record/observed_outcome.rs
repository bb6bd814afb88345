//! The `outcome` of a request, in the request log and in metrics.

use crate::outcome::Outcome;

/// What the gateway learned from the application's answer, where the route has an `outcome`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ObservedOutcome {
    Known(Outcome),
    /// The request reached the application, but there was no answer, or the answer does not say.
    Unknown,
}

impl ObservedOutcome {
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Known(outcome) => Some(outcome),
            Self::Unknown => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Known(outcome) => outcome.as_str(),
            Self::Unknown => "unknown",
        }
    }
}
