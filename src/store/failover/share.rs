//! The share of one gateway in a limit that several gateways have together.

use std::num::NonZeroU32;

use crate::limit::Algorithm;
use crate::limit::Rate;
use crate::limit::Rates;
use crate::limit::Rule;

/// The share of one of `nodes` gateways: each count divided by their number and rounded down, but at least enough for
/// one request.
pub(super) fn share(rule: &Rule, nodes: NonZeroU32) -> Rule {
    let part = |count: NonZeroU32, least: NonZeroU32| NonZeroU32::new(count.get() / nodes).unwrap_or(least).max(least);
    match rule {
        Rule::Concurrent(most) => Rule::Concurrent(part(*most, NonZeroU32::MIN)),
        Rule::Distinct(rates) => {
            let scaled = rates.iter().map(|rate| Rate { count: part(rate.count, NonZeroU32::MIN), per: rate.per });
            Rule::Distinct(Rates::new(scaled.collect::<Vec<_>>()).expect("the windows are as they were"))
        }
        Rule::Rates { algorithm, rates, cost } => {
            let scaled: Vec<Rate> =
                rates.iter().map(|rate| Rate { count: part(rate.count, *cost), per: rate.per }).collect();
            let algorithm = match *algorithm {
                Algorithm::TokenBucket { burst: Some(burst) } => {
                    Algorithm::TokenBucket { burst: Some(part(burst, *cost)) }
                }
                other => other,
            };
            Rule::Rates { algorithm, rates: Rates::new(scaled).expect("the windows are as they were"), cost: *cost }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("above zero")
    }

    #[track_caller]
    fn check(nodes: u32, whole: (&str, u32, Option<u32>), shared: (&str, Option<u32>)) {
        let rule = |rates: &str, burst: Option<u32>| {
            let algorithm = Algorithm::TokenBucket { burst: burst.map(number) };
            Rule::Rates { algorithm, rates: rates.parse().expect(rates), cost: number(whole.1) }
        };
        assert_eq!(share(&rule(whole.0, whole.2), number(nodes)), rule(shared.0, shared.1));
    }

    #[test]
    fn all_shares_together_are_never_more_than_the_whole_where_it_can_be_divided() {
        check(1, ("7/second; 9/minute", 1, None), ("7/second; 9/minute", None));
        check(4, ("8/second; 9/minute", 1, Some(7)), ("2/second; 2/minute", Some(1)));
        let concurrent = |most| Rule::Concurrent(number(most));
        assert_eq!(share(&concurrent(20), number(3)), concurrent(6));
    }

    #[test]
    fn one_request_always_passes() {
        check(10, ("8/second; 40/minute", 3, Some(5)), ("3/second; 4/minute", Some(3)));
        assert_eq!(share(&Rule::Concurrent(number(2)), number(3)), Rule::Concurrent(number(1)));
    }
}
