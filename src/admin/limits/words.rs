//! The words that the API has for the choices of a limit: those of the configuration.

use serde::Serialize;
use utoipa::ToSchema;

use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Detail;
use crate::limit::Missing;
use crate::limit::OnFailure;
use crate::outcome::Outcome;

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AlgorithmWord {
    SlidingWindowLog,
    SlidingWindowCounter,
    BucketedWindow,
    FixedWindow,
    TokenBucket,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CountWord {
    Requests,
    Attempts,
    Failures,
    Successes,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OutcomeWord {
    Success,
    Failure,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum MissingWord {
    Count,
    Skip,
    Deny,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum HeadersWord {
    Full,
    RetryAfter,
    None,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = OnFailure)]
#[serde(rename_all = "lowercase")]
pub(in crate::admin) enum OnFailureWord {
    Local,
    Allow,
    Deny,
}

impl From<Algorithm> for AlgorithmWord {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::SlidingWindowLog => Self::SlidingWindowLog,
            Algorithm::SlidingWindowCounter => Self::SlidingWindowCounter,
            Algorithm::BucketedWindow { .. } => Self::BucketedWindow,
            Algorithm::FixedWindow => Self::FixedWindow,
            Algorithm::TokenBucket { .. } => Self::TokenBucket,
        }
    }
}

impl From<Count> for CountWord {
    fn from(count: Count) -> Self {
        match count {
            Count::Requests => Self::Requests,
            Count::Attempts => Self::Attempts,
            Count::Failures => Self::Failures,
            Count::Successes => Self::Successes,
        }
    }
}

impl OutcomeWord {
    /// `None`: no limit resets on that outcome.
    pub(super) fn of(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Success => Some(Self::Success),
            Outcome::Failure => Some(Self::Failure),
            Outcome::Neither => None,
        }
    }
}

impl From<Missing> for MissingWord {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Count => Self::Count,
            Missing::Skip => Self::Skip,
            Missing::Deny => Self::Deny,
        }
    }
}

impl From<Detail> for HeadersWord {
    fn from(detail: Detail) -> Self {
        match detail {
            Detail::Full => Self::Full,
            Detail::RetryAfter => Self::RetryAfter,
            Detail::None => Self::None,
        }
    }
}

impl From<OnFailure> for OnFailureWord {
    fn from(on_failure: OnFailure) -> Self {
        match on_failure {
            OnFailure::Local => Self::Local,
            OnFailure::Allow => Self::Allow,
            OnFailure::Deny => Self::Deny,
        }
    }
}
