//! What a limit makes of a request.

use std::fmt::Write;

use super::Asker;
use super::KeyPartExplanation;
use super::LimitExplanation;
use super::LimitOutcome;
use super::part::explain_part;
use crate::decision::Policy;
use crate::decision::charges::LimitApplication;
use crate::decision::charges::apply;
use crate::key::Source;
use crate::limit::Action;
use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Rule;
use crate::outcome::Outcome;
use crate::units::Span;

pub(super) fn explain_limit(
    policy: &Policy,
    id: LimitId,
    source: &Source<'_>,
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

/// What a limit is, and what it makes of a request or a descriptor with this key.
pub(super) fn described(
    limit: &Limit,
    outcome: LimitOutcome,
    key: Vec<KeyPartExplanation>,
    distinct: Option<KeyPartExplanation>,
) -> LimitExplanation {
    let (rule, algorithm) = match &limit.rule {
        Rule::Rates { algorithm, rates, cost } => {
            let cost = if cost.get() == 1 { String::new() } else { format!(", each costs {cost}") };
            (format!("{rates}{cost}"), Some(algorithm_name(*algorithm)))
        }
        Rule::Concurrent(most) => (format!("{most} in flight"), None),
        Rule::Distinct(rates) => (format!("{rates}, different values"), None),
    };
    LimitExplanation {
        name: limit.name.to_string(),
        rule,
        algorithm,
        count: match limit.count {
            Count::Requests => "requests",
            Count::Attempts => "attempts",
            Count::Failures => "failures",
            Count::Successes => "successes",
        },
        distinct,
        reset_on: limit.reset_on.map(Outcome::as_str),
        unless_known: limit.unless_known,
        then: action(&limit.then.action),
        shadow: limit.shadow,
        keeps_slot: false,
        outcome,
        key,
    }
}

fn limit_outcome(policy: &Policy, limit: &Limit, source: &Source<'_>) -> LimitOutcome {
    match apply(policy, limit, source) {
        Ok(LimitApplication::Counted(extracted)) => LimitOutcome::Counted(extracted.keys.len()),
        Ok(LimitApplication::Freed(list)) => LimitOutcome::Freed(policy.list(list).list.name.to_string()),
        Ok(LimitApplication::Skipped) => LimitOutcome::Skipped,
        Ok(LimitApplication::Denied(_)) => LimitOutcome::Denied,
        Err(_) => LimitOutcome::TooManyValues,
    }
}

/// The word for an algorithm in the configuration.
pub fn algorithm_name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::SlidingWindowLog => "sliding-window-log",
        Algorithm::SlidingWindowCounter => "sliding-window-counter",
        Algorithm::BucketedWindow { .. } => "bucketed-window",
        Algorithm::FixedWindow => "fixed-window",
        Algorithm::TokenBucket { .. } => "token-bucket",
    }
}

/// What a limit does, in the words of the configuration.
fn action(action: &Action) -> String {
    match action {
        Action::Deny(_) => "deny".to_owned(),
        Action::Delay(span) => format!("delay {}", Span(*span)),
        Action::Tarpit(span) => format!("tarpit {}", Span(*span)),
        Action::Ban(ladder) => {
            let mut words = "ban".to_owned();
            for (position, length) in ladder.lengths().iter().enumerate() {
                let before = if position == 0 { " " } else { ", then " };
                let _ = write!(words, "{before}{}", Span(*length));
            }
            words
        }
        Action::Challenge => "challenge".to_owned(),
    }
}
