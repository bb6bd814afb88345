//! A request that is denied: why, by which limit, and what happens besides.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use smallvec::smallvec;

use super::LimitReports;
use super::PendingOutcome;
use super::Policy;
use crate::key::KeyHash;
use crate::limit::DenyResponse;
use crate::limit::Detail;
use crate::limit::LimitId;
use crate::route::RouteId;

/// A request that is answered here.
#[derive(Clone, Debug)]
pub struct Denial<'a> {
    pub route: Option<RouteId>,
    pub cause: DenialCause,
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
    pub new_bans: SmallVec<[NewBan; 1]>,
    /// Whether the limit that decided bans once it is clear that its slots do not come back; not said here.
    pub is_suspect: bool,
    /// Slots that shadow limits took, which are counted as if they were in force alone: to give back at once.
    pub slots: SmallVec<[KeyHash; 2]>,
    /// What shadow limits charged that counts by outcome: there is none.
    pub pending: Option<Box<PendingOutcome>>,
    pub report: LimitReports,
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
pub struct NewBan {
    /// Its action is [`Action::Ban`](crate::limit::Action::Ban).
    pub limit: LimitId,
    pub key: KeyHash,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq)]
pub enum DenialCause {
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

impl<'p> Denial<'p> {
    /// Denied by the limit that would have delayed it for `span`, after which it may come again. What the request has
    /// reserved, and what its limits said, stays with whoever held it.
    pub fn instead_of_delay(policy: &'p Policy, route: Option<RouteId>, limit: LimitId, span: Duration) -> Self {
        let of_route = route.and_then(|route| policy.routes.get(route).deny_response.as_deref());
        let retry_after = (policy.limit(limit).headers != Detail::None).then_some(span);
        let cause = DenialCause::Limited { limits: smallvec![limit], retry_after };
        let response = of_route.unwrap_or(&policy.deny_response);
        Self { limit: Some(limit), wait: Some(span), ..Self::bare(route, cause, response) }
    }

    /// Denied for this, and nothing more to say or to do.
    pub(super) fn bare(route: Option<RouteId>, cause: DenialCause, response: &'p DenyResponse) -> Self {
        Self {
            route,
            cause,
            limit: None,
            key: None,
            wait: None,
            response,
            penalty: Penalty::None,
            new_bans: SmallVec::new(),
            is_suspect: false,
            slots: SmallVec::new(),
            pending: None,
            report: LimitReports::default(),
        }
    }
}
