//! Limits that count distinct values.

use std::time::Duration;

use portcullis::rules::decision::Settlement;
use portcullis::store::Store;

use crate::support::{Fixture, Limit, ask, ask_values, charged, items, passing, remaining, resets, take_back};

pub(crate) async fn so_many_different_values_pass_and_no_more(fixture: impl Fixture) {
    let limit = Limit::distinct("3/hour");
    for (number, name) in ["alice", "bob", "carol"].into_iter().enumerate() {
        let verdict = ask_values(&fixture, &limit, "client", &[name]).await;
        assert!(verdict.passes(), "{name}");
        assert_eq!(remaining(&verdict), [2 - number as u64]);
        assert_eq!(charged(&verdict).fresh, items(&[name]));
    }
    let verdict = ask_values(&fixture, &limit, "client", &["dave"]).await;
    assert_eq!(verdict.retry_after, Some(Duration::from_secs(3600)));
    assert!(verdict.charged.is_none());
    assert!(ask_values(&fixture, &limit, "another client", &["dave"]).await.passes());
}

pub(crate) async fn a_value_in_the_window_costs_nothing_and_is_as_new_again(fixture: impl Fixture) {
    let limit = Limit::distinct("2/minute");
    assert!(ask_values(&fixture, &limit, "client", &["alice"]).await.passes());
    fixture.advance(Duration::from_secs(10));
    assert!(ask_values(&fixture, &limit, "client", &["bob"]).await.passes());
    fixture.advance(Duration::from_secs(10));
    for _ in 0..100 {
        let again = ask_values(&fixture, &limit, "client", &["alice"]).await;
        assert!(again.passes());
        assert_eq!((remaining(&again), resets(&again)), (vec![0], vec![50.0]), "bob leaves first now");
        assert!(charged(&again).fresh.is_empty());
    }
    let carol = ask_values(&fixture, &limit, "client", &["carol"]).await;
    assert_eq!(carol.retry_after, Some(Duration::from_secs(50)));
    fixture.advance(Duration::from_secs(50));
    assert!(ask_values(&fixture, &limit, "client", &["carol"]).await.passes());
    assert_eq!(ask_values(&fixture, &limit, "client", &["bob"]).await.retry_after, Some(Duration::from_secs(10)));
}

pub(crate) async fn a_value_that_is_denied_is_not_seen(fixture: impl Fixture) {
    let limit = Limit::distinct("1/minute");
    assert!(ask_values(&fixture, &limit, "client", &["alice"]).await.passes());
    fixture.advance(Duration::from_secs(30));
    for _ in 0..10 {
        let denied = ask_values(&fixture, &limit, "client", &["bob"]).await;
        assert_eq!(denied.retry_after, Some(Duration::from_secs(30)));
    }
    fixture.advance(Duration::from_secs(30));
    assert!(ask_values(&fixture, &limit, "client", &["carol"]).await.passes());
}

pub(crate) async fn a_door_opens_when_enough_of_the_oldest_leave(fixture: impl Fixture) {
    let limit = Limit::distinct("3/minute");
    for name in ["alice", "bob", "carol"] {
        assert!(ask_values(&fixture, &limit, "client", &[name]).await.passes());
        fixture.advance(Duration::from_secs(10));
    }
    let wait = async |names: &[&str]| ask_values(&fixture, &limit, "client", names).await.retry_after;
    assert_eq!(wait(&["dave"]).await, Some(Duration::from_secs(30)));
    assert_eq!(wait(&["dave", "erin"]).await, Some(Duration::from_secs(40)));
    assert_eq!(wait(&["dave", "erin", "frank"]).await, Some(Duration::from_secs(50)));
    // Alice is counted already and is among the values, so bob and carol must expire first.
    assert_eq!(wait(&["alice", "dave", "erin"]).await, Some(Duration::from_secs(50)));
    fixture.advance(Duration::from_millis(29_999));
    assert_eq!(wait(&["dave"]).await, Some(Duration::from_millis(1)));
    fixture.advance(Duration::from_millis(1));
    assert_eq!(wait(&["dave"]).await, None);
}

pub(crate) async fn values_of_one_request_pass_together_or_not_at_all(fixture: impl Fixture) {
    let limit = Limit::distinct("3/minute");
    assert!(ask_values(&fixture, &limit, "client", &["alice", "bob"]).await.passes());
    assert!(!ask_values(&fixture, &limit, "client", &["carol", "dave"]).await.passes());
    let verdict = ask_values(&fixture, &limit, "client", &["alice", "carol", "bob"]).await;
    assert_eq!((verdict.passes(), remaining(&verdict)), (true, vec![0]));
    assert_eq!(charged(&verdict).fresh, items(&["carol"]));
    assert!(!ask_values(&fixture, &limit, "client", &["alice", "dave"]).await.passes());
}

pub(crate) async fn more_values_than_a_rate_counts_never_pass(fixture: impl Fixture) {
    let limit = Limit::distinct("2/minute");
    for _ in 0..3 {
        assert!(!ask_values(&fixture, &limit, "client", &["alice", "bob", "carol"]).await.passes());
        fixture.advance(Duration::from_secs(3600));
    }
}

pub(crate) async fn several_rates_tell_apart_together(fixture: impl Fixture) {
    let limit = Limit::distinct("2/minute; 3/hour");
    for name in ["alice", "bob"] {
        assert!(ask_values(&fixture, &limit, "client", &[name]).await.passes());
    }
    assert_eq!(ask_values(&fixture, &limit, "client", &["carol"]).await.retry_after, Some(Duration::from_secs(60)));
    fixture.advance(Duration::from_secs(60));
    let verdict = ask_values(&fixture, &limit, "client", &["carol"]).await;
    assert_eq!((verdict.passes(), remaining(&verdict)), (true, vec![1, 0]));
    // Within the hour alice costs nothing, within the minute as much as anyone.
    let verdict = ask_values(&fixture, &limit, "client", &["alice"]).await;
    assert_eq!((verdict.passes(), remaining(&verdict)), (true, vec![0, 0]));
    assert!(charged(&verdict).fresh.is_empty());
    assert_eq!(ask_values(&fixture, &limit, "client", &["bob"]).await.retry_after, Some(Duration::from_secs(60)));
    assert_eq!(ask_values(&fixture, &limit, "client", &["dave"]).await.retry_after, Some(Duration::from_secs(3540)));
}

pub(crate) async fn a_request_denied_elsewhere_is_seen_nowhere(fixture: impl Fixture) {
    let (names, pace) = (Limit::distinct("2/minute"), Limit::rates("1/minute"));
    for round in 0..4 {
        let verdicts = ask(&fixture, &[(&pace, "pace"), (&names, "names")]).await;
        assert_eq!(passing(&verdicts), [round == 0, true]);
    }
    for name in ["alice", "bob"] {
        assert!(ask_values(&fixture, &names, "names", &[name]).await.passes(), "{name}");
    }
}

pub(crate) async fn hammering_with_new_values_keeps_the_door_shut(fixture: impl Fixture) {
    let limit = Limit::distinct("3/minute").attempts();
    for number in 0..20 {
        let name = format!("user {number}");
        assert_eq!(ask_values(&fixture, &limit, "client", &[&name]).await.passes(), number < 3, "{name}");
        fixture.advance(Duration::from_secs(1));
    }
    // What was denied is no key to the door either.
    for number in 15..20 {
        let name = format!("user {number}");
        assert!(!ask_values(&fixture, &limit, "client", &[&name]).await.passes(), "{name}");
    }
    fixture.advance(Duration::from_secs(60));
    assert!(ask_values(&fixture, &limit, "client", &["alice"]).await.passes());
}

pub(crate) async fn a_value_taken_back_is_new_again(fixture: impl Fixture) {
    let limit = Limit::distinct("2/minute").failures();
    for number in 0..10 {
        let name = format!("user {number}");
        let verdict = ask_values(&fixture, &limit, "client", &[&name, "alice"]).await;
        assert!(verdict.passes(), "{name}");
        take_back(&fixture, &limit, "client", &verdict).await;
        fixture.advance(Duration::from_secs(1));
    }
    let verdict = ask_values(&fixture, &limit, "client", &["bob"]).await;
    assert_eq!(remaining(&verdict), [1]);
}

pub(crate) async fn a_value_seen_again_is_not_taken_back(fixture: impl Fixture) {
    let limit = Limit::distinct("2/minute").failures();
    let first = ask_values(&fixture, &limit, "client", &["alice", "bob"]).await;
    fixture.advance(Duration::from_secs(1));
    assert!(ask_values(&fixture, &limit, "client", &["alice"]).await.passes());
    take_back(&fixture, &limit, "client", &first).await;
    let verdict = ask_values(&fixture, &limit, "client", &["carol"]).await;
    assert_eq!((verdict.passes(), remaining(&verdict)), (true, vec![0]));
    assert!(!ask_values(&fixture, &limit, "client", &["bob"]).await.passes());
}

pub(crate) async fn a_value_that_was_there_before_is_not_taken_back(fixture: impl Fixture) {
    let limit = Limit::distinct("1/minute").failures();
    assert!(ask_values(&fixture, &limit, "client", &["alice"]).await.passes());
    fixture.advance(Duration::from_secs(1));
    let again = ask_values(&fixture, &limit, "client", &["alice"]).await;
    take_back(&fixture, &limit, "client", &again).await;
    assert!(!ask_values(&fixture, &limit, "client", &["bob"]).await.passes());
}

pub(crate) async fn a_changed_count_keeps_what_was_seen(fixture: impl Fixture) {
    let (before, after) = (Limit::distinct("4/minute"), Limit::distinct("2/minute"));
    for name in ["alice", "bob", "carol"] {
        assert!(ask_values(&fixture, &before, "client", &[name]).await.passes());
        fixture.advance(Duration::from_secs(10));
    }
    // Three are more than two: the door is shut until one has left, for those who are inside as well.
    assert_eq!(ask_values(&fixture, &after, "client", &["carol"]).await.retry_after, Some(Duration::from_secs(30)));
    fixture.advance(Duration::from_secs(30));
    assert!(ask_values(&fixture, &after, "client", &["carol"]).await.passes());
    assert!(!ask_values(&fixture, &after, "client", &["dave"]).await.passes());
    // Counted whether or not there is room.
    let (key, dave) = (fixture.key("client"), items(&["dave"]));
    let charge = Settlement::Charge { key, rule: &before.rule, items: &dave };
    fixture.store().settle(&[charge]).await.expect("the store answers");
    assert!(!ask_values(&fixture, &after, "client", &["carol"]).await.passes());
}
