//! What the explanation of a request consists of.

use std::net::IpAddr;

use serde::Serialize;

use super::KeyPartExplanation;
use super::KnownClientsExplanation;
use super::OutcomeExplanation;
use crate::list::Membership;

/// Everything a request would meet. Prints as text for people. Values of keys stand in clear: it is made for an
/// operator about a request that the operator wrote.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Explanation {
    pub client: IpAddr,
    pub method: String,
    /// In canonical form, as is the path.
    pub host: String,
    pub path: String,
    /// What else applications may take the path for; `None`: for any.
    pub readings: Option<Vec<String>>,
    /// Every list of the configuration.
    pub lists: Vec<ListExplanation>,
    pub access: AccessExplanation,
    /// Every route, in the order they are tried.
    pub routes: Vec<RouteExplanation>,
    /// The route the request goes by; `None`: the default upstream.
    pub route: Option<String>,
    pub upstream: String,
    /// Whether the body is read before anything is decided.
    pub reads_body: bool,
    /// What the application's answer would mean; `None`: nobody asks.
    pub outcome: Option<OutcomeExplanation>,
    /// What clients are known for where the request goes.
    pub known_clients: Option<KnownClientsExplanation>,
    /// What denies the request before any limit is asked.
    pub denied: Option<String>,
    /// Every limit that stands where the request goes.
    pub limits: Vec<LimitExplanation>,
}

/// What the lists of `access` say.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessExplanation {
    Ordinary,
    /// By this list: no limit holds.
    Allowed(String),
    /// By this list.
    Denied(String),
}

/// How a request stands to one list.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ListExplanation {
    pub name: String,
    /// What of a request is looked up in it.
    pub of: String,
    pub holds: Membership,
}

/// What became of one route.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct RouteExplanation {
    pub name: String,
    pub matches: RouteMatch,
    /// Why it does not match.
    pub reason: Option<String>,
    /// Whether it is for members of other lists only.
    pub bars: bool,
}

/// How surely a route matches.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteMatch {
    /// However the application reads the request.
    Surely,
    /// As the request is written; an override or a repeated value may say otherwise.
    Plainly,
    /// Only if the application takes an override or one of repeated values.
    Possibly,
    No,
    /// An earlier one matched.
    NotTried,
}

/// What one limit makes of the request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LimitExplanation {
    pub name: String,
    /// `10/minute; 100/hour`, `10/minute, each costs 2`, or `20 in flight`.
    pub rule: String,
    /// `None` for a bound on what is in flight.
    pub algorithm: Option<&'static str>,
    /// `requests`, `attempts`, `failures` or `successes`.
    pub count: &'static str,
    /// What different values are counted of.
    pub distinct: Option<KeyPartExplanation>,
    /// The answer that forgets what was counted.
    pub reset_on: Option<&'static str>,
    /// Whether it holds for clients that are known.
    pub unless_known: bool,
    /// `deny`, `delay 20s`, `tarpit 20s`, `ban 15m, 1h, 24h` or `challenge`.
    pub then: String,
    pub shadow: bool,
    pub outcome: LimitOutcome,
    /// The parts of the key with their values; none is one key for all.
    pub key: Vec<KeyPartExplanation>,
}

/// Whether a limit counts the request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitOutcome {
    /// Under so many keys.
    Counted(usize),
    /// Its `unless` names this list.
    Freed(String),
    /// A part of the key is missing: `missing: skip`.
    Skipped,
    /// A part of the key is missing: `missing: deny`.
    Denied,
    /// It counts by answers, and nothing says what they mean where the request goes.
    Unanswered,
    /// A field was sent too often: 400.
    TooManyValues,
    /// The client is on a list of `access.allow`, or denied before.
    NotAsked,
}
