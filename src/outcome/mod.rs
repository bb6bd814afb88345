//! What an application's answer means: the `outcome` of a route.

/// What an answer means.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    Success,
    Failure,
    Neither,
}

impl Outcome {
    pub const ALL: [Self; 3] = [Self::Success, Self::Failure, Self::Neither];

    /// The word of metrics and of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neither => "neither",
        }
    }
}

/// The `outcome` section of a route.
#[derive(Clone, Debug)]
pub struct OutcomeRule {
    /// For answers that neither side matches.
    pub otherwise: Outcome,
}
