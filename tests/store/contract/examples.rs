//! The worked examples of the specification, with their times of day.

use std::time::Duration;

use portcullis::rules::limit::Algorithm;

use crate::support::{Fixture, Limit, ask_one, count, midnight, remaining, resets};

pub(crate) async fn a_log_of_five_entries_waits_four_seconds(fixture: impl Fixture) {
    let limit = Limit::rates("1/second; 5/minute");
    for time in ["12:33:35", "12:33:37", "12:34:14", "12:34:26", "12:34:28"] {
        fixture.at(time);
        assert!(ask_one(&fixture, &limit, "alice").await.passes(), "{time}");
    }
    fixture.at("12:34:31");
    assert_eq!(ask_one(&fixture, &limit, "alice").await.retry_after, Some(Duration::from_secs(4)));
    fixture.at("12:34:40");
    let verdict = ask_one(&fixture, &limit, "alice").await;
    assert!(verdict.passes());
    // The log is now :40, :28, :26, :14, 12:33:37, of which four lie in the minute.
    assert_eq!(remaining(&verdict), [0, 1]);
    assert_eq!(resets(&verdict), [1.0, 34.0]);
}

pub(crate) async fn a_thousand_per_five_minutes_in_a_log(fixture: impl Fixture) {
    a_thousand_per_five_minutes(fixture, Algorithm::SlidingWindowLog).await;
}

pub(crate) async fn a_thousand_per_five_minutes_in_buckets(fixture: impl Fixture) {
    a_thousand_per_five_minutes(fixture, Algorithm::BucketedWindow { buckets: None }).await;
}

async fn a_thousand_per_five_minutes(fixture: impl Fixture, algorithm: Algorithm) {
    let limit = |cost| Limit::rates("1000 per 5 minutes").algorithm(algorithm).cost(cost);
    for (time, cost) in [("10:00:00", 250), ("10:02:00", 500), ("10:04:00", 250)] {
        fixture.at(time);
        assert!(ask_one(&fixture, &limit(cost), "alice").await.passes(), "{time}");
    }
    fixture.at("10:06:00");
    assert!(!ask_one(&fixture, &limit(300), "alice").await.passes(), "it would be 1050");
    let verdict = ask_one(&fixture, &limit(100), "alice").await;
    assert!(verdict.passes());
    assert_eq!(remaining(&verdict), [1000 - 850]);
}

pub(crate) async fn ten_per_minute_in_a_moving_window(fixture: impl Fixture) {
    let limit = Limit::rates("10/minute");
    for (time, requests) in [("00:00:10", 1), ("00:00:20", 2), ("00:00:30", 4), ("00:00:50", 3)] {
        fixture.at(time);
        assert_eq!(count(&fixture, requests, &limit, "alice").await, requests, "{time}");
    }
    fixture.at("00:01:11");
    assert!(ask_one(&fixture, &limit, "alice").await.passes());
    fixture.at("00:01:12");
    assert_eq!(ask_one(&fixture, &limit, "alice").await.retry_after, Some(Duration::from_secs(8)));
}

pub(crate) async fn two_counters_fade_the_minute_before(fixture: impl Fixture) {
    let limit = Limit::rates("10/minute").algorithm(Algorithm::SlidingWindowCounter);
    fixture.at("00:00:30");
    assert_eq!(count(&fixture, 4, &limit, "alice").await, 4);
    fixture.at("00:01:20");
    assert_eq!(count(&fixture, 8, &limit, "alice").await, 8);
    fixture.at("00:01:30");
    // 8 + 2, and two become one just after half of the minute.
    let wait = ask_one(&fixture, &limit, "alice").await.retry_after;
    assert_eq!(wait, Some(Duration::from_micros(1)));
    fixture.at("00:01:40");
    // 8 + 1.
    assert!(ask_one(&fixture, &limit, "alice").await.passes());
    assert!(!ask_one(&fixture, &limit, "alice").await.passes());
}

pub(crate) async fn a_fixed_window_lasts_from_its_first_request(fixture: impl Fixture) {
    let limit = Limit::rates("3/minute").algorithm(Algorithm::FixedWindow);
    fixture.at("00:00:45");
    assert!(ask_one(&fixture, &limit, "alice").await.passes());
    fixture.at("00:01:30");
    assert_eq!(count(&fixture, 3, &limit, "alice").await, 2);
    fixture.at("00:01:44");
    assert_eq!(ask_one(&fixture, &limit, "alice").await.retry_after, Some(Duration::from_secs(1)));
    fixture.at("00:01:45");
    assert_eq!(count(&fixture, 4, &limit, "alice").await, 3);
    assert_eq!(ask_one(&fixture, &limit, "alice").await.retry_after, Some(Duration::from_secs(60)));
}

pub(crate) async fn four_rates_hammered_for_a_day(fixture: impl Fixture) {
    const RATES: [(usize, u64); 4] = [(1, 1), (20, 60), (200, 3600), (800, 86_400)];
    let limit = Limit::rates("1/second; 20/minute; 200/hour; 800/day");
    let mut passed: Vec<Duration> = Vec::new();
    let mut now = Duration::ZERO;
    while now < Duration::from_secs(90000) {
        fixture.set(midnight() + now);
        let expected = RATES.iter().all(|(most, window)| {
            let begin = now.checked_sub(Duration::from_secs(*window));
            let lies_inside = |moment: &&Duration| begin.is_none_or(|begin| **moment > begin);
            passed.iter().rev().take_while(lies_inside).count() < *most
        });
        assert_eq!(ask_one(&fixture, &limit, "alice").await.passes(), expected, "at {now:?}");
        if expected {
            passed.push(now);
        }
        // The shorter windows are full by then, and slower requests fill the day.
        now += if now < Duration::from_secs(7200) { Duration::from_millis(900) } else { Duration::from_secs(17) };
    }
    let on_the_first_day = passed.iter().filter(|moment| **moment < Duration::from_secs(86400)).count();
    assert_eq!(on_the_first_day, 800);
}
