//! What a story says of a limit, whatever the configuration is by then.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::limit::Action;
use crate::limit::Count;
use crate::limit::Limit;
use crate::limit::Rate;
use crate::limit::Rates;
use crate::limit::Rule;

/// Made once for each limit of a configuration. It outlives the configuration in the requests that are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitFacts {
    pub name: Arc<str>,
    pub selectors: Vec<String>,
    pub rates: Vec<Rate>,
    /// So many requests at once. `None`: the limit has rates.
    pub concurrent: Option<NonZeroU32>,
    /// What is counted: one of it, and several.
    pub counted: [String; 2],
    pub shadow: bool,
    /// The limit holds requests for so long, and does not deny them.
    pub delay: Option<Duration>,
}

impl LimitFacts {
    pub fn of(limit: &Limit) -> Self {
        let counted = match (&limit.distinct, limit.count) {
            (Some(part), _) => ["value", "different values"].map(|words| format!("{words} of {}", part.selector)),
            (None, Count::Requests) => ["request", "requests"].map(str::to_owned),
            (None, Count::Attempts) => ["attempt", "attempts"].map(str::to_owned),
            (None, Count::Failures) => ["failure", "failures"].map(str::to_owned),
            (None, Count::Successes) => ["success", "successes"].map(str::to_owned),
        };
        Self {
            name: Arc::clone(&limit.name),
            selectors: limit.key.parts.iter().map(|part| part.selector.to_string()).collect(),
            rates: limit.rule.rates().map_or(&[][..], Rates::as_slice).to_vec(),
            concurrent: match limit.rule {
                Rule::Concurrent(most) => Some(most),
                Rule::Rates { .. } | Rule::Distinct(_) => None,
            },
            counted,
            shadow: limit.shadow,
            delay: match limit.then.action {
                Action::Delay(span) => Some(span),
                _ => None,
            },
        }
    }
}
