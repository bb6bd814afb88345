//! Leases of a key, as Redis grants and counts them.

use std::num::NonZeroU32;
use std::time::Duration;

use redis::Value;

use super::server::Keys;
use crate::rules::decision::batch::KnownClientKey;
use crate::rules::decision::{Charge, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Algorithm, Rule};
use crate::store::leases::{EndedLease, LeaseRequest, ReturnedLease};
use crate::store::redis::scripts::{
    DecisionCall, KeySettlement, LeaseQuestions, Purpose, SettlementAction, invocation, return_lease,
};

const KEY: KeyHash = KeyHash(0x1ea5e);

fn rule(rates: &str) -> Rule {
    rule_of(Algorithm::SlidingWindowLog, rates)
}

fn rule_of(algorithm: Algorithm, rates: &str) -> Rule {
    Rule::Rates { algorithm, rates: rates.parse().expect(rates), cost: NonZeroU32::MIN }
}

fn charge(rule: &Rule) -> Charge<'_> {
    Charge { leases: true, ..Charge::new(0, KEY, rule) }
}

/// Decides a request that asks for a lease. Returns how many units were leased, too.
fn ask(keys: &mut Keys, rule: &Rule, nodes: u32, request: LeaseRequest) -> (Verdict, u32) {
    let (charge, requests) = (charge(rule), [Some(request)]);
    let nodes = NonZeroU32::new(nodes).expect("above zero");
    let call = DecisionCall {
        names: keys.names(),
        time: &keys.time,
        holder: 0,
        charges: &[&charge],
        known: &[],
        leases: Some(LeaseQuestions { nodes, requests: &requests }),
    };
    let value = keys.run(&call.invocation(Purpose::Decide));
    let mut answer = invocation::read(&value, &[&charge]).unwrap_or_else(|| panic!("{value:?}"));
    (answer.verdicts.remove(0), answer.leased[0])
}

fn wants(id: u64, wanted: u32) -> LeaseRequest {
    LeaseRequest { id, wanted, ended: None }
}

/// Ends a lease. Returns whether there was one.
fn end(keys: &mut Keys, rule: &Rule, id: u64, spent: u32) -> bool {
    let channel = keys.channel();
    let ended = EndedLease { id, spent, unspent: 0 };
    let lease = ReturnedLease { key: KEY, rule: rule.clone(), ended, holder: 0 };
    keys.run(&return_lease(keys.names(), &channel, &keys.time, &lease)) == Value::Int(1)
}

/// How many more may pass.
fn remaining(keys: &mut Keys, rule: &Rule) -> u64 {
    keys.decide(Purpose::Look, &[&charge(rule)])[0].standings[0].remaining
}

/// How many slots are taken of the key.
fn taken(keys: &mut Keys) -> u32 {
    let mut get = redis::cmd("GET");
    get.arg(keys.names().name(KEY));
    let Value::BulkString(bytes) = keys.send(&get) else { return 0 };
    let slots = bytes[1..].chunks_exact(15).map(|holder| holder[4..8].try_into().expect("four bytes"));
    slots.map(u32::from_be_bytes).sum()
}

fn pass(keys: &mut Keys, rule: &Rule, times: usize) {
    (0..times).for_each(|_| assert!(keys.decide(Purpose::Decide, &[&charge(rule)])[0].passes()));
}

#[test]
fn what_is_leased_is_taken_until_it_is_given_back_once() {
    let (mut keys, rule) = (Keys::new(), rule("600/minute"));
    assert_eq!(ask(&mut keys, &rule, 1, wants(1, 10)).1, 10);
    assert_eq!(remaining(&mut keys, &rule), 589);
    keys.hand.advance(Duration::from_millis(900));
    for is_there in [true, false] {
        assert_eq!(end(&mut keys, &rule, 1, 4), is_there);
        assert_eq!(remaining(&mut keys, &rule), 595);
    }
    assert!(!end(&mut keys, &rule, 2, 0));
    // What was spent counts from when it was given back.
    keys.hand.advance(Duration::from_millis(59_200));
    assert_eq!(remaining(&mut keys, &rule), 596);
    keys.hand.advance(Duration::from_millis(800));
    assert_eq!(remaining(&mut keys, &rule), 600);
}

#[test]
fn the_next_call_ends_a_lease_and_charges_what_was_spent_of_it() {
    let (mut keys, rule) = (Keys::new(), rule("600/minute"));
    ask(&mut keys, &rule, 1, wants(1, 10));
    let next = LeaseRequest { id: 2, wanted: 20, ended: Some(EndedLease { id: 1, spent: 7, unspent: 3 }) };
    let (verdict, leased) = ask(&mut keys, &rule, 1, next);
    assert_eq!((verdict.standings[0].remaining, leased), (600 - 1 - 7 - 1 - 20, 20));
    assert!(!end(&mut keys, &rule, 1, 0));
}

#[test]
fn one_that_is_not_given_back_is_spent() {
    let (mut keys, rule) = (Keys::new(), rule("600/minute"));
    ask(&mut keys, &rule, 1, wants(1, 10));
    keys.hand.advance(Duration::from_millis(2500));
    pass(&mut keys, &rule, 1);
    assert_eq!(remaining(&mut keys, &rule), 588);
    assert!(!end(&mut keys, &rule, 1, 0));
    keys.hand.advance(Duration::from_millis(59_999));
    assert_eq!(remaining(&mut keys, &rule), 589);
    keys.hand.advance(Duration::from_millis(1));
    assert_eq!(remaining(&mut keys, &rule), 600);
}

#[test]
fn one_that_is_not_given_back_fills_a_large_bucket_for_longer_than_a_window() {
    let burst = NonZeroU32::new(1200);
    let (mut keys, rule) = (Keys::new(), rule_of(Algorithm::TokenBucket { burst }, "600/minute"));
    assert_eq!(ask(&mut keys, &rule, 1, wants(1, 200)).1, 200);
    keys.hand.advance(Duration::from_secs(1 + 1 + 119));
    assert_eq!(remaining(&mut keys, &rule), 1000);
    keys.hand.advance(Duration::from_secs(1));
    assert_eq!(remaining(&mut keys, &rule), 1200);
}

#[test]
fn a_bucket_refills_nothing_of_what_is_leased() {
    let (mut keys, rule) = (Keys::new(), rule_of(Algorithm::TokenBucket { burst: None }, "600/minute"));
    pass(&mut keys, &rule, 300);
    assert_eq!(ask(&mut keys, &rule, 1, wants(1, 50)).1, 50);
    // A second later ten of those that were charged are free again.
    keys.hand.advance(Duration::from_secs(1));
    assert_eq!(remaining(&mut keys, &rule), 600 - 301 - 50 + 10);
    assert!(end(&mut keys, &rule, 1, 50));
    assert_eq!(remaining(&mut keys, &rule), 600 - 301 - 50 + 10);
}

#[test]
fn a_lease_ends_with_its_fixed_window_and_counts_in_no_other() {
    let (mut keys, rule) = (Keys::new(), rule_of(Algorithm::FixedWindow, "600/minute"));
    pass(&mut keys, &rule, 1);
    keys.hand.advance(Duration::from_millis(58_900));
    assert_eq!(ask(&mut keys, &rule, 1, wants(1, 20)).1, 20);
    // It could be spent in the next window.
    keys.hand.advance(Duration::from_millis(200));
    assert_eq!(ask(&mut keys, &rule, 1, wants(2, 20)).1, 0);
    assert_eq!(remaining(&mut keys, &rule), 600 - 3 - 20);
    keys.hand.advance(Duration::from_millis(900));
    pass(&mut keys, &rule, 1);
    assert_eq!(remaining(&mut keys, &rule), 599);
    assert!(end(&mut keys, &rule, 1, 20));
    assert_eq!(remaining(&mut keys, &rule), 599);
}

#[test]
fn a_reset_leaves_leases() {
    let (mut keys, rule) = (Keys::new(), rule("600/minute"));
    ask(&mut keys, &rule, 1, wants(1, 10));
    keys.settle(&[KeySettlement { key: KEY, action: SettlementAction::Reset }]);
    assert_eq!(remaining(&mut keys, &rule), 590);
    assert!(end(&mut keys, &rule, 1, 3));
    assert_eq!(remaining(&mut keys, &rule), 597);
}

#[test]
fn a_lease_is_at_most_a_quarter_of_a_gateway_s_share_of_what_is_left() {
    let (mut keys, rule) = (Keys::new(), rule("600/minute"));
    assert_eq!(ask(&mut keys, &rule, 1, wants(1, 1000)).1, 149);
    // There are two at least. What the other one holds is not left.
    assert_eq!(ask(&mut keys, &rule, 1, wants(2, 1000)).1, (600 - 2 - 149) / 4 / 2);
    assert_eq!(ask(&mut keys, &rule, 3, wants(3, 1000)).1, 0, "less than four a second for each of three gateways");
    // Near the limit there is none.
    let left = remaining(&mut keys, &rule);
    pass(&mut keys, &rule, usize::try_from(left).expect("few") - 16);
    assert_eq!(ask(&mut keys, &rule, 1, wants(4, 1000)).1, 0);
}

#[test]
fn who_is_denied_because_of_leases_may_come_again_when_the_first_of_them_ends() {
    let (mut keys, rule) = (Keys::new(), rule("600/minute"));
    ask(&mut keys, &rule, 1, wants(1, 1000));
    keys.hand.advance(Duration::from_millis(300));
    pass(&mut keys, &rule, 600 - 1 - 149 - 1);
    let last = keys.decide(Purpose::Decide, &[&charge(&rule)]).remove(0);
    assert!(last.passes());
    assert_eq!((last.standings[0].remaining, last.standings[0].reset), (0, Duration::from_millis(700)));
    let denied = keys.decide(Purpose::Decide, &[&charge(&rule)]).remove(0);
    assert_eq!(denied.retry_after, Some(Duration::from_millis(700)));
    assert!(end(&mut keys, &rule, 1, 148));
    pass(&mut keys, &rule, 1);
    let denied = keys.decide(Purpose::Decide, &[&charge(&rule)]).remove(0);
    assert_eq!(denied.retry_after, Some(Duration::from_millis(59_700)));
}

#[test]
fn slots_are_taken_in_advance_and_given_back_with_the_next_call() {
    let (mut keys, rule) = (Keys::new(), Rule::Concurrent(NonZeroU32::new(200).expect("above zero")));
    // A quarter of what is left, and no more than wanted.
    assert_eq!(ask(&mut keys, &rule, 1, wants(1, 1000)).1, 49);
    assert_eq!(taken(&mut keys), 50);
    let ended = Some(EndedLease { id: 1, spent: 9, unspent: 40 });
    assert_eq!(ask(&mut keys, &rule, 3, LeaseRequest { id: 2, wanted: 5, ended }).1, 5);
    assert_eq!(taken(&mut keys), 10 + 1 + 5);
    // Near the limit there are none.
    pass(&mut keys, &rule, 176);
    assert_eq!(ask(&mut keys, &rule, 1, wants(3, 5)).1, 0);
    pass(&mut keys, &rule, 7);
    let ended = Some(EndedLease { id: 4, spent: 0, unspent: 0 });
    let (denied, leased) = ask(&mut keys, &rule, 1, LeaseRequest { id: 5, wanted: 5, ended });
    assert!(!denied.passes() && leased == 0);
}

#[test]
fn a_denied_call_gives_slots_back_too() {
    let (mut keys, rule) = (Keys::new(), Rule::Concurrent(NonZeroU32::new(200).expect("above zero")));
    assert_eq!(ask(&mut keys, &rule, 1, wants(1, 1000)).1, 49);
    let slow = self::rule("1/hour");
    let used_up = Charge { key: KeyHash(0x51), ..charge(&slow) };
    assert!(keys.decide(Purpose::Decide, &[&used_up])[0].passes());
    let ended = Some(EndedLease { id: 1, spent: 0, unspent: 49 });
    let charges = [charge(&rule), used_up];
    let requests = [Some(LeaseRequest { id: 2, wanted: 5, ended }), None];
    let call = DecisionCall {
        names: keys.names(),
        time: &keys.time,
        holder: 0,
        charges: &[&charges[0], &charges[1]],
        known: &[],
        leases: Some(LeaseQuestions { nodes: NonZeroU32::MIN, requests: &requests }),
    };
    let value = keys.run(&call.invocation(Purpose::Decide));
    let answer = invocation::read(&value, &[&charges[0], &charges[1]]).unwrap_or_else(|| panic!("{value:?}"));
    assert!(answer.verdicts[0].charged.is_none() && !answer.verdicts[1].passes());
    assert_eq!(taken(&mut keys), 1);
}

#[test]
fn a_limit_that_a_known_client_is_exempt_from_has_no_lease() {
    let (mut keys, rule) = (Keys::new(), rule("600/minute"));
    let known = KnownClientKey { subject: KeyHash(0x5b), client: 7 };
    let action =
        SettlementAction::Remember { client: known.client, most: NonZeroU32::MIN, keep: Duration::from_secs(60) };
    keys.settle(&[KeySettlement { key: known.subject, action }]);
    let exempt = Charge { key: KeyHash(0x5c), unless_known: true, ..charge(&rule) };
    let charges = [&exempt, &charge(&rule)];
    let requests = [None, Some(wants(1, 10))];
    let call = DecisionCall {
        names: keys.names(),
        time: &keys.time,
        holder: 0,
        charges: &charges,
        known: &[known],
        leases: Some(LeaseQuestions { nodes: NonZeroU32::MIN, requests: &requests }),
    };
    let value = keys.run(&call.invocation(Purpose::Decide));
    let answer = invocation::read(&value, &charges).unwrap_or_else(|| panic!("{value:?}"));
    assert!(answer.verdicts[0].is_exempt && answer.verdicts[1].passes());
    assert_eq!(answer.leased.as_slice(), [10]);
}
