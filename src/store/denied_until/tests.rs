mod random;

use std::num::NonZeroU32;

use super::*;
use crate::rules::decision::batch::{Charged, Force, Grounds, Items, Ledger};
use crate::rules::limit::{Algorithm, Count, Rates};
use crate::store::MemoryStore;
use crate::store::memory::MemorySettings;
use crate::words::clock::{Clock, ManualClock};

fn pace(rates: &str) -> Rule {
    Rule::Rates { algorithm: Algorithm::default(), rates: rates.parse().expect(rates), cost: NonZeroU32::MIN }
}

fn charge(key: u128, rule: &Rule) -> Charge<'_> {
    Charge::new(u16::try_from(key).expect("keys of tests are small"), KeyHash(key), rule)
}

fn batch<'p>(charges: impl IntoIterator<Item = Charge<'p>>) -> Batch<'p> {
    Batch { charges: charges.into_iter().collect(), ..Batch::default() }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn denied_for(wait: u64) -> [Option<Verdict>; 1] {
    let standings = smallvec::smallvec![Standing { remaining: 0, reset: seconds(wait) }];
    [Some(Verdict {
        retry_after: Some(seconds(wait)),
        standings,
        charged: None,
        is_exempt: false,
        grounds: Grounds::Count,
    })]
}

/// A subscribed table in which these keys are denied for so many seconds from second 100 on.
fn knowing(keys: &[(u128, u64)], rule: &Rule) -> DeniedUntil {
    let denied = DeniedUntil::new(1000);
    denied.subscribed();
    for (key, wait) in keys {
        denied.note(&batch([charge(*key, rule)]), &denied_for(*wait), at(100), denied.epoch(), |_| false);
    }
    denied
}

#[track_caller]
fn waits(denied: &DeniedUntil, batch: &Batch<'_>, now: Timestamp) -> Option<Vec<Option<u64>>> {
    let denials = denied.answer(batch, now)?;
    Some(denials.into_iter().map(|denial| Some(denial?.retry_after.as_secs())).collect())
}

#[test]
fn what_was_denied_until_then_is_denied_until_then() {
    let rule = pace("5/minute");
    let denied = knowing(&[(1, 30)], &rule);
    let batch = batch([charge(1, &rule)]);
    assert_eq!(waits(&denied, &batch, at(100)), Some(vec![Some(30)]));
    let denial = denied.answer(&batch, at(120)).expect("it is known")[0].clone().expect("it denies");
    assert_eq!(denial.retry_after, seconds(10));
    assert_eq!(denial.standings[..], [Some(Standing { remaining: 0, reset: seconds(10) })]);
    assert!(denied.answer(&batch, Timestamp::from_micros(129_999_999)).is_some());
    assert!(denied.answer(&batch, at(130)).is_none());
}

#[test]
fn another_rule_or_cost_is_asked_for() {
    let rule = pace("5/minute");
    let denied = knowing(&[(1, 30)], &rule);
    for other in [pace("6/minute"), pace("5/hour"), pace("5/minute; 5/hour")] {
        assert!(denied.answer(&batch([charge(1, &other)]), at(101)).is_none(), "{other:?}");
    }
    let Rule::Rates { algorithm, rates, .. } = rule.clone() else { unreachable!("they are rates") };
    let dearer = Rule::Rates { algorithm, rates, cost: NonZeroU32::new(2).expect("above zero") };
    assert!(denied.answer(&batch([charge(1, &dearer)]), at(101)).is_none());
    assert!(denied.answer(&batch([charge(1, &rule)]), at(101)).is_some());
}

#[test]
fn a_key_that_is_reserved_after_all_ends_a_denial_and_begins_none() {
    let rule = pace("5/minute");
    let failures = batch([Charge { count: Count::Failures, ..charge(1, &rule) }]);
    let denied = knowing(&[(1, 30)], &rule);
    let note = |verdict: [Option<Verdict>; 1]| denied.note(&failures, &verdict, at(101), denied.epoch(), |_| true);
    note(denied_for(50));
    assert_eq!(waits(&denied, &failures, at(101)), Some(vec![Some(29)]));
    let mut charged = denied_for(30);
    let moment = at(101);
    charged[0].as_mut().expect("it is").charged =
        Some(Charged { moment, ledger: Ledger::Shared, fresh: Items::new(), reservation: None });
    note(charged);
    assert!(denied.answer(&failures, at(101)).is_none());
}

#[test]
fn redis_is_asked_about_a_charge_that_may_be_taken_back_silently() {
    let Rule::Rates { algorithm, rates, .. } = pace("5/minute; 9/hour") else { unreachable!("they are rates") };
    let dear = Rule::Rates { algorithm, rates, cost: NonZeroU32::new(3).expect("above zero") };
    let failures = batch([Charge { count: Count::Failures, ..charge(1, &dear) }]);
    let standing = |remaining, reset| Standing { remaining, reset: seconds(reset) };
    let noted = |batch: &Batch<'_>, standings: [Standing; 2]| {
        let denied = knowing(&[], &dear);
        let verdict =
            Verdict { standings: standings.into_iter().collect(), ..denied_for(50)[0].clone().expect("it is") };
        denied.note(batch, &[Some(verdict)], at(100), denied.epoch(), |_| false);
        denied
    };
    // Some units have room: a cheaper request is not denied, and taking it back is not published.
    let denied = noted(&failures, [standing(2, 20), standing(6, 20)]);
    assert!(denied.answer(&failures, at(100)).is_none());
    assert!(denied.known(&failures.charges[0], at(100)).is_some());
    // No unit has room: any that is taken back is published.
    let denied = noted(&failures, [standing(0, 20), standing(4, 30)]);
    assert_eq!(waits(&denied, &failures, at(119)), Some(vec![Some(31)]));
    assert!(denied.answer(&failures, at(120)).is_none());
    // A charge that is not taken back stays.
    let requests = batch([charge(1, &dear)]);
    let denied = noted(&requests, [standing(2, 20), standing(6, 20)]);
    assert_eq!(waits(&denied, &requests, at(149)), Some(vec![Some(1)]));
}

#[test]
fn redis_is_asked_if_a_denied_request_would_be_charged() {
    let (rule, slots) = (pace("5/minute"), Rule::Concurrent(NonZeroU32::MIN));
    let denied = knowing(&[(1, 30), (2, 20)], &rule);
    let with = |other| batch([charge(1, &rule), other]);
    let attempts = |charge| Charge { count: Count::Attempts, ..charge };
    let shadow = |charge| Charge { force: Force::Shadow, ..charge };

    assert_eq!(waits(&denied, &with(charge(3, &rule)), at(100)), Some(vec![Some(30), None]));
    assert_eq!(waits(&denied, &with(charge(2, &rule)), at(100)), Some(vec![Some(30), Some(20)]));
    assert_eq!(waits(&denied, &with(charge(3, &slots)), at(100)), Some(vec![Some(30), None]));
    assert_eq!(waits(&denied, &with(shadow(charge(2, &rule))), at(100)), Some(vec![Some(30), Some(20)]));
    assert_eq!(waits(&denied, &batch([shadow(charge(2, &rule))]), at(100)), Some(vec![Some(20)]));

    assert_eq!(waits(&denied, &with(attempts(charge(3, &rule))), at(100)), None);
    assert_eq!(waits(&denied, &batch([attempts(charge(1, &rule))]), at(100)), None);
    assert_eq!(waits(&denied, &with(shadow(charge(3, &rule))), at(100)), None);
    assert_eq!(waits(&denied, &with(shadow(charge(3, &slots))), at(100)), None);
    assert_eq!(waits(&denied, &batch([charge(3, &rule), shadow(charge(2, &rule))]), at(100)), None);
    assert_eq!(waits(&denied, &batch([charge(3, &rule)]), at(100)), None);
}

#[test]
fn a_slot_in_flight_may_come_back_at_any_time() {
    let rule = Rule::Concurrent(NonZeroU32::MIN);
    let denied = DeniedUntil::new(1000);
    denied.subscribed();
    let standings = smallvec::smallvec![];
    let verdict =
        Verdict { retry_after: Some(seconds(1)), standings, charged: None, is_exempt: false, grounds: Grounds::Count };
    denied.note(&batch([charge(1, &rule)]), &[Some(verdict)], at(100), denied.epoch(), |_| false);
    assert!(denied.answer(&batch([charge(1, &rule)]), at(100)).is_none());
}

#[test]
fn a_reset_frees_a_key_and_answers_from_before_it_are_ignored() {
    let rule = pace("5/minute");
    let denied = knowing(&[(1, 30), (2, 30)], &rule);
    let (one, two) = (batch([charge(1, &rule)]), batch([charge(2, &rule)]));
    let before = denied.epoch();
    denied.reset(KeyHash(1));
    assert!(denied.answer(&one, at(101)).is_none() && denied.answer(&two, at(101)).is_some());
    denied.note(&one, &denied_for(30), at(100), before, |_| false);
    assert!(denied.answer(&one, at(101)).is_none());
    denied.note(&one, &denied_for(30), at(101), denied.epoch(), |_| false);
    assert!(denied.answer(&one, at(101)).is_some());
}

#[test]
fn without_a_subscription_redis_is_asked_twice_a_second() {
    let rule = pace("5/minute");
    let denied = knowing(&[(1, 30)], &rule);
    let one = batch([charge(1, &rule)]);
    let later = at(100) + Duration::from_millis(499);
    denied.unsubscribed();
    assert!(denied.answer(&one, later).is_some());
    assert!(denied.answer(&one, later + Duration::from_millis(1)).is_none());
    // In an outage the denial is still known.
    assert!(denied.known(&one.charges[0], at(129)).is_some() && denied.known(&one.charges[0], at(130)).is_none());

    let before = denied.epoch();
    denied.subscribed();
    assert!(denied.known(&one.charges[0], at(101)).is_none(), "a reset may have been missed");
    denied.note(&one, &denied_for(30), at(101), before, |_| false);
    assert!(denied.answer(&one, at(101)).is_none());
}

#[test]
fn no_denial_is_repeated_of_a_redis_that_may_have_lost_it() {
    let rule = pace("5/minute");
    let denied = knowing(&[(1, 30)], &rule);
    let one = batch([charge(1, &rule)]);
    let before = denied.epoch();
    denied.server_emptied();
    assert!(denied.known(&one.charges[0], at(101)).is_none());
    denied.note(&one, &denied_for(30), at(101), before, |_| false);
    assert!(denied.answer(&one, at(101)).is_none(), "it was answered before");
    denied.note(&one, &denied_for(30), at(101), denied.epoch(), |_| false);
    assert!(denied.answer(&one, at(102)).is_some());
    // The subscription lasts: only without it this would be too old.
    denied.unsubscribed();
    denied.server_emptied();
    denied.note(&one, &denied_for(30), at(101), denied.epoch(), |_| false);
    assert!(denied.answer(&one, at(102)).is_none());
}

#[test]
fn redis_is_asked_again_about_a_long_denial_before_clocks_drift_apart() {
    let rule = pace("5/day");
    let denied = knowing(&[(1, 80_000)], &rule);
    let one = batch([charge(1, &rule)]);
    assert!(denied.answer(&one, at(159)).is_some() && denied.answer(&one, at(160)).is_none());
    assert!(denied.known(&one.charges[0], at(80_099)).is_some());
}

#[test]
fn a_request_that_passes_after_all_ends_a_denial() {
    let rule = pace("5/minute");
    let denied = knowing(&[(1, 30)], &rule);
    let one = batch([charge(1, &rule)]);
    let standings = smallvec::smallvec![Standing { remaining: 4, reset: seconds(60) }];
    let passed = Verdict { retry_after: None, standings, charged: None, is_exempt: false, grounds: Grounds::Count };
    denied.note(&one, &[Some(passed)], at(101), denied.epoch(), |_| false);
    assert!(denied.known(&one.charges[0], at(101)).is_none());
}

/// Values that the key knows pass while another one is denied, and change where the key stands.
#[test]
fn a_charge_of_several_values_ends_the_denial_of_one() {
    let rule = Rule::Distinct("5/minute".parse().expect("rates"));
    let asked = |items: &[u64]| batch([Charge { items: items.iter().copied().collect(), ..charge(1, &rule) }]);
    let denied = DeniedUntil::new(1000);
    denied.subscribed();
    let note = |items: &[u64], verdict: &[Option<Verdict>; 1]| {
        denied.note(&asked(items), verdict, at(100), denied.epoch(), |_| false);
    };
    note(&[1], &denied_for(30));
    assert_eq!(waits(&denied, &asked(&[1]), at(100)), Some(vec![Some(30)]));
    let charged = Charged { moment: at(100), ledger: Ledger::Shared, fresh: Items::new(), reservation: None };
    let standings = smallvec::smallvec![Standing { remaining: 0, reset: seconds(30) }];
    note(
        &[2, 3],
        &[Some(Verdict {
            retry_after: None,
            standings,
            charged: Some(charged),
            is_exempt: false,
            grounds: Grounds::Count,
        })],
    );
    assert!(denied.answer(&asked(&[1]), at(100)).is_none());
}

#[test]
fn it_is_bounded_and_what_ends_first_goes_first() {
    let rule = pace("5/day");
    let denied = DeniedUntil::new(80);
    denied.subscribed();
    for key in 0..1000 {
        let wait = if key < 40 { 50_000 } else { 50 };
        denied.note(&batch([charge(key, &rule)]), &denied_for(wait), at(100), denied.epoch(), |_| false);
    }
    let known =
        |keys: std::ops::Range<u128>| keys.filter(|key| denied.known(&charge(*key, &rule), at(101)).is_some()).count();
    assert!(known(0..1000) <= 80);
    // Ten sets of eight: a key is lost only if more than eight of the forty share its set.
    assert!(known(0..40) >= 20, "{}", known(0..40));
}

#[test]
fn a_flood_against_an_exhausted_key_asks_once_for_each_opening() {
    let hand = ManualClock::at(at(1_000_000));
    let truth = MemoryStore::new(
        &MemorySettings { max_keys: 100, max_sessions: 1000, snapshot: None },
        Clock::Manual(hand.clone()),
    );
    let denied = DeniedUntil::new(1000);
    denied.subscribed();
    let rule = pace("1/second; 20/minute");
    let one = batch([charge(1, &rule)]);
    let (mut asked, mut passed) = (0, 0);
    for _ in 0..120_000 {
        let sent = hand.now();
        if denied.answer(&one, sent).is_none() {
            let verdicts = truth.decide_now(&one);
            asked += 1;
            passed += usize::from(verdicts[0].passes());
            denied.note(&one, &ruled(verdicts), sent, denied.epoch(), |_| false);
        }
        hand.advance(Duration::from_millis(1));
    }
    assert_eq!((asked, passed), (40, 40));
}

fn ruled(verdicts: Vec<Verdict>) -> Vec<Option<Verdict>> {
    verdicts.into_iter().map(Some).collect()
}
