//! Concurrency slots, and requests that come at the same moment.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Fixture, Limit, ask, ask_one, at_once, count, give_back, passing};

pub(crate) async fn so_many_are_in_flight_and_no_more(fixture: impl Fixture) {
    let limit = Limit::concurrent(3);
    assert_eq!(count(&fixture, 3, &limit, "alice").await, 3);
    let verdict = ask_one(&fixture, &limit, "alice").await;
    assert_eq!(verdict.retry_after, Some(Duration::from_secs(1)));
    assert!(verdict.standings.is_empty());
    fixture.advance(Duration::from_secs(60));
    assert_eq!(count(&fixture, 3, &limit, "alice").await, 0);
    assert_eq!(count(&fixture, 3, &limit, "bob").await, 3);
}

pub(crate) async fn a_slot_given_back_is_free(fixture: impl Fixture) {
    let limit = Limit::concurrent(2);
    for _ in 0..10 {
        assert_eq!(count(&fixture, 3, &limit, "alice").await, 2);
        give_back(&fixture, "alice").await;
        assert_eq!(count(&fixture, 3, &limit, "alice").await, 1);
        give_back(&fixture, "alice").await;
        give_back(&fixture, "alice").await;
    }
}

pub(crate) async fn a_slot_given_back_twice_frees_one(fixture: impl Fixture) {
    let limit = Limit::concurrent(2);
    give_back(&fixture, "alice").await;
    assert_eq!(count(&fixture, 1, &limit, "alice").await, 1);
    give_back(&fixture, "alice").await;
    give_back(&fixture, "alice").await;
    assert_eq!(count(&fixture, 5, &limit, "alice").await, 2);
}

pub(crate) async fn a_denied_request_takes_no_slot(fixture: impl Fixture) {
    let (slots, pace) = (Limit::concurrent(2), Limit::rates("1/minute").attempts());
    for round in 0..5 {
        let verdicts = ask(&fixture, &[(&slots, "slots"), (&pace, "pace")]).await;
        assert_eq!(passing(&verdicts), [true, round == 0]);
    }
    assert_eq!(count(&fixture, 5, &slots, "slots").await, 1);
}

pub(crate) async fn tasks_hammering_one_key_admit_exactly_as_many(fixture: impl Fixture) {
    let limits = [Limit::rates("1000/hour; 500/minute"), Limit::rates("1000/hour").cost(2), Limit::concurrent(500)];
    let fixture = Arc::new(fixture);
    for (number, limit) in limits.into_iter().enumerate() {
        let hammer = |_| {
            let (fixture, limit) = (fixture.clone(), limit.clone());
            async move { count(&*fixture, 200, &limit, &format!("key {number}")).await }
        };
        let passed: usize = at_once(&*fixture, (0..8).map(hammer)).await.into_iter().sum();
        assert_eq!(passed, 500, "{limit:?}");
    }
}

pub(crate) async fn tasks_hammering_two_limits_leave_both_exact(fixture: impl Fixture) {
    let fixture = Arc::new(fixture);
    let hammer = |number: usize| {
        let fixture = fixture.clone();
        async move {
            let (own, shared) = (Limit::rates("100/hour"), Limit::rates("600/hour"));
            let name = format!("own {number}");
            // Half of the tasks name the keys in the opposite order.
            let mut charges = [(&own, name.as_str()), (&shared, "shared")];
            charges.rotate_left(number % 2);
            let mut passed = 0;
            for _ in 0..150 {
                passed += usize::from(passing(&ask(&*fixture, &charges).await) == [true, true]);
            }
            passed
        }
    };
    let passed = at_once(&*fixture, (0..8).map(hammer)).await;
    assert_eq!(passed.iter().sum::<usize>(), 600, "{passed:?}");
    assert!(passed.iter().all(|passed| *passed <= 100), "{passed:?}");
}
