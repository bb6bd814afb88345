//! Slots that are reserved until the outcome is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portcullis::rules::limit::Algorithm;

use crate::support::{Fixture, Limit, ask, ask_one, at_once, count, keep, passing, remaining, resets, take_back};

pub(crate) async fn a_guess_that_fails_keeps_its_slot_and_one_that_succeeds_gives_it_back(fixture: impl Fixture) {
    for (limit, name) in Limit::each("3/minute").map(|(limit, name)| (limit.failures(), name)) {
        for guess in 0..30 {
            let verdict = ask_one(&fixture, &limit, &name).await;
            assert!(verdict.passes(), "{name} {guess}");
            if guess % 10 == 9 {
                keep(&fixture, &limit, &name, &verdict).await;
            } else {
                take_back(&fixture, &limit, &name, &verdict).await;
            }
        }
        assert!(!ask_one(&fixture, &limit, &name).await.passes(), "{name}");
    }
}

pub(crate) async fn what_is_taken_back_was_never_charged(fixture: impl Fixture) {
    let limits = Limit::each("5/minute; 9/hour").map(|(limit, name)| (limit.failures(), name));
    for (limit, name) in &limits {
        for name in [name.clone(), format!("{name} too")] {
            assert_eq!(count(&fixture, 2, limit, &name).await, 2);
        }
    }
    fixture.advance(Duration::from_millis(7_300));
    for (limit, name) in &limits {
        let reserved = ask_one(&fixture, limit, name).await;
        take_back(&fixture, limit, name, &reserved).await;
    }
    for span in [0, 11, 13, 28, 1, 100, 400] {
        fixture.advance(Duration::from_secs(span));
        for (limit, name) in &limits {
            let verdict = ask_one(&fixture, limit, name).await;
            let other = ask_one(&fixture, limit, &format!("{name} too")).await;
            assert_eq!(verdict.passes(), other.passes(), "{name} after {span} s");
            assert_eq!(verdict.standings, other.standings, "{name} after {span} s");
        }
    }
}

pub(crate) async fn what_was_charged_later_stays(fixture: impl Fixture) {
    let limit = Limit::rates("3/minute").failures();
    let first = ask_one(&fixture, &limit, "alice").await;
    fixture.advance(Duration::from_secs(10));
    let _second = ask_one(&fixture, &limit, "alice").await;
    fixture.advance(Duration::from_secs(10));
    take_back(&fixture, &limit, "alice", &first).await;
    let third = ask_one(&fixture, &limit, "alice").await;
    assert_eq!((remaining(&third), resets(&third)), (vec![1], vec![50.0]));
}

pub(crate) async fn a_cost_is_taken_back_whole(fixture: impl Fixture) {
    for (limit, name) in Limit::each("10/minute").map(|(limit, name)| (limit.cost(4).failures(), name)) {
        let reserved = [ask_one(&fixture, &limit, &name).await, ask_one(&fixture, &limit, &name).await];
        assert_eq!(remaining(&reserved[1]), [2], "{name}");
        take_back(&fixture, &limit, &name, &reserved[0]).await;
        let after = ask_one(&fixture, &limit, &name).await;
        assert_eq!((after.passes(), remaining(&after)), (true, vec![2]), "{name}");
    }
}

pub(crate) async fn what_is_taken_back_makes_room_for_what_costs_more(fixture: impl Fixture) {
    for (limit, name) in Limit::each("4/minute").map(|(limit, name)| (limit.failures(), name)) {
        let mut reserved = ask_one(&fixture, &limit, &name).await;
        // As if another gateway waited for the outcome.
        reserved.charged.as_mut().expect("there is room").reservation = None;
        let dear = limit.clone().cost(4);
        assert!(!ask_one(&fixture, &dear, &name).await.passes(), "{name}");
        take_back(&fixture, &limit, &name, &reserved).await;
        assert!(ask_one(&fixture, &dear, &name).await.passes(), "{name}");
    }
}

pub(crate) async fn a_denied_request_reserves_nothing(fixture: impl Fixture) {
    let (failures, pace) = (Limit::rates("3/minute").failures(), Limit::rates("1/minute"));
    for round in 0..3 {
        let verdicts = ask(&fixture, &[(&failures, "failures"), (&pace, "pace")]).await;
        assert_eq!(passing(&verdicts), [true, round == 0]);
        assert_eq!(verdicts.iter().map(|verdict| verdict.charged.is_some()).collect::<Vec<_>>(), [round == 0; 2]);
        assert_eq!(remaining(&verdicts[0]), [2]);
    }
}

pub(crate) async fn parallel_guesses_are_as_many_as_there_are_slots(fixture: impl Fixture) {
    let fixture = Arc::new(fixture);
    for (number, (limit, _)) in Limit::each("3/minute").into_iter().enumerate() {
        let ask = |_| {
            let (fixture, limit) = (Arc::clone(&fixture), limit.clone().failures());
            async move { ask_one(&*fixture, &limit, &format!("key {number}")).await.passes() }
        };
        let passed = at_once(&*fixture, (0..10).map(ask)).await.into_iter().filter(|passes| *passes).count();
        assert_eq!(passed, 3, "{limit:?}");
    }
}

/// The application sees at most so many at a time, but everyone in the end; and as many failures as there are slots.
pub(crate) async fn parallel_logins_are_all_let_in_as_slots_come_back(fixture: impl Fixture) {
    let (fixture, inside, failed) = (Arc::new(fixture), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let log_in = |number: usize| {
        let (fixture, inside, failed) = (Arc::clone(&fixture), Arc::clone(&inside), Arc::clone(&failed));
        async move {
            let limit = Limit::rates("5/hour").failures();
            for round in 0..20 {
                let verdict = loop {
                    let verdict = ask_one(&*fixture, &limit, "alice").await;
                    if verdict.passes() {
                        break verdict;
                    }
                    tokio::task::yield_now().await;
                };
                assert!(inside.fetch_add(1, Ordering::SeqCst) < 5, "failed or under way");
                tokio::task::yield_now().await;
                if number < 3 && round == 10 {
                    failed.fetch_add(1, Ordering::SeqCst);
                    keep(&*fixture, &limit, "alice", &verdict).await;
                } else {
                    inside.fetch_sub(1, Ordering::SeqCst);
                    take_back(&*fixture, &limit, "alice", &verdict).await;
                }
            }
        }
    };
    at_once(&*fixture, (0..8).map(log_in)).await;
    assert_eq!(failed.load(Ordering::SeqCst), 3);
    assert_eq!(count(&*fixture, 5, &Limit::rates("5/hour").failures(), "alice").await, 2);
}

pub(crate) async fn two_limits_stay_exact_while_slots_come_back(fixture: impl Fixture) {
    let fixture = Arc::new(fixture);
    let task = |number: usize| {
        let fixture = Arc::clone(&fixture);
        async move {
            let own = Limit::rates("40/hour").failures();
            let shared = Limit::rates("100/hour").algorithm(Algorithm::BucketedWindow { buckets: None }).failures();
            let name = format!("own {number}");
            let mut charges = [(&own, name.as_str()), (&shared, "shared")];
            charges.rotate_left(number % 2);
            let mut kept = 0;
            for round in 0..200 {
                let verdicts = ask(&*fixture, &charges).await;
                if passing(&verdicts) != [true, true] {
                    continue;
                }
                if round % 3 == 0 {
                    kept += 1;
                    continue;
                }
                for ((limit, name), verdict) in charges.iter().zip(&verdicts) {
                    take_back(&*fixture, limit, name, verdict).await;
                }
            }
            let left = remaining(&ask_one(&*fixture, &own.clone().shadow(), &name).await)[0];
            assert_eq!(left, 40_usize.saturating_sub(kept + 1) as u64);
            kept
        }
    };
    let kept: usize = at_once(&*fixture, (0..4).map(task)).await.into_iter().sum();
    assert_eq!(kept, 100);
}

pub(crate) async fn what_a_shadow_reserved_is_taken_back_too(fixture: impl Fixture) {
    let (shadow, binding) = (Limit::rates("3/minute").failures().shadow(), Limit::rates("1/minute"));
    for round in 0..6 {
        let verdicts = ask(&fixture, &[(&shadow, "shadow"), (&binding, "binding")]).await;
        assert_eq!(passing(&verdicts), [true, round == 0]);
        take_back(&fixture, &shadow, "shadow", &verdicts[0]).await;
    }
}
