//! Explains what a proxy asks about a descriptor.

use std::fmt;

use serde::Serialize;

use super::EmptyValue;
use super::KeyPartExplanation;
use super::LimitExplanation;
use super::LimitOutcome;
use super::limit::described;
use crate::decision::Policy;
use crate::decision::descriptors::DescriptorCall;
use crate::decision::descriptors::PricedDescriptor;
use crate::key::Descriptor;
use crate::key::KeyHasher;
use crate::key::KeyPart;
use crate::key::KeySpec;
use crate::limit::Limit;
use crate::limit::Rule;

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
        let told = LimitExplanation { keeps_slot, ..described(limit, outcome, key, limit.distinct.as_ref().map(part)) };
        if refused.is_some() || denied.is_some() { told.not_asked() } else { told }
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

/// What a limit makes of a descriptor, among the limits of its route.
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
