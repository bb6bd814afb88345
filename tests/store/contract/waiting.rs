//! Keys with reservations whose outcome is open: what other requests get, and what a reset does not clear.

use std::time::Duration;

use portcullis::store::Store;

use crate::support::{Fixture, Limit, ask_one, count, forget, keep, remaining, take_back};

pub(crate) async fn a_denial_beside_a_slot_in_flight_asks_for_a_second(fixture: impl Fixture) {
    let limit = Limit::rates("2/minute").failures();
    let first = ask_one(&fixture, &limit, "alice").await;
    let second = ask_one(&fixture, &limit, "alice").await;
    let wait = async || ask_one(&fixture, &limit, "alice").await.retry_after;
    assert_eq!(wait().await, Some(Duration::from_secs(1)));
    keep(&fixture, &limit, "alice", &first).await;
    drop(first);
    assert_eq!(wait().await, Some(Duration::from_secs(1)), "the other one may come back");
    keep(&fixture, &limit, "alice", &second).await;
    drop(second);
    assert_eq!(wait().await, Some(Duration::from_secs(60)));
    fixture.advance(Duration::from_secs(30));
    drop(ask_one(&fixture, &limit, "bob").await);
    fixture.advance(Duration::from_millis(59_500));
    let _reserved = ask_one(&fixture, &limit, "bob").await;
    let wait = ask_one(&fixture, &limit, "bob").await.retry_after;
    assert_eq!(wait, Some(Duration::from_millis(500)), "never longer than it takes");
}

pub(crate) async fn a_request_that_died_counts_and_does_not_wait(fixture: impl Fixture) {
    let limit = Limit::rates("1/minute").failures();
    drop(ask_one(&fixture, &limit, "alice").await);
    assert_eq!(ask_one(&fixture, &limit, "alice").await.retry_after, Some(Duration::from_secs(60)));
}

pub(crate) async fn a_guess_under_way_is_not_washed_away(fixture: impl Fixture) {
    for (limit, name) in Limit::each("5/minute").map(|(limit, name)| (limit.failures(), name)) {
        let guesses = [ask_one(&fixture, &limit, &name).await, ask_one(&fixture, &limit, &name).await];
        forget(&fixture, &name).await;
        assert_eq!(remaining(&ask_one(&fixture, &limit, &name).await), [4], "{name}");
        for guess in &guesses {
            keep(&fixture, &limit, &name, guess).await;
        }
        assert_eq!(remaining(&ask_one(&fixture, &limit, &name).await), [1], "{name}");
    }
}

pub(crate) async fn what_was_settled_before_a_reset_is_forgotten(fixture: impl Fixture) {
    let limit = Limit::rates("5/minute").failures();
    let guess = ask_one(&fixture, &limit, "alice").await;
    keep(&fixture, &limit, "alice", &guess).await;
    drop(guess);
    forget(&fixture, "alice").await;
    let after = ask_one(&fixture, &limit, "alice").await;
    keep(&fixture, &limit, "alice", &after).await;
    assert_eq!(remaining(&ask_one(&fixture, &limit, "alice").await), [3]);
}

pub(crate) async fn what_was_reserved_before_a_reset_frees_nobody(fixture: impl Fixture) {
    for (limit, name) in Limit::each("5/minute").map(|(limit, name)| (limit.failures(), name)) {
        let before = ask_one(&fixture, &limit, &name).await;
        forget(&fixture, &name).await;
        assert_eq!(count(&fixture, 5, &limit, &name).await, 5, "{name}");
        take_back(&fixture, &limit, &name, &before).await;
        assert!(!ask_one(&fixture, &limit, &name).await.passes(), "{name}");
    }
}

pub(crate) async fn a_reset_by_hand_washes_no_guess_away_either(fixture: impl Fixture) {
    let limit = Limit::rates("5/minute").failures();
    let guess = ask_one(&fixture, &limit, "alice").await;
    fixture.store().reset(&[fixture.key("alice")]).await.expect("the store answers");
    keep(&fixture, &limit, "alice", &guess).await;
    assert_eq!(remaining(&ask_one(&fixture, &limit, "alice").await), [3]);
}
