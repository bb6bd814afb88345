use std::num::NonZeroU32;
use std::time::Duration;

use smallvec::smallvec;

use crate::rules::decision::batch::{Charged, Force, Grounds, Items, Ledger};
use crate::rules::decision::{Batch, Charge, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Algorithm, Count, Rule, Standing};
use crate::store::redis::state::decided::{split, take_out, to_return};
use crate::words::clock::Timestamp;

fn charge(limit: u16, key: u128, rule: &Rule) -> Charge<'_> {
    Charge::new(limit, KeyHash(key), rule)
}

fn pace() -> Rule {
    Rule::Rates { algorithm: Algorithm::default(), rates: "5/minute".parse().expect("a rate"), cost: NonZeroU32::MIN }
}

fn batch<'p>(charges: impl IntoIterator<Item = Charge<'p>>) -> Batch<'p> {
    Batch { charges: charges.into_iter().collect(), ..Batch::default() }
}

/// `None`: the server did not answer; `Some(true)`: it passes and was charged.
fn verdicts(passes: &[Option<bool>]) -> Vec<Option<Verdict>> {
    let charged =
        || Charged { moment: Timestamp::EPOCH, ledger: Ledger::Shared, fresh: Items::new(), reservation: None };
    let verdict = |passes: bool| Verdict {
        retry_after: (!passes).then_some(Duration::from_secs(1)),
        standings: smallvec![],
        charged: passes.then(charged),
        is_exempt: false,
        grounds: Grounds::Count,
    };
    passes.iter().map(|passes| passes.map(verdict)).collect()
}

#[test]
fn a_batch_is_split_by_slots_in_their_order() {
    let rule = pace();
    let batch = batch([9, 2, 12, 5, 22].map(|key| charge(0, key, &rule)));
    let parts = split(&batch, |key| u16::try_from(key.0 % 10).expect("small"));
    let found: Vec<(u16, &[usize])> = parts.iter().map(|part| (part.slot, part.places.as_slice())).collect();
    assert_eq!(found, [(2, &[1, 2, 4][..]), (5, &[3]), (9, &[0])]);
    let keys: Vec<u128> = parts[0].charges.iter().map(|charge| charge.key.0).collect();
    assert_eq!(keys, [2, 12, 22]);
}

#[test]
fn what_passes_together_is_given_back_together() {
    let (rule, slots) = (pace(), Rule::Concurrent(NonZeroU32::MIN));
    let attempts = |charge| Charge { count: Count::Attempts, ..charge };
    let shadow = |charge| Charge { force: Force::Shadow, ..charge };
    let batch = batch([
        charge(0, 1, &rule),
        attempts(charge(1, 2, &rule)),
        charge(2, 3, &slots),
        charge(3, 4, &rule),
        shadow(charge(4, 5, &rule)),
        shadow(charge(4, 6, &rule)),
        shadow(charge(5, 7, &rule)),
    ]);
    let check = |passes: [Option<bool>; 7], expected: &[usize]| {
        assert_eq!(to_return(&batch, &verdicts(&passes)), expected, "{passes:?}");
    };
    let yes = Some(true);
    check([yes; 7], &[]);
    check([None; 7], &[]);
    check([yes, yes, yes, Some(false), yes, yes, yes], &[0, 2]);
    // A charge of a server that did not answer is not given back.
    check([yes, yes, None, Some(false), yes, yes, yes], &[0]);
    check([yes, yes, yes, yes, yes, Some(false), yes], &[4]);
    check([yes, yes, yes, yes, None, Some(false), yes], &[]);
    check([yes, yes, yes, yes, yes, yes, Some(false)], &[]);
}

#[test]
fn what_is_given_back_is_left_again() {
    let check = |algorithm, remaining: u64, cost: u32, expected: (u64, u64)| {
        let cost = NonZeroU32::new(cost).expect("above zero");
        let rule = Rule::Rates { algorithm, rates: "5/minute".parse().expect("a rate"), cost };
        let batch = batch([charge(0, 1, &rule)]);
        let mut verdicts = verdicts(&[Some(true)]);
        let standing = Standing { remaining, reset: Duration::from_secs(40) };
        verdicts[0].as_mut().expect("it is there").standings.push(standing);
        take_out(&batch, &mut verdicts, &[0]);
        let Some(Verdict { standings, charged: None, .. }) = &verdicts[0] else { panic!("it was charged") };
        let left = Standing { remaining: expected.0, reset: Duration::from_secs(expected.1) };
        assert_eq!(standings[..], [left]);
    };
    let bucket = |burst| Algorithm::TokenBucket { burst: NonZeroU32::new(burst) };
    check(Algorithm::SlidingWindowLog, 0, 1, (1, 40));
    check(Algorithm::SlidingWindowLog, 2, 2, (4, 40));
    check(Algorithm::SlidingWindowLog, 3, 2, (5, 0));
    check(bucket(9), 4, 1, (5, 40));
    check(bucket(9), 8, 1, (9, 0));
}
