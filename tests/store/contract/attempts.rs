//! Limits that count attempts: what they deny is charged too.

use std::num::NonZeroU32;
use std::time::Duration;

use portcullis::rules::limit::Algorithm;

use crate::support::{Fixture, Limit, ask, ask_one, count, passing, remaining};

pub(crate) async fn hammering_keeps_the_door_shut(fixture: impl Fixture) {
    let limit = Limit::rates("3/minute").attempts();
    assert_eq!(count(&fixture, 3, &limit, "alice").await, 3);
    for _ in 0..60 {
        fixture.advance(Duration::from_secs(15));
        assert!(!ask_one(&fixture, &limit, "alice").await.passes());
    }
    fixture.advance(Duration::from_secs(59));
    // Only the last attempt lies in this minute.
    assert_eq!(count(&fixture, 9, &limit, "alice").await, 2);
}

pub(crate) async fn a_denied_attempt_is_charged_whatever_denied_it(fixture: impl Fixture) {
    let (narrow, attempts, requests) =
        (Limit::rates("1/minute"), Limit::rates("9/minute").attempts(), Limit::rates("9/minute"));
    for round in 0..5 {
        let charges = [(&narrow, "narrow"), (&attempts, "attempts"), (&requests, "requests")];
        let verdicts = ask(&fixture, &charges).await;
        assert_eq!(passing(&verdicts), [round == 0, true, true]);
        assert_eq!(remaining(&verdicts[1]), [8 - round]);
        assert_eq!(remaining(&verdicts[2]), [8]);
    }
}

pub(crate) async fn the_door_opens_once_the_hammering_ends(fixture: impl Fixture) {
    let algorithms = [
        (Algorithm::SlidingWindowLog, 60),
        // What came in one window fades in the next.
        (Algorithm::SlidingWindowCounter, 120),
        (Algorithm::BucketedWindow { buckets: NonZeroU32::new(6) }, 70),
        (Algorithm::FixedWindow, 60),
        // A full bucket has room for one after a twentieth of its time.
        (Algorithm::TokenBucket { burst: None }, 3),
    ];
    for (algorithm, seconds) in algorithms {
        let limit = Limit::rates("20/minute").algorithm(algorithm).attempts();
        assert_eq!(count(&fixture, 1000, &limit, &format!("{algorithm:?}")).await, 20, "{algorithm:?}");
        let limit = Limit::rates("20/minute").algorithm(algorithm);
        let wait = ask_one(&fixture, &limit, &format!("{algorithm:?}")).await.retry_after;
        let wait = wait.unwrap_or_else(|| panic!("{algorithm:?} is open"));
        assert!(wait <= Duration::from_secs(seconds), "{algorithm:?}: {wait:?}");
    }
}

pub(crate) async fn a_shadow_counts_attempts_alone(fixture: impl Fixture) {
    let limit = Limit::rates("2/minute").attempts().shadow();
    assert_eq!(count(&fixture, 2, &limit, "alice").await, 2);
    for _ in 0..10 {
        fixture.advance(Duration::from_secs(29));
        assert!(!ask_one(&fixture, &limit, "alice").await.passes());
    }
}
