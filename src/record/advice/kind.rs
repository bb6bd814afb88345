//! One piece of advice.

use crate::clock::Timestamp;

/// What looks misconfigured, and what to write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Advice {
    pub kind: AdviceKind,
    /// What was seen, with its numbers.
    pub message: String,
    /// Since when, by the wall clock.
    pub since: Timestamp,
    pub limit: Option<String>,
    pub route: Option<String>,
    /// The line to write.
    pub help: String,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum AdviceKind {
    /// A peer that is no trusted proxy names its client.
    UntrustedForwarding,
    /// Nearly all requests come from one address.
    OneClient,
    /// Half of the requests lack the login field that a limit counts by.
    MissingField,
    /// No name matches the `pattern` of a limit.
    PatternMatchesNothing,
    /// The answers match neither side of an outcome.
    OutcomeMatchesNeither,
    /// No request has met the limit.
    LimitNeverCounted,
    /// A proxy asks about requests of a route with rules that only the answer of the application, or the end of a request,
    /// can satisfy.
    AnswersUnseen,
    /// The keys that tokens are verified with cannot be fetched.
    KeysUnavailable,
    /// The configuration on disk has mistakes, so that the one before stays in force.
    ReloadRefused,
    /// A warning of `check`.
    Check,
}

impl AdviceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UntrustedForwarding => "untrusted_forwarding",
            Self::OneClient => "one_client",
            Self::MissingField => "missing_field",
            Self::PatternMatchesNothing => "pattern_matches_nothing",
            Self::OutcomeMatchesNeither => "outcome_matches_neither",
            Self::LimitNeverCounted => "limit_never_counted",
            Self::AnswersUnseen => "answers_unseen",
            Self::KeysUnavailable => "keys_unavailable",
            Self::ReloadRefused => "reload_refused",
            Self::Check => "check",
        }
    }
}
