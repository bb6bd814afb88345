//! A request that is denied: why, by which limit, and what happens besides.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use smallvec::smallvec;

use super::LimitReports;
use super::MetLimit;
use super::PendingOutcome;
use super::Policy;
use super::enter::ListChallenge;
use crate::key::KeyHash;
use crate::limit::Action;
use crate::limit::DenyResponse;
use crate::limit::Detail;
use crate::limit::LimitId;
use crate::route::RouteId;

/// A request that the gateway answers itself.
#[derive(Clone, Debug)]
pub struct Denial {
    pub route: Option<RouteId>,
    pub cause: DenialCause,
    /// The limit that decided: the severest of those that deny, then the one with the longest wait, then the first one.
    /// Missing parts of a key have the longest wait, because no wait helps.
    pub limit: Option<LimitId>,
    /// The key that this limit counts the request under.
    pub key: Option<KeyHash>,
    /// How long until this limit lets the request pass. `None`: no wait helps. Zero for a ban that begins.
    pub wait: Option<Duration>,
    /// What the limit that decided does besides denying.
    pub penalty: Penalty,
    /// The bans that begin with this denial.
    pub new_bans: SmallVec<[NewBan; 1]>,
    /// Whether the limit that decided bans as soon as it is certain that its reservations are not given back. The
    /// gateway sets this.
    pub is_suspect: bool,
    /// Slots that shadow limits took, as if each were the only limit in force. They are to be given back at once.
    pub slots: SmallVec<[KeyHash; 2]>,
    /// What shadow limits charged that count by outcome. A denied request has no outcome.
    pub pending: Option<Box<PendingOutcome>>,
    pub report: LimitReports,
    /// Every limit that the request met.
    pub met: SmallVec<[MetLimit; 2]>,
}

/// What a limit does besides denying.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Penalty {
    #[default]
    None,
    /// The key is banned, before this request or from now on.
    Ban,
    /// The answer is held for this long.
    Tarpit(Duration),
    /// The answer is a page. Its proof of work resets this key.
    Challenge(KeyHash),
}

/// A ban that begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NewBan {
    /// Its action is [`Action::Ban`].
    pub limit: LimitId,
    pub key: KeyHash,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq)]
pub enum DenialCause {
    /// The client is on a deny list: 403.
    Listed { list: Arc<str> },
    /// A list denies the client until it has met a challenge.
    Challenged(ListChallenge),
    /// The address of the client is banned: 403.
    Banned,
    /// `only` names no list with this client: 403.
    NotOnList,
    /// The client sent a field too often: 400.
    TooManyValues,
    /// The route of a domain denies one of the descriptors, whatever was counted.
    DeniedDescriptor,
    /// Limits deny it, in the order of the configuration. `retry_after` is the longest wait of those whose `headers`
    /// show one. It is zero where a part of the key is missing or a ban begins. `None`: no limit shows a wait.
    Limited { limits: SmallVec<[LimitId; 2]>, retry_after: Option<Duration> },
}

impl Denial {
    /// Denied by the limit that would have delayed the request for `span`; after that the client may retry.
    /// Reservations and reports of the request stay with the caller.
    pub fn instead_of_delay(policy: &Policy, route: Option<RouteId>, limit: LimitId, span: Duration) -> Self {
        let retry_after = (policy.limit(limit).headers != Detail::None).then_some(span);
        let cause = DenialCause::Limited { limits: smallvec![limit], retry_after };
        Self { limit: Some(limit), wait: Some(span), ..Self::bare(route, cause) }
    }

    /// How the answer looks: the response of the limit that decided, else that of the route, else the general one. They
    /// are not merged: what the chosen one leaves open is as built in.
    pub fn response<'p>(&self, policy: &'p Policy) -> &'p DenyResponse {
        if !matches!(self.cause, DenialCause::Limited { .. }) {
            return &policy.deny_response;
        }
        if let Some(Action::Deny(Some(own))) = self.limit.map(|limit| &policy.limit(limit).then.action) {
            return own;
        }
        let of_route = self.route.and_then(|route| policy.routes.get(route).deny_response.as_deref());
        of_route.unwrap_or(&policy.deny_response)
    }

    /// A denial with a cause and nothing else.
    pub(super) fn bare(route: Option<RouteId>, cause: DenialCause) -> Self {
        let penalty = match &cause {
            DenialCause::Challenged(challenge) => Penalty::Challenge(challenge.key),
            _ => Penalty::None,
        };
        Self {
            route,
            cause,
            limit: None,
            key: None,
            wait: None,
            penalty,
            new_bans: SmallVec::new(),
            is_suspect: false,
            slots: SmallVec::new(),
            pending: None,
            report: LimitReports::default(),
            met: SmallVec::new(),
        }
    }
}
