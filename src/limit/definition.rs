//! A limit of the configuration.

use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use super::Count;
use super::Rule;
use super::Then;
use crate::key::KeyPart;
use crate::key::KeySpec;
use crate::list::ListId;
use crate::outcome::Outcome;

/// The position of a limit in the policy that holds it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LimitId(pub u16);

/// One promise: how often a key may do something, and what happens beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub name: Arc<str>,
    pub key: KeySpec,
    pub missing: Missing,
    pub rule: Rule,
    pub count: Count,
    /// `distinct`: different values of this are counted instead of requests.
    pub distinct: Option<KeyPart>,
    /// An answer that means this forgets the key.
    pub reset_on: Option<Outcome>,
    pub then: Then,
    /// Decided and counted as if in force alone, never applied.
    pub shadow: bool,
    /// Lists whose members this limit does not hold for.
    pub unless: Vec<ListId>,
    /// `known_client` is among what it does not hold for.
    pub unless_known: bool,
    pub headers: Detail,
    pub on_failure: OnFailure,
}

/// What holds while a shared store does not answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum OnFailure {
    /// The same rule, counted in this process.
    #[default]
    Local,
    /// Requests pass uncounted.
    Allow,
    /// No request passes.
    Deny,
}

/// What a request is counted under that lacks a part of the key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Missing {
    /// The empty value: such requests share one budget.
    #[default]
    Count,
    /// This limit does not hold for it.
    Skip,
    /// It is denied.
    Deny,
}

/// How much of a limit's state a response shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detail {
    /// `RateLimit`, `RateLimit-Policy` and `Retry-After`.
    Full,
    RetryAfter,
    None,
}
