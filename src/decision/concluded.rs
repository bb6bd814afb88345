//! What becomes of a request: the last word of the rules.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::Pending;
use crate::key::KeyHash;
use crate::limit::DenyResponse;
use crate::limit::LimitId;
use crate::limit::Standings;
use crate::route::RouteId;
use crate::route::UpstreamId;

/// What becomes of a request.
#[derive(Clone, Debug)]
pub enum Decision<'a> {
    Pass(Pass),
    /// In a box: most requests pass, and what is handed on for them stays small.
    Deny(Box<Denial<'a>>),
}

/// A request that is forwarded.
#[derive(Clone, Debug)]
pub struct Pass {
    pub route: Option<RouteId>,
    pub upstream: UpstreamId,
    /// The limit that delays it, and how long it is held before it is forwarded.
    pub delay: Option<(LimitId, Duration)>,
    /// What that limit counts it under.
    pub delayed_key: Option<KeyHash>,
    /// Slots in flight to give back when the answer is through.
    pub slots: SmallVec<[KeyHash; 2]>,
    /// What waits for the outcome; `None`: nobody asks what the answer means.
    pub pending: Option<Box<Pending>>,
    pub report: Report,
}

/// A request that is answered here.
#[derive(Clone, Debug)]
pub struct Denial<'a> {
    pub route: Option<RouteId>,
    pub cause: Cause,
    /// The limit that decided: of those that deny, the one with the longest wait; the first one where waits are equal.
    /// A limit that denies because a part of its key is missing comes before them: no wait ends that.
    pub limit: Option<LimitId>,
    /// What that limit counts the request under, and how long until it would let it pass; `None` where no wait ends it.
    /// Of a ban that begins it is nothing yet.
    pub key: Option<KeyHash>,
    pub wait: Option<Duration>,
    /// How it is to look: that of the limit that decided, else of the route, else the general one. The most particular
    /// one given counts whole; what it leaves open is as built in, not as a more general one says.
    pub response: &'a DenyResponse,
    /// What the limit that decided does beside denying.
    pub penalty: Penalty,
    /// The bans that begin with this denial.
    pub trips: SmallVec<[Trip; 1]>,
    /// Whether the limit that decided bans once it is clear that its slots do not come back; not said here.
    pub is_suspect: bool,
    /// Slots that shadow limits took, which are counted as if they were in force alone: to give back at once.
    pub slots: SmallVec<[KeyHash; 2]>,
    /// What shadow limits charged that counts by outcome: there is none.
    pub pending: Option<Box<Pending>>,
    pub report: Report,
}

/// What a denial is beside a denial.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Penalty {
    #[default]
    None,
    /// The key is banned, since before or from now on.
    Ban,
    /// The answer is held for so long.
    Tarpit(Duration),
    /// The answer is a page whose proof of work buys one budget for this key.
    Challenge(KeyHash),
}

/// A ban that begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Trip {
    /// Its action is [`Action::Ban`](crate::limit::Action::Ban).
    pub limit: LimitId,
    pub key: KeyHash,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The client stands on a deny list: 403.
    Listed { list: Arc<str> },
    /// The address of the client is banned: 403.
    Banned,
    /// The route is for members of other lists only: 403.
    NotOnList,
    /// A field was sent more often than anyone honest sends it: 400.
    TooManyValues,
    /// Limits deny it, in the order of the configuration. `retry_after` is the longest wait of those whose `headers`
    /// show one: none at all for a limit that denies what is missing or begins a ban; `None` where no limit shows any.
    Limited { limits: SmallVec<[LimitId; 2]>, retry_after: Option<Duration> },
}

/// What response headers, log and metrics say about the limits a request met.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Each limit decided, in the order of the plan.
    pub limits: Vec<LimitReport>,
}

/// How one limit decided, and where its key (the one with the least left) stands.
#[derive(Clone, Debug)]
pub struct LimitReport {
    pub limit: LimitId,
    pub shadow: bool,
    pub denied: bool,
    pub standings: Standings,
}
