//! The parts of an explanation.

use std::net::IpAddr;

use serde::Serialize;

use super::KeyPartExplanation;
use super::KnownClientsExplanation;
use super::OutcomeExplanation;
use super::SignInExplanation;
use super::TokenExplanation;
use crate::list::Membership;
use crate::request::NotUnderstood;

/// Who asks about a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asker {
    /// The client itself: the gateway forwards the request, and sees its answer.
    #[default]
    Client,
    /// A proxy that sees the answer alone.
    ForwardAuth,
}

/// All rules that a request would meet. Prints as text. Values of keys are in clear, because the operator who reads it
/// wrote the request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Explanation {
    pub asker: Asker,
    pub client: IpAddr,
    pub method: String,
    /// In canonical form, like the path.
    pub host: String,
    pub path: String,
    /// Other paths that applications may read; `None`: any path.
    pub readings: Option<Vec<String>>,
    /// Every list of the configuration.
    pub lists: Vec<ListExplanation>,
    pub access: AccessExplanation,
    /// Every route, in the order they are tried.
    pub routes: Vec<RouteExplanation>,
    /// The route that forwards the request; `None`: the default upstream.
    pub route: Option<String>,
    pub upstream: String,
    /// The tokens whose claims rules may read.
    pub tokens: Vec<TokenExplanation>,
    /// Whether the gateway reads the body before it decides.
    pub reads_body: bool,
    /// Why the body as a whole is not understood. `None`: it is, or there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<NotUnderstood>,
    /// Whether rules look for fields in a body that the proxy, which asks, does not send along.
    pub misses_body: bool,
    /// How the application's answer is classified; `None`: it is not.
    pub outcome: Option<OutcomeExplanation>,
    /// Which clients a success makes known.
    pub known_clients: Option<KnownClientsExplanation>,
    /// Where a success gives sessions.
    pub sign_in: Option<SignInExplanation>,
    /// What of the request is looked up as a session: `cookie sessionid`, `bearer`.
    pub sessions: Vec<String>,
    /// What denies the request before any limit.
    pub denied: Option<String>,
    /// Every limit of the routes that the request may take.
    pub limits: Vec<LimitExplanation>,
}

/// What the lists of `access` say.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessExplanation {
    Ordinary,
    /// By this list. No limit holds.
    Allowed(String),
    /// By this list.
    Denied(String),
}

/// How a request stands to one list.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ListExplanation {
    pub name: String,
    /// The selector of its values.
    pub of: String,
    pub holds: Membership,
}

/// How a request stands to one route.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct RouteExplanation {
    pub name: String,
    pub matches: RouteMatch,
    /// Why it does not match.
    pub reason: Option<String>,
    /// Whether its `only` denies the client.
    pub bars: bool,
}

/// How surely a route matches.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteMatch {
    /// However the application reads the request.
    Surely,
    /// As the request is written. An override or a repeated value may say otherwise.
    Plainly,
    /// Only if the application takes an override or one of repeated values.
    Possibly,
    No,
    /// An earlier route matches.
    NotTried,
}

/// What one limit makes of the request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LimitExplanation {
    pub name: String,
    /// `10/minute; 100/hour`, `10/minute, each costs 2`, or `20 in flight`.
    pub rule: String,
    /// `None` for `concurrent`.
    pub algorithm: Option<&'static str>,
    /// `requests`, `attempts`, `failures` or `successes`.
    pub count: &'static str,
    /// The part of which different values are counted.
    pub distinct: Option<KeyPartExplanation>,
    /// The outcome that resets the key.
    pub reset_on: Option<&'static str>,
    /// Whether it does not hold for known clients.
    pub unless_known: bool,
    /// `deny`, `delay 20s`, `tarpit 20s`, `ban 15m, 1h, 24h` or `challenge`.
    pub then: String,
    pub shadow: bool,
    /// Its answer is not seen where the proxy asks, so that every request keeps its place in the count.
    pub keeps_slot: bool,
    pub outcome: LimitOutcome,
    /// The parts of the key with their values. Without parts all requests share one key.
    pub key: Vec<KeyPartExplanation>,
}

impl LimitExplanation {
    /// Whether the request has a field so often that the gateway refuses it. A shadow limit only would.
    pub(super) fn refuses(&self) -> bool {
        !self.shadow && self.outcome == LimitOutcome::TooManyValues
    }

    /// The same limit, of a request that is refused before.
    pub(super) fn not_asked(&self) -> Self {
        let outcome = match &self.outcome {
            LimitOutcome::Counted(_) | LimitOutcome::Denied => LimitOutcome::NotAsked,
            outcome => outcome.clone(),
        };
        Self { outcome, ..self.clone() }
    }
}

/// Whether a limit counts the request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitOutcome {
    /// Under this many keys.
    Counted(usize),
    /// Its `unless` names this list, which holds the client.
    Freed(String),
    /// A part of the key is missing: `missing: skip`.
    Skipped,
    /// A part of the key is missing: `missing: deny`.
    Denied,
    /// It counts what is in flight, and the end of the request is not seen.
    EndUnseen,
    /// The descriptor does not meet it, for this reason.
    Unmet(String),
    /// This limit replaces it.
    Replaced(String),
    /// It counts by outcome, and no route of the request has `outcome`.
    Unanswered,
    /// A field was sent too often: 400.
    TooManyValues,
    /// The client is on a list of `access.allow`, or a list denies it.
    NotAsked,
}
