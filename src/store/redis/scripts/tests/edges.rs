//! Cases that other tests do not reach: charges given back, foreign bytes, a full server, leases.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use smallvec::smallvec;

use super::redis_server::RedisServer;
use super::server::Keys;
use crate::rules::decision::batch::{Charged, Force, Items, Ledger};
use crate::rules::decision::{Charge, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Algorithm, Count, Rule};
use crate::store::redis::scripts::{KeySettlement, Purpose, SettlementAction, SlotLeases, probe};
use crate::store::redis::{HashSlot, KeyNames, Time};
use crate::words::clock::ManualClock;

const ALICE: KeyHash = KeyHash(0xa11ce);

const BOB: KeyHash = KeyHash(0xb0b);

fn rule(algorithm: Algorithm, rates: &str, cost: u32) -> Rule {
    Rule::Rates { algorithm, rates: rates.parse().expect(rates), cost: NonZeroU32::new(cost).expect("above zero") }
}

fn distinct(rates: &str) -> Rule {
    Rule::Distinct(rates.parse().expect(rates))
}

fn slots(most: u32) -> Rule {
    Rule::Concurrent(NonZeroU32::new(most).expect("above zero"))
}

fn charge(key: KeyHash, rule: &Rule) -> Charge<'_> {
    Charge::new(0, key, rule)
}

fn passes(keys: &mut Keys, charges: &[&Charge<'_>]) -> bool {
    keys.decide(Purpose::Decide, charges).iter().all(Verdict::passes)
}

fn set(keys: &mut Keys, key: KeyHash, words: &[&[u8]]) {
    let mut command = redis::cmd(std::str::from_utf8(words[0]).expect("a command"));
    command.arg(keys.names().name(key));
    words[1..].iter().for_each(|word| _ = command.arg(*word));
    assert!(!matches!(keys.send(&command), Value::ServerError(_)));
    let mut end = redis::cmd("PEXPIRE");
    keys.send(end.arg(keys.names().name(key)).arg(60_000));
}

#[test]
fn what_was_given_back_was_never_charged() {
    for algorithm in Algorithm::all() {
        for (rates, times, cost) in [("10/minute; 30/hour", 6, 3), ("1000/minute; 3000/hour", 300, 100)] {
            let mut keys = Keys::new();
            let (one, more) = (rule(algorithm, rates, 1), rule(algorithm, rates, cost));
            let (one, more) = (charge(ALICE, &one), charge(ALICE, &more));
            for _ in 0..times {
                keys.hand.advance(Duration::from_millis(7));
                assert!(passes(&mut keys, &[&one]));
            }
            for later in [0, 1_000_000, 59_000_000] {
                keys.hand.advance(Duration::from_micros(later));
                let before = keys.decide(Purpose::Look, &[&one]);
                let charged = keys.decide(Purpose::Decide, &[&more]).remove(0).charged;
                let charged = charged.expect("there is room");
                assert_ne!(keys.decide(Purpose::Look, &[&one]), before, "{algorithm:?}");
                keys.give_back(&[&more], &[&charged]);
                assert_eq!(keys.decide(Purpose::Look, &[&one]), before, "{algorithm:?} {rates} {later}");
            }
        }
    }
}

#[test]
fn what_is_given_back_late_leaves_what_came_meanwhile() {
    for algorithm in Algorithm::all() {
        for before in [0, 5, 140] {
            let mut keys = Keys::new();
            let rule = rule(algorithm, "400/minute", 1);
            let (alice, bob) = (charge(ALICE, &rule), charge(BOB, &rule));
            for _ in 0..before {
                assert!(passes(&mut keys, &[&alice, &bob]));
                keys.hand.advance(Duration::from_micros(1));
            }
            let charged = keys.decide(Purpose::Decide, &[&alice]).remove(0).charged.expect("there is room");
            for _ in 0..3 {
                keys.hand.advance(Duration::from_micros(1));
                assert!(passes(&mut keys, &[&alice, &bob]));
            }
            keys.give_back(&[&alice], &[&charged]);
            let remains =
                |keys: &mut Keys, charge| keys.decide(Purpose::Look, &[charge]).remove(0).standings[0].remaining;
            assert_eq!(remains(&mut keys, &alice), remains(&mut keys, &bob), "{algorithm:?}");
            // Giving back twice is the same as once.
            keys.give_back(&[&alice, &bob], &[&charged, &charged]);
            if algorithm == Algorithm::SlidingWindowLog {
                assert_eq!(remains(&mut keys, &alice), 397 - before);
            }
        }
    }
}

#[test]
fn the_last_thing_given_back_leaves_no_key() {
    for algorithm in Algorithm::all() {
        let mut keys = Keys::new();
        let rule = rule(algorithm, "5/minute; 9/hour", 5);
        let alice = charge(ALICE, &rule);
        let charged = keys.decide(Purpose::Decide, &[&alice]).remove(0).charged.expect("there is room");
        keys.give_back(&[&alice], &[&charged]);
        assert_eq!(keys.dump(ALICE), Value::Nil, "{algorithm:?}");
        keys.give_back(&[&alice], &[&charged]);
        assert_eq!(keys.dump(ALICE), Value::Nil, "{algorithm:?}");
    }
}

#[test]
fn a_state_that_cannot_be_read_begins_anew() {
    let mut rubbish: Vec<Vec<u8>> = vec![Vec::new(), b"12345".to_vec(), vec![255; 3000]];
    for tag in 0..=12 {
        for length in [0, 1, 2, 6, 7, 8, 14, 17, 18, 22, 25, 29, 43, 49, 200, 3000] {
            for fill in [0, 1, 7, 255] {
                let mut bytes = vec![fill; length];
                bytes.insert(0, tag);
                rubbish.push(bytes);
            }
        }
    }
    let rates = "5/minute; 200/hour; 300/day";
    let mut rules: Vec<Rule> = Algorithm::all().into_iter().map(|algorithm| rule(algorithm, rates, 1)).collect();
    rules.extend([rule(Algorithm::SlidingWindowLog, "7/minute", 2), slots(3), distinct(rates)]);
    let mut keys = Keys::new();
    for rule in &rules {
        let items = if matches!(rule, Rule::Distinct(_)) { smallvec![5, 6] } else { Items::new() };
        let alice = Charge { items, ..charge(ALICE, rule) };
        let fresh = smallvec![5, 6];
        let charged = Charged { moment: keys.hand.now(), ledger: Ledger::Shared, fresh, reservation: None };
        for bytes in &rubbish {
            set(&mut keys, ALICE, &[b"SET", bytes]);
            keys.decide(Purpose::Look, &[&alice]);
            keys.decide(Purpose::Decide, &[&alice]);
            keys.decide(Purpose::Decide, &[&alice]);
            set(&mut keys, ALICE, &[b"SET", bytes]);
            keys.give_back(&[&alice], &[&charged]);
        }
        for words in [[&b"SADD"[..], b"a", b"b"], [b"HSET", b"a", b"b"], [b"RPUSH", b"a", b"b"]] {
            set(&mut keys, ALICE, &[b"DEL"]);
            set(&mut keys, ALICE, &words);
            keys.give_back(&[&alice], &[&charged]);
            assert_eq!(keys.decide(Purpose::Decide, &[&alice]).len(), 1);
            assert!(keys.decide(Purpose::Decide, &[&alice]).remove(0).charged.is_some());
        }
        set(&mut keys, ALICE, &[b"DEL"]);
    }
}

#[test]
fn a_full_server_charges_all_or_nothing() {
    let server = Arc::new(RedisServer::start());
    let mut keys = Keys::on(Arc::clone(&server), Time::OfServer, ManualClock::default());
    let mut rules: Vec<Rule> =
        Algorithm::all().into_iter().map(|algorithm| rule(algorithm, "400/hour; 900/day", 1)).collect();
    rules.extend([slots(500), distinct("400/hour")]);
    let numbered = (0..).zip(&rules);
    let with_items = |charge| Charge { items: smallvec![1, 2], ..charge };
    let charges: Vec<_> = numbered.map(|(number, rule)| with_items(charge(KeyHash(number), rule))).collect();
    let mut charges: Vec<&Charge<'_>> = charges.iter().collect();
    for _ in 0..150 {
        assert!(passes(&mut keys, &charges));
    }
    for _ in 0..charges.len() {
        charges.rotate_left(1);
        let before: Vec<_> = charges.iter().map(|charge| keys.dump(charge.key)).collect();
        server.cli(&["CONFIG", "SET", "maxmemory", "1000000"]);
        let refused = keys.run(&keys.invocation(Purpose::Decide, 7, &charges));
        assert!(matches!(&refused, Value::ServerError(error) if error.code() == "OOM"), "{refused:?}");
        assert!(keys.decide(Purpose::Look, &charges).iter().all(Verdict::passes));
        let after: Vec<_> = charges.iter().map(|charge| keys.dump(charge.key)).collect();
        assert_eq!(before, after);
        server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        assert!(passes(&mut keys, &charges));
    }
}

#[test]
fn a_lease_that_ended_frees_its_slots_and_a_renewed_one_does_not() {
    let mut keys = Keys::of_server();
    let rule = slots(3);
    let alice = charge(ALICE, &rule);
    for holder in [1, 1, 2] {
        assert!(keys.decide_for(holder, Purpose::Decide, &[&alice])[0].passes());
    }
    assert!(!keys.decide_for(3, Purpose::Decide, &[&alice])[0].passes());
    // The first process does not renew: its lease is over.
    let (micros, ended) = (1_000_000, 1_u64.to_be_bytes());
    let command = |at: usize| {
        let mut command = redis::cmd("SETRANGE");
        command.arg(keys.names().name(ALICE)).arg(at).arg(&ended[1..]);
        command
    };
    let over = command(9);
    keys.send(&over);
    let prefix = keys.prefix.clone();
    let held =
        |holder, keys| SlotLeases { names: KeyNames { prefix: &prefix, hash_slot: HashSlot::Key }, holder, keys };
    keys.run(&held(1, &[ALICE]).renew());
    assert!(keys.decide_for(3, Purpose::Decide, &[&alice])[0].passes(), "what was lost stays lost");
    assert!(keys.decide_for(3, Purpose::Decide, &[&alice])[0].passes());
    assert!(!keys.decide_for(3, Purpose::Decide, &[&alice])[0].passes());
    let wait = keys.decide_for(3, Purpose::Decide, &[&alice])[0].retry_after;
    assert_eq!(wait, Some(Duration::from_micros(micros)));
    keys.run(&held(2, &[ALICE]).renew());
    let release = |keys: &mut Keys, holder, freed: &[KeyHash]| {
        let entry = |key: &KeyHash| KeySettlement { key: *key, action: SettlementAction::Release { holder, slots: 1 } };
        keys.settle(&freed.iter().map(entry).collect::<Vec<_>>());
    };
    release(&mut keys, 2, &[BOB, ALICE]);
    assert_eq!(keys.dump(BOB), Value::Nil);
    assert!(keys.decide_for(2, Purpose::Decide, &[&alice])[0].passes());
    assert!(!keys.decide_for(2, Purpose::Decide, &[&alice])[0].passes());
    release(&mut keys, 1, &[ALICE]);
    assert!(!keys.decide_for(2, Purpose::Decide, &[&alice])[0].passes(), "a holder without a slot frees none");
    release(&mut keys, 2, &[ALICE, ALICE]);
    release(&mut keys, 3, &[ALICE, ALICE, ALICE]);
    assert_eq!(keys.dump(ALICE), Value::Nil);
}

#[test]
fn a_reset_leaves_slots_in_flight() {
    let mut keys = Keys::new();
    let (pace, slots) = (rule(Algorithm::SlidingWindowLog, "1/minute", 1), slots(1));
    let (pace, slots) = (charge(ALICE, &pace), charge(BOB, &slots));
    assert!(passes(&mut keys, &[&pace, &slots]));
    keys.settle(&[ALICE, BOB, KeyHash(5)].map(|key| KeySettlement { key, action: SettlementAction::Reset }));
    assert!(passes(&mut keys, &[&pace]));
    assert!(!passes(&mut keys, &[&slots]));
}

#[test]
fn another_server_s_denial_charges_attempts_and_shadows_that_have_room() {
    let mut keys = Keys::new();
    let (pace, tight, slots) =
        (rule(Algorithm::SlidingWindowLog, "9/minute", 1), rule(Algorithm::FixedWindow, "1/minute", 1), slots(9));
    let requests = Charge { limit: 0, ..charge(KeyHash(1), &pace) };
    let attempts = Charge { limit: 1, count: Count::Attempts, ..charge(KeyHash(2), &pace) };
    let shadow = Charge { limit: 2, force: Force::Shadow, ..charge(KeyHash(3), &tight) };
    let also = Charge { limit: 2, force: Force::Shadow, ..charge(KeyHash(4), &pace) };
    let alone = Charge { limit: 3, force: Force::Shadow, ..charge(KeyHash(5), &pace) };
    let in_flight = Charge { limit: 4, count: Count::Attempts, ..charge(KeyHash(6), &slots) };
    let batch = [&requests, &attempts, &shadow, &also, &alone, &in_flight];
    for expected in [[false, true, true, true, true, false], [false, true, false, false, true, false]] {
        assert!(keys.decide(Purpose::Look, &batch).iter().all(|verdict| verdict.charged.is_none()));
        let charged =
            keys.decide(Purpose::Deny, &batch).iter().map(|verdict| verdict.charged.is_some()).collect::<Vec<_>>();
        assert_eq!(charged, expected);
    }
    // Without the other denial, all charges but the shadow pass.
    let charged =
        keys.decide(Purpose::Decide, &batch).iter().map(|verdict| verdict.charged.is_some()).collect::<Vec<_>>();
    assert_eq!(charged, [true, true, false, false, true, true]);
}

#[test]
fn a_probe_is_written() {
    let mut keys = Keys::of_server();
    let name = keys.names().name(ALICE);
    for _ in 0..5 {
        assert!(matches!(keys.run(&probe(&name)), Value::Array(_)));
    }
    assert!((1..=2000).contains(&keys.number(&["PTTL", &name])));
}

#[test]
fn by_the_clock_of_the_server_a_second_is_a_second() {
    let mut keys = Keys::of_server();
    for algorithm in Algorithm::all() {
        let rule = rule(algorithm, "5/second", 1);
        let alice = charge(ALICE, &rule);
        let passed = (0..20).filter(|_| passes(&mut keys, &[&alice])).count();
        assert!((5..=6).contains(&passed) || algorithm == Algorithm::SlidingWindowCounter, "{algorithm:?} {passed}");
        let wait = keys.decide(Purpose::Look, &[&alice]).remove(0).retry_after;
        std::thread::sleep(wait.expect("twenty are too many in a second"));
        assert!(passes(&mut keys, &[&alice]), "{algorithm:?}");
    }
}
