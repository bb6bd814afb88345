//! What an application's answer means: the `outcome` of a route.
//!
//! [`OutcomeRule::of_head`] says it where the head of an answer is enough. Where it is not, the body is fed to an
//! [`Inspection`] as it streams.

pub mod body;
pub mod inspection;
pub mod json;
pub mod matchers;
pub mod set_cookie;
pub mod status;

pub use self::body::BodyPattern;
pub use self::body::InvalidBodyPattern;
pub use self::inspection::Inspection;
pub use self::matchers::Matchers;
pub use self::status::InvalidStatus;
pub use self::status::StatusSet;

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

/// The `outcome` section of a route. Where both sides match, it is a failure.
#[derive(Clone, Debug)]
pub struct OutcomeRule {
    pub success: Option<Matchers>,
    pub failure: Option<Matchers>,
    /// For answers that neither side matches.
    pub otherwise: Outcome,
}

impl OutcomeRule {
    /// Without `otherwise` what does not match is the opposite of the only side given, else neither.
    pub fn new(success: Option<Matchers>, failure: Option<Matchers>, otherwise: Option<Outcome>) -> Self {
        let otherwise = otherwise.unwrap_or(match (&success, &failure) {
            (Some(_), None) => Outcome::Failure,
            (None, Some(_)) => Outcome::Success,
            _ => Outcome::Neither,
        });
        Self { success, failure, otherwise }
    }
}
