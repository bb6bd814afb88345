//! Random histories of several keys: nothing is denied that Redis would let pass.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::sample::select;
use proptest::{prop_oneof, proptest};

use super::*;
use crate::rules::limit::{AlgorithmName, Rate, State};

fn any_rule() -> impl Strategy<Value = Rule> {
    let option = prop_oneof![Just(None), (1..8_u32).prop_map(NonZeroU32::new)];
    let algorithm = (select(&AlgorithmName::ALL[..]), option).prop_map(|(name, option)| Algorithm::of(name, option));
    let rates = vec((1..7_u32, prop_oneof![1..8_u64, Just(60), Just(700)]), 1..4);
    (algorithm, rates, prop_oneof![4 => Just(1), 1 => 2..4_u32]).prop_map(|(algorithm, rates, cost)| {
        let mut known: Vec<Rate> = Vec::new();
        for (count, window) in rates {
            let rate = Rate { count: NonZeroU32::new(count).expect("above zero"), per: seconds(window) };
            if known.iter().all(|other| other.per != rate.per) {
                known.push(rate);
            }
        }
        let rates = Rates::new(known).expect("their windows differ");
        Rule::Rates { algorithm, rates, cost: NonZeroU32::new(cost).expect("above zero") }
    })
}

fn any_wait() -> impl Strategy<Value = Duration> {
    prop_oneof![0..3_000_u64, 0..900_000_u64, 0..9_000_000_u64].prop_map(Duration::from_micros)
}

/// One thing that happens to a few keys, each of which has a rule.
#[derive(Clone, Debug)]
enum Event {
    /// A request under these keys, on its way to Redis for so long.
    Asks(Vec<(u128, Force)>, Duration),
    /// The oldest answer under way arrives.
    Answered,
    /// Another gateway lets a request pass, if there is room.
    Elsewhere(u128),
    Reset(u128),
}

fn place(key: u128) -> usize {
    usize::try_from(key).expect("keys of tests are small")
}

fn any_event() -> impl Strategy<Value = (Duration, Event)> {
    let force = prop_oneof![4 => Just(Force::Binding), 1 => Just(Force::Shadow)];
    let event = prop_oneof![
        6 => (vec((0..4_u128, force), 1..4), any_wait()).prop_map(|(charges, way)| Event::Asks(charges, way)),
        4 => Just(Event::Answered),
        2 => (0..4_u128).prop_map(Event::Elsewhere),
        1 => (0..4_u128).prop_map(Event::Reset),
    ];
    (any_wait(), event)
}

proptest! {
    /// What [`used_up`] rests on.
    #[test]
    fn a_spent_budget_opens_with_the_last_reset(
        rule in any_rule(),
        steps in vec((any_wait(), any::<bool>()), 1..60),
    ) {
        let mut state = State::fresh(&rule);
        let mut now = at(1_000_000);
        for (wait, hammers) in steps {
            now = now + wait;
            if hammers || state.opens_at(&rule, &[], now).is_none() {
                state.charge(&rule, &[], now);
            }
            if let Some(span) = used_up(&rule, &state.standings(&rule, now)) {
                assert_eq!(state.opens_at(&rule, &[], now), Some(now + span), "{state:?}");
            } else if matches!(&rule, Rule::Rates { cost, .. } if cost.get() == 1) {
                assert_eq!(state.opens_at(&rule, &[], now), None, "{state:?}");
            }
        }
    }

    #[test]
    fn nothing_is_denied_here_that_redis_would_let_pass(
        rules in vec(any_rule(), 4),
        events in vec(any_event(), 1..150),
        ahead in 0..100_000_000_u64,
    ) {
        let hand = ManualClock::at(at(1_000_000));
        let truth = MemoryStore::new(&MemorySettings { max_keys: 100, max_sessions: 1000, snapshot: None }, Clock::Manual(hand.clone()));
        // The clock of this gateway shows another time, and runs at the same speed.
        let here = || hand.now() + Duration::from_micros(ahead);
        let denied = DeniedUntil::new(1000);
        denied.subscribed();
        let mut under_way = std::collections::VecDeque::new();
        for (wait, event) in events {
            hand.advance(wait);
            match event {
                Event::Asks(charges, way) => {
                    let mut asked = batch([]);
                    for (key, force) in charges {
                        if asked.charges.iter().all(|other| other.key != KeyHash(key)) {
                            asked.charges.push(Charge { force, ..charge(key, &rules[place(key)]) });
                        }
                    }
                    let sent = here();
                    let Some(denials) = denied.answer(&asked, sent) else {
                        let epoch = denied.epoch();
                        hand.advance(way);
                        let ruled = ruled(truth.decide_now(&asked));
                        under_way.push_back((asked, ruled, sent, epoch));
                        continue;
                    };
                    for (charge, denial) in asked.charges.iter().zip(denials) {
                        let Some(denial) = denial else { continue };
                        let verdict = truth.look_at(charge);
                        let wait = verdict.retry_after.expect("it would pass");
                        assert!(denial.retry_after <= wait, "{denial:?} {verdict:?}");
                    }
                }
                Event::Answered => {
                    if let Some((asked, verdicts, sent, epoch)) = under_way.pop_front() {
                        denied.note(&asked, &verdicts, sent, epoch, |_| false);
                    }
                }
                Event::Elsewhere(key) => drop(truth.decide_now(&batch([charge(key, &rules[place(key)])]))),
                Event::Reset(key) => {
                    truth.reset_now(KeyHash(key), None);
                    denied.reset(KeyHash(key));
                }
            }
        }
    }
}
