//! Which client, lists, route, limits and keys a request meets and why, for an operator.

mod limit;
mod request;
mod text;

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

pub use self::limit::{EmptyValue, KeyPartExplanation, KnownClientsExplanation, OutcomeExplanation, SignInExplanation};
pub use self::request::{ExplainedTokens, TokenExplanation, elsewhere, explain};
use crate::rules::decision::Policy;
use crate::rules::decision::descriptors::{DescriptorCall, PricedDescriptor};
use crate::rules::decision::explain::limit::described;
use crate::rules::key::{Descriptor, KeyHasher, KeyPart, KeySpec};
use crate::rules::limit::{Limit, Rule};
use crate::rules::list::Membership;
use crate::rules::request::NotUnderstood;

// The parts of an explanation.

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
    /// The parts of the request that are looked up as sessions: `cookie sessionid`, `bearer`.
    pub sessions: Vec<String>,
    /// Where a login of this name stands otherwise, if no limit of this request counts logins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
    /// What denies the request before any limit.
    pub denied: Option<String>,
    /// Every limit of the routes that the request may take.
    pub limits: Vec<LimitExplanation>,
}

/// A route that would match the path of a request under another prefix, or the recipe that has such a route.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Elsewhere {
    /// `None`: the configuration has none, but a recipe has.
    pub route: Option<String>,
    /// The prefix under which the route matches: `/`, `/blog`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches_below: Option<String>,
    /// What to write.
    pub help: String,
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

/// Whether a list holds the values of a request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ListExplanation {
    pub name: String,
    /// The selector of its values.
    pub of: String,
    pub holds: Membership,
}

/// Whether a request matches a route, and why not.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct RouteExplanation {
    pub name: String,
    pub matches: RouteMatch,
    /// Why it does not match.
    pub reason: Option<String>,
    /// Whether its `only` denies the client. `bars` in the output.
    #[serde(rename = "bars")]
    pub denied_by_only: bool,
}

/// How surely a route matches.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteMatch {
    /// With every reading of the request that an application may have.
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
    /// The part whose different values are counted.
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

    /// The explanation of this limit if the request is refused before limits are asked.
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

// Explains what a proxy asks about a descriptor.

/// All rules that a descriptor would meet. Prints as text. Values are in clear, because the operator who reads it wrote the
/// descriptor.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct DescriptorExplanation {
    pub domain: String,
    /// Names and values, in the order of the descriptor.
    pub entries: Vec<(String, String)>,
    /// `None`: no route is for the domain, and the descriptor passes.
    pub route: Option<String>,
    /// Why the call gets an error in place of a decision.
    pub refused: Option<String>,
    /// What denies the descriptor before any limit.
    pub denied: Option<String>,
    /// Every limit of the route.
    pub limits: Vec<LimitExplanation>,
}

/// All rules that this descriptor would meet if a call had no other.
pub fn explain_descriptor(policy: &Policy, domain: &str, descriptor: &Descriptor) -> DescriptorExplanation {
    let route = policy.routes.of_domain(domain).map(|route| policy.routes.get(route));
    let no_key = KeySpec::default();
    let is_denied = route.is_some_and(|route| route.denied.iter().any(|filter| filter.meets(&no_key, descriptor)));
    let limits: Vec<&Limit> = route.iter().flat_map(|route| &route.limits).map(|&id| policy.limit(id)).collect();
    let part = |part: &KeyPart| KeyPartExplanation {
        selector: part.selector.to_string(),
        values: descriptor.different_values(part).unwrap_or_default().iter().map(ToString::to_string).collect(),
        unread: None,
        empty: EmptyValue::Present,
    };
    let refused =
        call(domain, descriptor).meet(policy, &KeyHasher::new([0; 16])).err().map(|invalid| invalid.to_string());
    let denied = (is_denied && refused.is_none()).then(|| "the route denies such descriptors".to_owned());
    let explained = |limit: &&Limit| {
        let outcome = outcome(limit, &limits, descriptor);
        // No answer is seen.
        let keeps_slot = limit.count.outcome().is_some() || limit.reset_on.is_some();
        let key = limit.key.parts.iter().map(part).collect();
        let explanation =
            LimitExplanation { keeps_slot, ..described(limit, outcome, key, limit.distinct.as_ref().map(part)) };
        if refused.is_some() || denied.is_some() { explanation.not_asked() } else { explanation }
    };
    let limits = limits.iter().map(explained).collect();
    DescriptorExplanation {
        domain: domain.to_owned(),
        entries: descriptor.entries.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect(),
        route: route.map(|route| route.name.to_string()),
        refused,
        denied,
        limits,
    }
}

/// The call with this descriptor alone.
fn call(domain: &str, descriptor: &Descriptor) -> DescriptorCall {
    let priced = PricedDescriptor { descriptor: descriptor.clone(), hits: None };
    DescriptorCall { domain: domain.to_owned(), descriptors: vec![priced], hits: 0 }
}

/// How a limit would decide on a descriptor, among the limits of its route.
fn outcome(limit: &Limit, limits: &[&Limit], descriptor: &Descriptor) -> LimitOutcome {
    if let Some(mismatch) = limit.descriptors.mismatch(&limit.key, descriptor) {
        return LimitOutcome::Unmet(mismatch.to_string());
    }
    if let Some(part) = limit.distinct.as_ref()
        && descriptor.different_values(part).is_ok_and(|values| values.is_empty())
    {
        return LimitOutcome::Unmet(format!("there is nothing to count: no {}", part.selector));
    }
    if matches!(limit.rule, Rule::Concurrent(_)) {
        return LimitOutcome::EndUnseen;
    }
    let replaces = |other: &&&Limit| {
        other.descriptors.replaces.contains(&limit.name) && other.descriptors.meets(&other.key, descriptor)
    };
    if let Some(by) = limits.iter().find(replaces) {
        return LimitOutcome::Replaced(by.name.to_string());
    }
    match descriptor.keys(&limit.key) {
        Ok(keys) => LimitOutcome::Counted(keys.map_or(0, |keys| keys.len())),
        Err(_) => LimitOutcome::TooManyValues,
    }
}

impl fmt::Display for DescriptorExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "domain    {:?}", self.domain)?;
        for (name, value) in &self.entries {
            // Quoted, so that no control character reaches the terminal.
            writeln!(f, "entry     {name:?} = {value:?}")?;
        }
        writeln!(f, "route     {}", self.route.as_deref().unwrap_or("none, the domain is not limited"))?;
        self.limits.iter().try_for_each(|limit| write!(f, "{limit}"))?;
        match (&self.refused, &self.denied) {
            (Some(reason), _) => writeln!(f, "decision  none, the call is refused: {reason}"),
            (None, Some(reason)) => writeln!(f, "decision  denied: {reason}"),
            (None, None) if self.limits.iter().any(LimitExplanation::counts) => {
                writeln!(f, "decision  as the counters stand")
            }
            (None, None) => writeln!(f, "decision  passes"),
        }
    }
}
