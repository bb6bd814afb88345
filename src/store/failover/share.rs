//! What a part of a limit is.

use std::num::NonZeroU32;

use crate::limit::Algorithm;
use crate::limit::Rate;
use crate::limit::Rates;
use crate::limit::Rule;
use crate::store::parts::Part;

/// This part of each count, rounded down. `None`: it is not enough for one request.
pub(super) fn share(rule: &Rule, part: Part) -> Option<Rule> {
    match rule {
        Rule::Concurrent(most) => Some(Rule::Concurrent(part.of(*most)?)),
        Rule::Distinct(rates) => Some(Rule::Distinct(scaled(rates, part, NonZeroU32::MIN)?)),
        Rule::Rates { algorithm, rates, cost } => {
            let algorithm = match *algorithm {
                Algorithm::TokenBucket { burst: Some(burst) } => {
                    Algorithm::TokenBucket { burst: Some(part.of(burst).filter(|burst| burst >= cost)?) }
                }
                other => other,
            };
            Some(Rule::Rates { algorithm, rates: scaled(rates, part, *cost)?, cost: *cost })
        }
    }
}

/// `None`: a rate has less than `least`.
fn scaled(rates: &Rates, part: Part, least: NonZeroU32) -> Option<Rates> {
    let scaled: Vec<Rate> = rates
        .iter()
        .map(|rate| Some(Rate { count: part.of(rate.count).filter(|count| *count >= least)?, per: rate.per }))
        .collect::<Option<_>>()?;
    Some(Rates::new(scaled).expect("the windows are as they were"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("above zero")
    }

    #[track_caller]
    fn check(nodes: u32, whole: (&str, u32, Option<u32>), shared: Option<(&str, Option<u32>)>) {
        let rule = |rates: &str, burst: Option<u32>| {
            let algorithm = Algorithm::TokenBucket { burst: burst.map(number) };
            Rule::Rates { algorithm, rates: rates.parse().expect(rates), cost: number(whole.1) }
        };
        let shared = shared.map(|(rates, burst)| rule(rates, burst));
        assert_eq!(share(&rule(whole.0, whole.2), Part::one_of(number(nodes))), shared);
    }

    #[test]
    fn all_shares_together_are_never_more_than_the_whole() {
        check(1, ("7/second; 9/minute", 1, None), Some(("7/second; 9/minute", None)));
        check(4, ("8/second; 9/minute", 1, Some(7)), Some(("2/second; 2/minute", Some(1))));
        let concurrent = |most| Rule::Concurrent(number(most));
        assert_eq!(share(&concurrent(20), Part::one_of(number(3))), Some(concurrent(6)));
        let distinct = |rates: &str| Rule::Distinct(rates.parse().expect(rates));
        assert_eq!(share(&distinct("9/hour"), Part::one_of(number(2))), Some(distinct("4/hour")));
    }

    #[test]
    fn a_share_of_less_than_one_request_is_none() {
        check(10, ("40/second; 40/minute", 4, None), Some(("4/second; 4/minute", None)));
        check(10, ("40/second; 39/minute", 4, None), None);
        check(10, ("40/second", 4, Some(39)), None);
        assert_eq!(share(&Rule::Concurrent(number(2)), Part::one_of(number(3))), None);
        assert_eq!(share(&Rule::Distinct("2/hour".parse().expect("rates")), Part::of_units(0)), None);
    }
}
