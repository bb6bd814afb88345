//! The record of a request that has ended.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Version};

use super::TraceId;
use super::attacks::SignInAttempt;
use crate::rules::client::Identity;
use crate::rules::decision::{Denial, DenialCause, LimitReport, Penalty};
use crate::rules::key::KeyHash;
use crate::rules::limit::{ActionSeverity, LimitId};
use crate::rules::outcome::Outcome;
use crate::rules::route::{RouteId, UpstreamId};
use crate::words::word::words;

/// One request that has ended.
#[derive(Clone, Debug)]
pub struct RequestRecord<'a> {
    pub request_id: &'a str,
    pub identity: Identity,
    pub method: &'a Method,
    pub host: &'a str,
    /// As the client sent it, without the query.
    pub path: &'a str,
    pub query: Option<&'a str>,
    /// `None`: the head was not valid HTTP.
    pub version: Option<Version>,
    /// `https` where the client's own connection is encrypted, else `http`.
    pub scheme: &'static str,
    /// As the client sent it. It need not be UTF-8.
    pub user_agent: Option<&'a [u8]>,
    pub trace: Option<TraceId>,
    pub route: Option<RouteId>,
    pub decision: DecisionLabel,
    /// The name of the limit that decided.
    pub limit: Option<&'a str>,
    /// The name of the list that denies the client.
    pub list: Option<&'a str>,
    /// The id of the ban that denies the request.
    pub ban: Option<&'a str>,
    /// Every limit that was asked, shadow limits too.
    pub limits: &'a [LimitReport],
    /// Why a part of the request that a limit counts was not understood.
    pub unread: Option<&'static str>,
    /// The seconds of `Retry-After`.
    pub retry_after: Option<u64>,
    /// The status that the client got. `None`: the client left before.
    pub status: Option<StatusCode>,
    /// `None`: the route has no `outcome`.
    pub outcome: Option<ObservedOutcome>,
    /// `None`: the request was not forwarded.
    pub upstream: Option<UpstreamRecord<'a>>,
    /// Why the request was refused, or why the application did not answer, as a sentence.
    pub error: Option<&'a str>,
    /// From the head of the request to the end of the answer.
    pub duration: Duration,
    /// How long the decision took, the store included. `None`: nothing was decided.
    pub decision_duration: Option<Duration>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// `None`: no limit denied or held the request.
    pub applied_limit: Option<&'a AppliedLimit>,
    /// The hashes of the keys with a login name under which limits counted the request, as logs show them.
    pub keys: &'a [(LimitId, KeyHash)],
    /// `None`: the route has no `outcome`, or the request did not pass.
    pub sign_in: Option<&'a SignInAttempt>,
}

/// The limit that denied or held a request.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedLimit {
    pub limit: LimitId,
    /// The key that the limit counts the request under. `None`: a part of the key is missing.
    pub key: Option<KeyHash>,
    pub masked_key: Option<MaskedKey>,
    /// How long the request is denied or held. `None`: waiting does not end it.
    pub span: Option<Duration>,
    /// The request begins a ban.
    pub is_ban: bool,
    /// The request may begin a ban. That is known only when earlier requests are settled, and is notified then.
    pub is_suspect: bool,
}

/// A key as logs and events show it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MaskedKey {
    /// A hash of the key, equal on all gateways that share a store, so that log tools can count by it. It is not the
    /// key of the counter.
    pub hash: KeyHash,
    /// Each selector and its masked value.
    pub parts: Vec<(String, String)>,
}

/// How a request was forwarded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UpstreamRecord<'a> {
    pub id: UpstreamId,
    /// The server that answered, or else the last one tried, as the configuration writes it.
    pub server: Option<&'a str>,
    /// Why there was no answer, as the metric label `cause`: `connect`, `timeout`, ...
    pub failure: Option<&'static str>,
    /// The `X-Request-ID` of the application's answer, where it is not ours.
    pub request_id: Option<&'a str>,
    /// The servers tried before, each with the cause of its failure.
    pub previous_attempts: &'a [(Arc<str>, &'static str)],
}

// The `decision` of a request, in the request log, metrics and events.

words! {
    /// The decision of the gateway on a request.
    pub enum DecisionLabel {
        Allowed = "allowed",
        Denied = "denied",
        /// Denied by a ban that was in force, or that this request began.
        Banned = "banned",
        /// Denied by a deny list or by `only`.
        Listed = "listed",
        /// Held, then forwarded.
        Delayed = "delayed",
        /// Held, then denied.
        Tarpitted = "tarpitted",
        /// Denied, with a proof of work that the client may solve.
        Challenged = "challenged",
        /// Refused before any rule, or not answered by the application.
        Error = "error",
    }
}

impl DecisionLabel {
    /// Whether the application gets the request.
    pub fn passes(self) -> bool {
        matches!(self, Self::Allowed | Self::Delayed)
    }

    /// Whether a limit or a list denies the request. An error is no denial.
    pub fn is_denial(self) -> bool {
        !self.passes() && self != Self::Error
    }

    /// Of a request that is denied.
    pub fn of_denial(denial: &Denial) -> Self {
        match (&denial.cause, denial.penalty) {
            (DenialCause::Listed { .. } | DenialCause::NotOnList, _) => Self::Listed,
            (DenialCause::TooManyValues | DenialCause::DeniedDescriptor, _)
            | (DenialCause::Limited { .. }, Penalty::None) => Self::Denied,
            (DenialCause::Banned, _) | (DenialCause::Limited { .. }, Penalty::Ban) => Self::Banned,
            (DenialCause::Limited { .. }, Penalty::Tarpit(_)) => Self::Tarpitted,
            (DenialCause::Challenged(_), _) | (DenialCause::Limited { .. }, Penalty::Challenge(_)) => Self::Challenged,
        }
    }

    /// Of a request on which a limit acts like this.
    pub fn of_action(action: ActionSeverity) -> Self {
        match action {
            ActionSeverity::Delay => Self::Delayed,
            ActionSeverity::Deny => Self::Denied,
            ActionSeverity::Tarpit => Self::Tarpitted,
            ActionSeverity::Ban => Self::Banned,
            ActionSeverity::Challenge => Self::Challenged,
        }
    }
}

// The decision of a limit on a request, as metrics, the history and kept requests name it.

/// The decision of a limit on a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::record) enum LimitDecision {
    Allowed,
    Denied,
    /// The key is banned, by this request, before it or by an operator.
    Banned,
    Tarpitted,
    Challenged,
    Delayed,
    ShadowAllowed,
    ShadowDenied,
}

impl LimitDecision {
    pub(in crate::record) const COUNT: usize = Self::ShadowDenied as usize + 1;

    /// `applied`: what the limit does to the request; `None`: it lets it pass.
    pub(in crate::record) fn of(shadow: bool, applied: Option<ActionSeverity>) -> Self {
        match applied {
            None if shadow => Self::ShadowAllowed,
            None => Self::Allowed,
            Some(_) if shadow => Self::ShadowDenied,
            Some(ActionSeverity::Deny) => Self::Denied,
            Some(ActionSeverity::Ban) => Self::Banned,
            Some(ActionSeverity::Tarpit) => Self::Tarpitted,
            Some(ActionSeverity::Challenge) => Self::Challenged,
            Some(ActionSeverity::Delay) => Self::Delayed,
        }
    }

    pub(in crate::record) fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Banned => "banned",
            Self::Tarpitted => "tarpitted",
            Self::Challenged => "challenged",
            Self::Delayed => "delayed",
            Self::ShadowAllowed => "shadow_allowed",
            Self::ShadowDenied => "shadow_denied",
        }
    }
}

// The `outcome` of a request, in the request log and in metrics.

/// The outcome in the application's answer, if the route has an `outcome`.
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

// The names under which requests on no route, or on several, are counted. No route may have them.

/// The value of the label `route` in metrics.
pub const NO_ROUTE_LABEL: &str = "none";

/// The value of that label for all routes that have no series of their own.
pub const OTHER_ROUTES_LABEL: &str = "other";

/// The name in the history and in what a replay reports.
pub const NO_ROUTE: &str = "-";
