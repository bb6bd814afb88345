//! One limit, one key.

use std::num::NonZeroU32;
use std::time::Duration;

use portcullis::rules::limit::Algorithm;

use crate::support::{Fixture, Limit, ask_one, count, remaining, resets};

pub(crate) async fn each_key_has_its_own_budget(fixture: impl Fixture) {
    for (limit, name) in Limit::each("3/minute") {
        assert_eq!(count(&fixture, 5, &limit, &format!("{name} of alice")).await, 3);
        assert_eq!(count(&fixture, 5, &limit, &format!("{name} of bob")).await, 3);
    }
}

pub(crate) async fn several_rates_pass_together(fixture: impl Fixture) {
    for (limit, name) in Limit::each("100/day; 2/second; 3/minute") {
        assert_eq!(count(&fixture, 5, &limit, &name).await, 2, "{name}");
    }
    fixture.advance(Duration::from_secs(2));
    for (limit, name) in Limit::each("100/day; 2/second; 3/minute") {
        assert_eq!(count(&fixture, 5, &limit, &name).await, 1, "{name}");
    }
    fixture.advance(Duration::from_secs(180));
    for (limit, name) in Limit::each("100/day; 2/second; 3/minute") {
        assert_eq!(count(&fixture, 5, &limit, &name).await, 2, "{name}");
    }
}

pub(crate) async fn a_refused_request_costs_nothing(fixture: impl Fixture) {
    for (limit, name) in Limit::each("2/minute") {
        assert_eq!(count(&fixture, 100, &limit, &name).await, 2, "{name}");
    }
    fixture.advance(Duration::from_secs(120));
    for (limit, name) in Limit::each("2/minute") {
        assert_eq!(count(&fixture, 100, &limit, &name).await, 2, "{name}");
    }
}

pub(crate) async fn a_cost_is_charged_whole_or_not_at_all(fixture: impl Fixture) {
    for (limit, name) in Limit::each("10/minute") {
        let (dear, cheap) = (limit.clone().cost(4), limit);
        assert_eq!(count(&fixture, 5, &dear, &name).await, 2, "{name}");
        assert_eq!(count(&fixture, 5, &cheap, &name).await, 2, "{name}");
    }
}

pub(crate) async fn a_bucket_gives_its_burst_then_its_average(fixture: impl Fixture) {
    let burst = NonZeroU32::new(5);
    let limit = Limit::rates("600/minute").algorithm(Algorithm::TokenBucket { burst });
    assert_eq!(count(&fixture, 9, &limit, "alice").await, 5);
    let mut passed = 0;
    for _ in 0..600 {
        fixture.advance(Duration::from_millis(10));
        passed += count(&fixture, 1, &limit, "alice").await;
    }
    assert_eq!(passed, 60);
    fixture.advance(Duration::from_secs(3600));
    assert_eq!(count(&fixture, 9, &limit, "alice").await, 5);
}

pub(crate) async fn a_door_opens_to_the_microsecond(fixture: impl Fixture) {
    for (limit, name) in Limit::each("3/7 seconds; 5/minute") {
        for _ in 0..20 {
            fixture.advance(Duration::from_micros(1_234_567));
            let Some(wait) = ask_one(&fixture, &limit, &name).await.retry_after else { continue };
            fixture.advance(wait.saturating_sub(Duration::from_micros(1)));
            assert_eq!(ask_one(&fixture, &limit, &name).await.retry_after, Some(Duration::from_micros(1)), "{name}");
            fixture.advance(Duration::from_micros(1));
            assert!(ask_one(&fixture, &limit, &name).await.passes(), "{name}");
        }
    }
}

pub(crate) async fn standings_say_where_the_key_stands_after_the_decision(fixture: impl Fixture) {
    let limit = Limit::rates("2/minute; 100/hour");
    let verdict = ask_one(&fixture, &limit, "alice").await;
    assert_eq!((remaining(&verdict), resets(&verdict)), (vec![1, 99], vec![60.0, 3600.0]));
    fixture.advance(Duration::from_secs(20));
    let verdict = ask_one(&fixture, &limit, "alice").await;
    assert_eq!((remaining(&verdict), resets(&verdict)), (vec![0, 98], vec![40.0, 3580.0]));
    fixture.advance(Duration::from_secs(10));
    let verdict = ask_one(&fixture, &limit, "alice").await;
    assert_eq!(verdict.retry_after, Some(Duration::from_secs(30)));
    assert_eq!((remaining(&verdict), resets(&verdict)), (vec![0, 98], vec![30.0, 3570.0]));
}

pub(crate) async fn a_changed_rate_keeps_what_was_counted(fixture: impl Fixture) {
    for (limit, name) in Limit::each("10/minute") {
        assert_eq!(count(&fixture, 5, &limit, &name).await, 5, "{name}");
    }
    for (limit, name) in Limit::each("7/minute") {
        assert_eq!(count(&fixture, 5, &limit, &name).await, 2, "{name}");
    }
    fixture.advance(Duration::from_secs(2));
    for (limit, name) in Limit::each("5/second; 8/10 minutes") {
        assert!(count(&fixture, 5, &limit, &name).await <= 1, "{name}");
    }
}

pub(crate) async fn a_changed_algorithm_begins_anew(fixture: impl Fixture) {
    for (limit, _) in Limit::each("3/minute") {
        assert_eq!(count(&fixture, 5, &limit, "alice").await, 3, "{limit:?}");
    }
}

pub(crate) async fn a_cost_that_no_window_holds_never_passes(fixture: impl Fixture) {
    for (limit, key) in Limit::each("5/minute; 6/hour") {
        let dear = limit.clone().cost(7);
        for _ in 0..3 {
            let verdict = ask_one(&fixture, &dear, &key).await;
            assert!(!verdict.passes() && verdict.charged.is_none(), "{key}");
        }
        assert!(ask_one(&fixture, &limit, &key).await.passes(), "{key}: what was denied is not charged");
        let (attempted, key) = (dear.attempts(), format!("{key}, attempted"));
        assert!(!ask_one(&fixture, &attempted, &key).await.passes(), "{key}");
        assert!(!ask_one(&fixture, &limit, &key).await.passes(), "{key}: an attempt is charged");
    }
}
