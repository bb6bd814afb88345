//! A limit of the configuration.

use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use super::Action;
use super::Count;
use super::DescriptorFilter;
use super::Rates;
use super::Rule;
use super::Then;
use crate::key::KeyPart;
use crate::key::KeySpec;
use crate::list::ListId;
use crate::outcome::Outcome;

/// The position of a limit in the policy that holds it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LimitId(pub u16);

/// How often a key may do something, and what happens beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub name: Arc<str>,
    pub key: KeySpec,
    pub missing: Missing,
    pub rule: Rule,
    pub count: Count,
    /// Which descriptors it meets, in a domain.
    pub descriptors: DescriptorFilter,
    /// `distinct`: different values of this part are counted instead of requests.
    pub distinct: Option<KeyPart>,
    /// The outcome that resets the key.
    pub reset_on: Option<Outcome>,
    pub then: Then,
    /// Decided and counted as if it were the only limit, but never applied.
    pub shadow: bool,
    /// The limit does not hold for members of these lists.
    pub unless: Vec<ListId>,
    /// `known_client` in `unless`: the limit does not hold for known clients.
    pub unless_known: bool,
    pub headers: Detail,
    pub on_failure: OnFailure,
    /// Whether gateways may lease units of it from a store that they share.
    pub leases: bool,
}

impl Limit {
    /// Whether a gateway may hold units that another one would let pass: not where a request beyond the limit bans its key.
    pub fn may_be_held(&self) -> bool {
        self.leases && !matches!(self.then.action, Action::Ban(_))
    }

    /// The rates whose state responses may show; `None`: it is hidden, or the limit has no rates of requests.
    pub fn shown_rates(&self) -> Option<&Rates> {
        match &self.rule {
            Rule::Rates { rates, .. } if self.headers == Detail::Full && !self.shadow => Some(rates),
            _ => None,
        }
    }
}

/// What a limit does during an outage of the shared store.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum OnFailure {
    /// Counts by the same rule in this process.
    #[default]
    Local,
    /// Requests pass uncounted.
    Allow,
    /// No request passes.
    Deny,
}

/// How a request is counted that lacks a part of the key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Missing {
    /// Under the empty value, which all such requests share.
    #[default]
    Count,
    /// Not at all: the limit does not hold for it.
    Skip,
    /// Not at all: the request is denied.
    Deny,
}

/// Which headers show the state of a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detail {
    /// `RateLimit`, `RateLimit-Policy` and `Retry-After`.
    Full,
    RetryAfter,
    None,
}
