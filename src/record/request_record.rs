//! What is recorded of a request when it has ended.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::StatusCode;
use http::Version;

use super::DecisionLabel;
use super::ObservedOutcome;
use super::TraceId;
use crate::client::Identity;
use crate::decision::LimitReport;
use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::route::RouteId;
use crate::route::UpstreamId;

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
    /// The same on all gateways that share a store, so that log tools can count by it. It is not the key of the
    /// counter.
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
