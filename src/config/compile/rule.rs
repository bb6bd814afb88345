//! The rule of a limit: rates with an algorithm, distinct values, or concurrent requests.

use crate::config::compile::document::Compiler;
use crate::config::raw;
use crate::config::raw::{Field, InvalidValue, Spanned};
use crate::config::source::SourceRange;
use crate::rules::limit::{Algorithm, AlgorithmName, Count, InvalidRule, Rule};

impl Compiler {
    /// The rule of a limit.
    pub(super) fn rule(&mut self, raw: &raw::limit::Limit) -> Option<Rule> {
        if raw.rate.is_absent() && raw.concurrent.is_absent() {
            self.mistakes.report(
                raw.at,
                if raw.distinct.is_absent() {
                    "a limit needs `rate` or `concurrent`"
                } else {
                    "`distinct` needs a `rate`"
                },
                if raw.distinct.is_absent() {
                    "write `rate: 10/minute`, or `concurrent: 20` for requests in flight"
                } else {
                    "write how many different values may pass: `rate: 20/hour`"
                },
            );
            return None;
        }
        if let (Some(_), Some(at)) = (raw.rate.key(), raw.concurrent.key()) {
            self.mistakes.report(at, "`rate` and `concurrent` exclude each other", "write two limits, one with each");
            return None;
        }
        if raw.rate.is_absent() {
            self.refuse_beside_concurrent(raw);
            return self.count(&raw.concurrent).map(Rule::Concurrent);
        }
        if !raw.distinct.is_absent() {
            self.refuse_beside_distinct(raw);
            let rates = raw.rate.get()?;
            return self.checked(Rule::Distinct(rates.value.clone()), raw);
        }
        let algorithm = self.algorithm(raw);
        let cost = match self.count(&raw.cost) {
            None if !raw.cost.is_absent() => return None,
            cost => cost.unwrap_or(Rule::COST),
        };
        let rates = raw.rate.get()?.value.clone();
        self.checked(Rule::Rates { algorithm: algorithm?, rates, cost }, raw)
    }

    /// Checks that a request can pass the rule, and that it does not need too much memory.
    fn checked(&mut self, rule: Rule, raw: &raw::limit::Limit) -> Option<Rule> {
        let Err(error) = rule.check() else { return Some(rule) };
        let blamed = match error {
            InvalidRule::CostAboveCount { .. } | InvalidRule::CostAboveBurst { .. } => place(&raw.cost),
            InvalidRule::TooManyBuckets { .. } => place(&raw.buckets),
            InvalidRule::TooManyToLog { .. } | InvalidRule::TooManyDistinct { .. } => None,
        };
        let at = blamed.or(raw.rate.get().map(|rate| rate.at)).unwrap_or(raw.at);
        InvalidValue::from(error).report(at, &mut self.mistakes);
        None
    }

    /// The algorithm with its options. Options of other algorithms are reported.
    fn algorithm(&mut self, raw: &raw::limit::Limit) -> Option<Algorithm> {
        let chosen = match &raw.algorithm {
            Field::Absent => AlgorithmName::default(),
            Field::Invalid => return None,
            Field::Given { value, .. } => value.value,
        };
        if !matches!(chosen, AlgorithmName::TokenBucket) {
            self.refuse_option(
                raw.burst.key(),
                "`burst` is an option of `token-bucket`",
                "add `algorithm: token-bucket`, or remove it",
            );
        }
        if !matches!(chosen, AlgorithmName::BucketedWindow) {
            self.refuse_option(
                raw.buckets.key(),
                "`buckets` is an option of `bucketed-window`",
                "add `algorithm: bucketed-window`, or remove it",
            );
        }
        let option = match chosen {
            AlgorithmName::BucketedWindow => self.count(&raw.buckets),
            AlgorithmName::TokenBucket => self.count(&raw.burst),
            _ => None,
        };
        Some(Algorithm::of(chosen, option))
    }

    fn refuse_beside_concurrent(&mut self, raw: &raw::limit::Limit) {
        let counts = raw.count.get().filter(|count| count.value != Count::Requests);
        let keys = [
            ("distinct", raw.distinct.key()),
            ("algorithm", raw.algorithm.key()),
            ("burst", raw.burst.key()),
            ("buckets", raw.buckets.key()),
            ("cost", raw.cost.key()),
            ("count", counts.and(raw.count.key())),
            ("reset_on", raw.reset_on.key()),
        ];
        for (key, at) in keys {
            self.refuse_option(
                at,
                &format!("`{key}` has no meaning with `concurrent`, which counts requests in flight"),
                "remove it",
            );
        }
    }

    fn refuse_beside_distinct(&mut self, raw: &raw::limit::Limit) {
        let keys = [
            ("algorithm", raw.algorithm.key()),
            ("burst", raw.burst.key()),
            ("buckets", raw.buckets.key()),
            ("cost", raw.cost.key()),
        ];
        for (key, at) in keys {
            self.refuse_option(
                at,
                &format!("`{key}` has no meaning with `distinct`, which always counts different values exactly"),
                "remove it",
            );
        }
    }

    fn refuse_option(&mut self, at: Option<SourceRange>, message: &str, help: &str) {
        if let Some(at) = at {
            self.mistakes.report(at, message, help);
        }
    }
}

fn place<T>(field: &Field<Spanned<T>>) -> Option<SourceRange> {
    field.get().map(|value| value.at)
}
