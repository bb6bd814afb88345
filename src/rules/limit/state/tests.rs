use std::num::NonZeroU32;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::sample::select;
use proptest::{prop_assert, prop_assert_eq, prop_assume, prop_oneof, proptest};

use super::*;
use crate::rules::limit::{AlgorithmName, Rates};

fn rule(algorithm: Algorithm, rates: &str) -> Rule {
    Rule::Rates { algorithm, rates: rates.parse().expect(rates), cost: NonZeroU32::MIN }
}

fn charged(rule: &Rule, times: usize, now: Timestamp) -> State {
    let mut state = State::fresh(rule);
    for _ in 0..times {
        state.charge(rule, &[], now);
    }
    state
}

fn remaining(state: &State, rule: &Rule, now: Timestamp) -> Vec<u64> {
    state.standings(rule, now).iter().map(|standing| standing.remaining).collect()
}

/// The beginning of a year of minutes, hours and days.
fn noon() -> Timestamp {
    Timestamp::from_micros(86_400_000_000 * 365 * 100 / 2)
}

fn later(seconds: u64) -> Timestamp {
    noon() + Duration::from_secs(seconds)
}

#[test]
fn a_key_is_small() {
    assert!(size_of::<State>() <= 24, "{}", size_of::<State>());
}

#[test]
fn a_changed_count_keeps_what_was_counted() {
    for algorithm in Algorithm::all() {
        let state = charged(&rule(algorithm, "10/minute"), 5, noon());
        assert_eq!(remaining(&state, &rule(algorithm, "6/minute"), noon()), [1], "{algorithm:?}");
        assert_eq!(remaining(&state, &rule(algorithm, "3/minute"), noon()), [0], "{algorithm:?}");
        assert!(state.opens_at(&rule(algorithm, "5/minute"), &[], noon()).is_some(), "{algorithm:?}");
        assert!(state.opens_at(&rule(algorithm, "6/minute"), &[], noon()).is_none(), "{algorithm:?}");
    }
}

#[test]
fn a_changed_window_keeps_what_was_counted() {
    for algorithm in Algorithm::all() {
        let mut state = charged(&rule(algorithm, "10/minute"), 5, noon());
        for rates in ["7/hour", "7 per 20 seconds", "7 per 59 minutes", "100/day; 7/hour", "7/hour; 8/minute"] {
            let changed = rule(algorithm, rates);
            assert!(remaining(&state, &changed, noon()).contains(&2), "{algorithm:?} {rates}");
        }
        let both = rule(algorithm, "100/hour; 7/2 minutes");
        state.charge(&both, &[], noon());
        assert_eq!(remaining(&state, &both, noon()), [94, 1], "{algorithm:?}");
        let back = rule(algorithm, "7/2 minutes");
        state.charge(&back, &[], noon());
        assert_eq!(remaining(&state, &back, noon()), [0], "{algorithm:?}");
        assert!(state.opens_at(&back, &[], noon()).is_some());
        assert!(state.opens_at(&back, &[], later(400)).is_none(), "{algorithm:?}");
    }
}

#[test]
fn what_never_passes_does_not_pass_because_the_algorithm_changed() {
    let rule = |algorithm, cost| Rule::Rates {
        algorithm,
        rates: "3/minute".parse().expect("a rate"),
        cost: NonZeroU32::new(cost).expect("above zero"),
    };
    let now = Timestamp::from_micros(1_000_000);
    let mut state = State::fresh(&rule(Algorithm::SlidingWindowLog, 1));
    state.charge(&rule(Algorithm::SlidingWindowLog, 1), &[], now);
    assert!(state.opens_at(&rule(Algorithm::FixedWindow, 3), &[], now).is_none());
    assert!(state.opens_at(&rule(Algorithm::FixedWindow, 4), &[], now).is_some());
}

#[test]
fn a_changed_algorithm_begins_anew() {
    for before in Algorithm::all() {
        for after in Algorithm::all().into_iter().filter(|after| *after != before) {
            let mut state = charged(&rule(before, "10/minute"), 10, noon());
            let after = rule(after, "10/minute");
            assert_eq!(state.opens_at(&after, &[], noon()), None);
            assert_eq!(state.expires_at(&after), Some(Timestamp::EPOCH));
            state.charge(&after, &[], noon());
            assert_eq!(remaining(&state, &after, noon()), [9], "{before:?} {after:?}");
        }
        let mut state = charged(&rule(before, "10/minute"), 10, noon());
        let in_flight = Rule::Concurrent(NonZeroU32::MIN);
        assert_eq!(state.opens_at(&in_flight, &[], noon()), None);
        state.charge(&in_flight, &[], noon());
        assert_eq!(state.opens_at(&in_flight, &[], noon()), Some(later(1)));
        assert_eq!(state.expires_at(&in_flight), None);
    }
}

#[test]
fn a_clock_that_steps_back_opens_nothing_early() {
    for algorithm in Algorithm::all() {
        let rule = rule(algorithm, "3/minute");
        let mut state = charged(&rule, 2, later(100));
        state.charge(&rule, &[], later(10));
        let opens = state.opens_at(&rule, &[], later(10)).expect("three were charged");
        assert!(opens >= later(120), "{algorithm:?} {opens}");
        assert_eq!(state.opens_at(&rule, &[], later(100)), Some(opens), "{algorithm:?}");
    }
}

#[test]
fn a_clock_that_stands_still_counts_all_the_same() {
    for algorithm in Algorithm::all() {
        let rule = rule(algorithm, "5/minute; 100/hour");
        for times in 0..5 {
            assert_eq!(charged(&rule, times, noon()).opens_at(&rule, &[], noon()), None, "{algorithm:?} {times}");
        }
        assert!(charged(&rule, 5, noon()).opens_at(&rule, &[], noon()).is_some(), "{algorithm:?}");
    }
}

#[test]
fn slots_given_back_twice_are_given_back_once() {
    let rule = Rule::Concurrent(NonZeroU32::new(2).expect("two"));
    let mut state = charged(&rule, 2, noon());
    assert!(state.opens_at(&rule, &[], noon()).is_some());
    for _ in 0..5 {
        state.release();
    }
    assert_eq!(state.in_flight(), 0);
    assert_eq!(state.expires_at(&rule), Some(Timestamp::EPOCH));
    state.charge(&rule, &[], noon());
    assert_eq!(state.opens_at(&rule, &[], noon()), None);
    state.charge(&rule, &[], noon());
    assert_eq!(state.opens_at(&rule, &[], noon()), Some(later(1)));
}

#[test]
fn a_year_long_window_of_the_largest_count_overflows_nothing() {
    for algorithm in Algorithm::all() {
        let rates =
            format!("{}/100 years; 1/s", if algorithm == Algorithm::SlidingWindowLog { 1000 } else { u32::MAX });
        let widest = Rule::Rates { algorithm, rates: rates.parse().expect("a rate"), cost: NonZeroU32::MAX };
        let mut state = State::fresh(&widest);
        for _ in 0..3 {
            state.charge(&widest, &[], noon());
            assert!(state.opens_at(&widest, &[], noon()).is_some(), "{algorithm:?}");
            assert!(state.expires_at(&widest).is_some_and(|expires| expires > noon()), "{algorithm:?}");
            assert_eq!(state.standings(&widest, noon()).len(), 2);
        }
    }
    let slow = Algorithm::TokenBucket { burst: NonZeroU32::new(u32::MAX) };
    let slow = Rule::Rates { algorithm: slow, rates: "1/100 years".parse().expect("a rate"), cost: NonZeroU32::MAX };
    let state = charged(&slow, 2, noon());
    assert!(state.opens_at(&slow, &[], noon()).is_some());
}

#[test]
fn what_another_algorithm_counted_is_not_taken_back() {
    for before in Algorithm::all() {
        for after in Algorithm::all().into_iter().filter(|after| *after != before) {
            let mut state = charged(&rule(before, "10/minute"), 1, noon());
            let after = rule(after, "10/minute");
            state.take_back(&after, &[], noon());
            state.charge(&after, &[], noon());
            assert_eq!(remaining(&state, &after, noon()), [9], "{before:?} {after:?}");
        }
    }
}

#[test]
fn what_is_taken_back_was_never_charged_though_the_rates_changed() {
    for algorithm in Algorithm::all() {
        let mut state = charged(&rule(algorithm, "10/minute"), 3, noon());
        state.take_back(&rule(algorithm, "8/minute; 20/hour"), &[], noon());
        assert_eq!(remaining(&state, &rule(algorithm, "8/minute; 20/hour"), noon()), [6, 18], "{algorithm:?}");
    }
}

#[test]
fn more_than_there_was_is_not_given_back() {
    for algorithm in Algorithm::all() {
        let rule = rule(algorithm, "10/minute");
        let mut state = charged(&rule, 1, noon());
        for _ in 0..3 {
            state.take_back(&rule, &[], noon());
        }
        assert_eq!(state.standings(&rule, noon()), State::fresh(&rule).standings(&rule, noon()), "{algorithm:?}");
        state.charge(&rule, &[], later(1));
        state.take_back(&rule, &[], Timestamp::from_micros(noon().as_micros() - 3_600_000_000));
        assert_eq!(remaining(&state, &rule, later(1)), [9], "{algorithm:?}");
    }
}

#[test]
fn a_request_counted_by_a_clock_that_stepped_back_is_found_again() {
    let rule = rule(Algorithm::SlidingWindowLog, "10/minute");
    let mut state = charged(&rule, 1, later(100));
    let moment = state.charge(&rule, &[], later(10));
    assert_eq!(moment, later(100));
    state.take_back(&rule, &[], moment);
    assert_eq!(remaining(&state, &rule, later(100)), [9]);
}

#[test]
fn where_more_was_charged_than_had_room_taking_back_makes_no_room() {
    let kept = [Algorithm::SlidingWindowLog, Algorithm::BucketedWindow { buckets: None }];
    for algorithm in kept.into_iter().chain([Algorithm::TokenBucket { burst: None }]) {
        for most in ["1/minute", "3/minute"] {
            let rule = rule(algorithm, most);
            let mut state = State::fresh(&rule);
            let mut reserved = Vec::new();
            while state.opens_at(&rule, &[], later(reserved.len() as u64)).is_none() {
                reserved.push(state.charge(&rule, &[], later(reserved.len() as u64)));
            }
            // As many failures as that, which had no room.
            for _ in 0..reserved.len() {
                state.charge(&rule, &[], later(5));
            }
            for moment in reserved {
                state.take_back(&rule, &[], moment);
                assert!(state.opens_at(&rule, &[], later(5)).is_some(), "{algorithm:?} {most}");
            }
        }
    }
}

fn any_algorithm() -> impl Strategy<Value = Algorithm> {
    let option = prop_oneof![Just(None), (1..70_u32).prop_map(NonZeroU32::new)];
    (select(&AlgorithmName::ALL[..]), option).prop_map(|(name, option)| Algorithm::of(name, option))
}

fn any_rates() -> impl Strategy<Value = Rates> {
    let rates = vec((1..30_u32, 1..2000_u64), 1..4);
    rates.prop_map(|mut rates| {
        rates.sort_by_key(|(_, per)| *per);
        rates.dedup_by_key(|(_, per)| *per);
        let text: Vec<_> = rates.into_iter().map(|(count, per)| format!("{count}/{per}s")).collect();
        text.join(";").parse().expect("rates")
    })
}

fn any_history() -> impl Strategy<Value = Vec<Duration>> {
    let wait = prop_oneof![Just(0), 0..2_000_000_u64, 0..400_000_000_u64];
    vec(wait.prop_map(Duration::from_micros), 0..80)
}

proptest! {
    #[test]
    fn what_opens_opens_then_and_not_before(
        algorithm in any_algorithm(), rates in any_rates(), waits in any_history(), attempts in any::<bool>(),
    ) {
        let rule = Rule::Rates { algorithm, rates, cost: NonZeroU32::MIN };
        let (mut state, mut now) = (State::fresh(&rule), noon());
        for wait in waits {
            now = now + wait;
            let opens = state.opens_at(&rule, &[], now);
            if let Some(opens) = opens {
                assert!(opens > now);
                let before = Timestamp::from_micros(opens.as_micros() - 1);
                prop_assert_eq!(state.opens_at(&rule, &[], before), Some(opens));
                prop_assert_eq!(state.opens_at(&rule, &[], opens), None);
            }
            let least = state.standings(&rule, now).iter().map(|standing| standing.remaining).min();
            prop_assert_eq!(least == Some(0), opens.is_some());
            if attempts || opens.is_none() {
                state.charge(&rule, &[], now);
            }
        }
    }

    #[test]
    fn a_reset_is_when_more_may_pass(algorithm in any_algorithm(), rates in any_rates(), waits in any_history()) {
        let rule = Rule::Rates { algorithm, rates, cost: NonZeroU32::MIN };
        let (mut state, mut now) = (State::fresh(&rule), noon());
        for wait in waits {
            now = now + wait;
            let standings = state.standings(&rule, now);
            for (position, standing) in standings.iter().enumerate().filter(|(_, standing)| !standing.reset.is_zero()) {
                let at = now + standing.reset;
                let before = Timestamp::from_micros(at.as_micros() - 1);
                prop_assert_eq!(state.standings(&rule, before)[position].remaining, standing.remaining);
                assert!(state.standings(&rule, at)[position].remaining > standing.remaining);
            }
            if state.opens_at(&rule, &[], now).is_none() {
                state.charge(&rule, &[], now);
            }
        }
    }

    #[test]
    fn expired_memory_says_what_no_memory_says(
        algorithm in any_algorithm(), rates in any_rates(), waits in any_history(),
    ) {
        let rule = Rule::Rates { algorithm, rates, cost: NonZeroU32::MIN };
        let (mut state, mut now) = (State::fresh(&rule), noon());
        for wait in waits {
            now = now + wait;
            state.charge(&rule, &[], now);
        }
        let expires = state.expires_at(&rule).expect("nothing is in flight").max(now);
        prop_assert_eq!(state.standings(&rule, expires), State::fresh(&rule).standings(&rule, expires));
        prop_assert_eq!(state.opens_at(&rule, &[], expires), None);
    }

    #[test]
    fn what_is_taken_back_frees_no_more_than_if_it_had_never_been(
        algorithm in any_algorithm(), rates in any_rates(), waits in any_history(), picks in vec(0..3_usize, 80),
    ) {
        // The counts in a fixed window decide when it opens, so this does not hold for fixed windows.
        prop_assume!(algorithm != Algorithm::FixedWindow);
        let rule = Rule::Rates { algorithm, rates, cost: NonZeroU32::MIN };
        let (mut state, mut without, mut now) = (State::fresh(&rule), State::fresh(&rule), noon());
        let mut reserved = Vec::new();
        for (wait, pick) in waits.into_iter().zip(picks) {
            now = now + wait;
            if state.opens_at(&rule, &[], now).is_some() {
                reserved.drain(..).for_each(|moment| state.take_back(&rule, &[], moment));
            } else {
                let moment = state.charge(&rule, &[], now);
                if pick == 0 { reserved.push(moment) } else { without.charge(&rule, &[], now); }
            }
            if !reserved.is_empty() {
                continue;
            }
            for (found, truth) in state.standings(&rule, now).iter().zip(without.standings(&rule, now)) {
                prop_assert!(found.remaining <= truth.remaining, "{state:?} {without:?}");
                // What leaks from a bucket leaves no trace.
                if !matches!(algorithm, Algorithm::TokenBucket { .. }) {
                    prop_assert_eq!(*found, truth, "{:?} {:?}", &state, &without);
                }
            }
        }
    }

    #[test]
    fn following_other_rates_never_panics(
        history in vec((any_algorithm(), any_rates(), 0..400_000_000_u64, 1..40_u32), 0..30),
    ) {
        let mut state = State::fresh(&Rule::Concurrent(NonZeroU32::MIN));
        let mut now = noon();
        for (algorithm, rates, wait, cost) in history {
            now = now + Duration::from_micros(wait);
            let rule = Rule::Rates { algorithm, rates, cost: NonZeroU32::new(cost).expect("above zero") };
            state.standings(&rule, now);
            state.opens_at(&rule, &[], now);
            let moment = state.charge(&rule, &[], now);
            assert!(state.expires_at(&rule) > Some(now));
            if cost % 3 == 0 {
                state.take_back(&rule, &[], moment);
            }
        }
    }
}
