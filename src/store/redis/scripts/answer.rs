//! Reads the answers of scripts.

use std::time::Duration;

use redis::Value;
use smallvec::SmallVec;

use super::constants::AnswerCode;
use super::encode;
use crate::clock::Timestamp;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::decision::batch::Charged;
use crate::decision::batch::Items;
use crate::decision::batch::Ledger;
use crate::limit::Rule;
use crate::limit::Standing;
use crate::limit::Standings;

/// What a decision answers.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store::redis) struct Answer {
    /// In the order of the charges.
    pub(in crate::store::redis) verdicts: Vec<Verdict>,
    /// How many units were leased of each key that may have leases, in the order of the charges. Empty if the call only looked.
    pub(in crate::store::redis) leased: SmallVec<[u32; 4]>,
}

/// Reads the answer of a decision; `None`: this is not an answer of our script.
pub(in crate::store::redis) fn read(value: &Value, charges: &[&Charge<'_>]) -> Option<Answer> {
    let Value::Array(numbers) = value else { return None };
    let mut numbers = numbers.iter().map(|number| match number {
        Value::Int(number) => Some(*number),
        _ => None,
    });
    let mut next = || numbers.by_ref().next().flatten();
    let moment = Timestamp::from_micros(u64::try_from(next()?).ok()?);
    let mut verdicts = Vec::with_capacity(charges.len());
    for charge in charges {
        let waits = next()?;
        let since = span(next()?).map(|later| moment + later);
        if waits == AnswerCode::Exempt as i64 {
            verdicts.push(Verdict::exempt());
            continue;
        }
        let rates = charge.rule.rates().map_or(0, |rates| rates.as_slice().len());
        let mut standings = Standings::new();
        for _ in 0..rates {
            standings.push(Standing { remaining: u64::try_from(next()?).ok()?, reset: span(next()?)? });
        }
        let fresh = match charge.rule {
            Rule::Distinct(_) => fresh(next()?, &charge.items),
            _ => Items::new(),
        };
        let taken = since.map(|moment| Charged { moment, ledger: Ledger::Shared, fresh, reservation: None });
        verdicts.push(Verdict { retry_after: span(waits), standings, charged: taken, is_exempt: false });
    }
    let leased: SmallVec<[u32; 4]> = numbers.map(|number| u32::try_from(number?).ok()).collect::<Option<_>>()?;
    let is_leasable = |(charge, verdict): &(&&Charge<'_>, &Verdict)| charge.rule.may_be_leased() && !verdict.is_exempt;
    let leasable = charges.iter().zip(&verdicts).filter(is_leasable).count();
    (leased.is_empty() || leased.len() == leasable).then_some(Answer { verdicts, leased })
}

/// Reads the answer to settlements: whether the message to all gateways could be sent, the moment, and the places of
/// the settlements whose key has room again.
pub(in crate::store::redis) fn settled(value: &Value) -> Option<(bool, Timestamp, Vec<usize>)> {
    let Value::Array(numbers) = value else { return None };
    let number = |value: &Value| if let Value::Int(number) = value { Some(*number) } else { None };
    let [published, moment, reopened @ ..] = numbers.as_slice() else { return None };
    let moment = Timestamp::from_micros(u64::try_from(number(moment)?).ok()?);
    let place = |value| usize::try_from(number(value)?).ok()?.checked_sub(1);
    Some((number(published)? == 1, moment, reopened.iter().map(place).collect::<Option<_>>()?))
}

/// The values that are new to the key, given by a bit for each.
fn fresh(bits: i64, items: &[u64]) -> Items {
    let items = encode::different(items).into_iter().enumerate();
    items
        .filter(|(place, _)| bits.checked_shr(u32::try_from(*place).unwrap_or(u32::MAX)).unwrap_or(0) & 1 == 1)
        .map(|(_, item)| item)
        .collect()
}

/// A span of so many microseconds; `None` below zero.
fn span(micros: i64) -> Option<Duration> {
    u64::try_from(micros).ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::decision::batch::Force;
    use crate::decision::batch::Items;
    use crate::key::KeyHash;
    use crate::limit::Algorithm;
    use crate::limit::Count;
    use crate::limit::OnFailure;

    fn answer(numbers: &[i64]) -> Option<Vec<Verdict>> {
        let slots = Rule::Concurrent(NonZeroU32::MIN);
        let rates = "1/second; 5/minute".parse().expect("rates");
        let pace = Rule::Rates { algorithm: Algorithm::FixedWindow, rates, cost: NonZeroU32::MIN };
        let charge = |rule| Charge {
            limit: 0,
            key: KeyHash(1),
            rule,
            count: Count::Requests,
            force: Force::Binding,
            on_failure: OnFailure::Local,
            items: Items::new(),
            unless_known: false,
            is_free: false,
            leases: false,
        };
        let value = Value::Array(numbers.iter().copied().map(Value::Int).collect());
        Some(read(&value, &[&charge(&slots), &charge(&pace)])?.verdicts)
    }

    #[test]
    fn numbers_become_verdicts() {
        let verdicts = answer(&[1000, -1, 0, 7, -1, 0, 7, 3, 60]).expect("an answer");
        let charged = Charged {
            moment: Timestamp::from_micros(1000),
            ledger: Ledger::Shared,
            fresh: Items::new(),
            reservation: None,
        };
        assert_eq!(verdicts[0].charged, Some(charged));
        assert!(verdicts[0].passes());
        assert_eq!(verdicts[1].charged, None);
        assert_eq!(verdicts[1].retry_after, Some(Duration::from_micros(7)));
        let standings: Vec<_> = verdicts[1].standings.iter().map(|at| (at.remaining, at.reset.as_micros())).collect();
        assert_eq!(standings, [(0, 7), (3, 60)]);
    }

    #[test]
    fn what_is_no_answer_of_a_script_is_none() {
        for numbers in [
            &[][..],
            &[1000],
            &[1000, -1, 0, 7, -1, 0, 7, 3],
            &[1000, -1, 0, 7, -1, 0, 7, 3, 60, 0],
            &[-5, -1, 0, 7, -1, 0, 7, 3, 60],
            &[1000, -1, 0, 7, -1, -1, 7, 3, 60],
        ] {
            assert_eq!(answer(numbers), None, "{numbers:?}");
        }
        assert_eq!(read(&Value::Okay, &[]), None);
        assert_eq!(read(&Value::Array(vec![Value::Int(5), Value::Nil]), &[]), None);
    }

    proptest! {
        #[test]
        fn any_numbers_are_verdicts_or_none(
            few in prop::collection::vec(any::<i64>(), 0..12),
            nine in prop::array::uniform9(prop_oneof![any::<i64>(), -2..100_i64]),
        ) {
            for numbers in [&few[..], &nine[..]] {
                prop_assert!(answer(numbers).is_none_or(|verdicts| verdicts.len() == 2));
            }
            let value = Value::Array(few.iter().copied().map(Value::Int).collect());
            prop_assert!(settled(&value).is_none_or(|(_, _, places)| places.len() + 2 == few.len()));
        }
    }
}
