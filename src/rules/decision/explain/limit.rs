//! Explains how a limit would decide on a request.

use serde::{Serialize, Serializer};

use super::{Asker, LimitExplanation, LimitOutcome};
use crate::rules::decision::Policy;
use crate::rules::decision::plan::{LimitApplication, apply};
use crate::rules::key::display::in_clear;
use crate::rules::key::{KeyPart, ValueSource, extract};
use crate::rules::limit::{Limit, LimitId, ResetOutcome, Rule};
use crate::rules::outcome::{Matchers, OutcomeRule};
use crate::rules::request::NotUnderstood;
use crate::rules::route::{KnownClients, SessionRule, Walk};
use crate::words::units::Span;

pub(super) fn explain_limit(
    policy: &Policy,
    id: LimitId,
    source: &ValueSource<'_>,
    limits_decide: bool,
    answers: bool,
    asker: Asker,
) -> LimitExplanation {
    let limit = policy.limit(id);
    let outcome = match limit.count.outcome() {
        _ if !limits_decide => LimitOutcome::NotAsked,
        _ if asker == Asker::ForwardAuth && matches!(limit.rule, Rule::Concurrent(_)) => LimitOutcome::EndUnseen,
        Some(_) if !answers => LimitOutcome::Unanswered,
        _ => limit_outcome(policy, limit, source),
    };
    let distinct = limit.distinct.as_ref().map(|part| explain_part(part, source));
    let key = limit.key.parts.iter().map(|part| explain_part(part, source)).collect();
    let keeps_slot = asker == Asker::ForwardAuth && (limit.count.outcome().is_some() || limit.reset_on.is_some());
    LimitExplanation { keeps_slot, ..described(limit, outcome, key, distinct) }
}

/// Explains a limit, and how it would decide on a request or a descriptor with this key.
pub(super) fn described(
    limit: &Limit,
    outcome: LimitOutcome,
    key: Vec<KeyPartExplanation>,
    distinct: Option<KeyPartExplanation>,
) -> LimitExplanation {
    let (rule, algorithm) = match &limit.rule {
        Rule::Rates { algorithm, rates, cost } => {
            let cost = if cost.get() == 1 { String::new() } else { format!(", each costs {cost}") };
            (format!("{rates}{cost}"), Some(algorithm.name().as_str()))
        }
        Rule::Concurrent(most) => (format!("{most} in flight"), None),
        Rule::Distinct(rates) => (format!("{rates}, different values"), None),
    };
    LimitExplanation {
        name: limit.name.to_string(),
        rule,
        algorithm,
        count: limit.count.as_str(),
        distinct,
        reset_on: limit.reset_on.map(ResetOutcome::as_str),
        unless_known: limit.unless_known,
        then: limit.then.action.to_string(),
        shadow: limit.shadow,
        keeps_slot: false,
        outcome,
        key,
    }
}

fn limit_outcome(policy: &Policy, limit: &Limit, source: &ValueSource<'_>) -> LimitOutcome {
    match apply(policy, limit, source) {
        Ok(LimitApplication::Counted(extracted)) => LimitOutcome::Counted(extracted.keys.len()),
        Ok(LimitApplication::Freed(list)) => LimitOutcome::Freed(policy.list(list).list.name.to_string()),
        Ok(LimitApplication::Skipped) => LimitOutcome::Skipped,
        Ok(LimitApplication::Denied(_)) => LimitOutcome::Denied,
        Err(_) => LimitOutcome::TooManyValues,
    }
}

// One part of a key, with its values in a request.

/// One part of a key, and its values in the request or the descriptor.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct KeyPartExplanation {
    pub selector: String,
    pub values: Vec<String>,
    /// Why there may be other values. `None`: they are surely all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<NotUnderstood>,
    #[serde(skip)]
    pub empty: EmptyValue,
}

/// The meaning of an empty value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EmptyValue {
    /// In a request a field that is empty counts like one that is missing.
    Missing,
    /// An entry of a descriptor is there without a value.
    Present,
}

pub(super) fn explain_part(part: &KeyPart, source: &ValueSource<'_>) -> KeyPartExplanation {
    let mut values: Vec<String> = Vec::new();
    let mut unread = None;
    if let Ok(found) = extract::values(part, source) {
        values.extend(found.values.iter().map(|value| in_clear(part, value)));
        unread = found.unread;
    }
    KeyPartExplanation { selector: part.selector.to_string(), values, unread, empty: EmptyValue::Missing }
}

// The outcomes of answers, and the clients that they make known.

/// How answers are classified.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct OutcomeExplanation {
    /// `status 302, header location: /account*`: all conditions must hold.
    pub success: Option<String>,
    pub failure: Option<String>,
    /// The outcome of all other answers.
    pub otherwise: &'static str,
}

/// Which clients a success makes known.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct KnownClientsExplanation {
    /// The user name, and what else tells accounts apart.
    #[serde(serialize_with = "one_or_list")]
    pub of: Vec<KeyPartExplanation>,
    /// `address` or `cookie`.
    pub by: &'static str,
    /// `90d`
    pub r#for: String,
}

/// One part alone, as `of` is written.
fn one_or_list<S: Serializer>(parts: &[KeyPartExplanation], serializer: S) -> Result<S::Ok, S::Error> {
    match parts {
        [only] => only.serialize(serializer),
        several => several.serialize(serializer),
    }
}

/// Where a success gives sessions.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct SignInExplanation {
    /// The parts that name the account.
    pub of: Vec<KeyPartExplanation>,
    /// `cookie sessionid`, `json.access_token`
    pub given_as: Vec<String>,
    /// `12h`
    pub r#for: String,
}

/// How the routes of a request classify its answer.
pub(super) struct AnswerRules<'p> {
    outcome: Option<&'p OutcomeRule>,
    known: Option<&'p KnownClients>,
    sessions: Option<&'p SessionRule>,
}

impl<'p> AnswerRules<'p> {
    pub(super) fn of(policy: &'p Policy, walk: &Walk) -> Self {
        let routes = || walk.collected.iter().map(|&route| policy.routes.get(route));
        Self {
            outcome: routes().find_map(|route| route.outcome.as_deref()),
            known: routes().find_map(|route| route.known_clients.as_ref()),
            sessions: routes().find_map(|route| route.sessions.as_ref()),
        }
    }

    /// Whether a route has `outcome`.
    pub(super) fn are_read(&self) -> bool {
        self.outcome.is_some()
    }

    pub(super) fn outcome(&self) -> Option<OutcomeExplanation> {
        self.outcome.map(|rule| OutcomeExplanation {
            success: rule.success.as_ref().map(matchers),
            failure: rule.failure.as_ref().map(matchers),
            otherwise: rule.otherwise.as_str(),
        })
    }

    pub(super) fn known_clients(&self, source: &ValueSource<'_>) -> Option<KnownClientsExplanation> {
        self.known.map(|known| KnownClientsExplanation {
            of: known.of.parts.iter().map(|part| explain_part(part, source)).collect(),
            by: known.by.as_str(),
            r#for: Span(known.keep).to_string(),
        })
    }

    pub(super) fn sign_in(&self, source: &ValueSource<'_>) -> Option<SignInExplanation> {
        self.sessions.map(|rule| {
            let cookies = rule.cookies.iter().map(|name| format!("cookie {name}"));
            SignInExplanation {
                of: rule.of.parts.iter().map(|part| explain_part(part, source)).collect(),
                given_as: cookies.chain(rule.tokens.iter().map(|path| format!("json.{path}"))).collect(),
                r#for: Span(rule.keep).to_string(),
            }
        })
    }
}

/// The parts of a request that are looked up as sessions, on any route: `cookie sessionid`, `bearer`.
pub(super) fn looked_up(policy: &Policy) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for carrier in policy.session_carriers.iter() {
        let name = carrier.cookies.as_ref().map_or_else(|| "bearer".to_owned(), |cookies| format!("cookie {cookies}"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The conditions that an answer must meet.
fn matchers(matchers: &Matchers) -> String {
    let mut words: Vec<String> = Vec::new();
    words.extend(matchers.status.as_ref().map(|status| format!("status {status}")));
    words.extend(matchers.headers.iter().map(|(name, glob)| format!("header {name}: {glob}")));
    words.extend(matchers.cookies.iter().map(|name| format!("cookie {name}")));
    words.extend(matchers.body.as_ref().map(|pattern| format!("body {pattern}")));
    words.extend(matchers.json.iter().map(|(path, value)| format!("json {path}: {value}")));
    words.join(", ")
}
