//! Several limits and several keys: all of them or none.

use std::time::Duration;

use crate::support::{Fixture, Limit, ask, ask_one, passing, remaining};

pub(crate) async fn a_request_that_passes_is_charged_to_every_limit(fixture: impl Fixture) {
    let (pace, total, global) = (Limit::rates("5/minute"), Limit::rates("7/hour"), Limit::rates("100/day"));
    for used in 1..=5 {
        let verdicts = ask(&fixture, &[(&pace, "pace"), (&total, "total"), (&global, "global")]).await;
        assert_eq!(passing(&verdicts), [true; 3]);
        let left: Vec<_> = verdicts.iter().flat_map(remaining).collect();
        assert_eq!(left, [5 - used, 7 - used, 100 - used]);
    }
}

pub(crate) async fn a_denied_request_is_charged_to_no_limit(fixture: impl Fixture) {
    let (narrow, wide) = (Limit::rates("2/minute"), Limit::rates("10/minute"));
    for round in 0..10 {
        let verdicts = ask(&fixture, &[(&wide, "wide"), (&narrow, "narrow"), (&wide, "wide too")]).await;
        assert_eq!(passing(&verdicts), [true, round < 2, true]);
        assert_eq!(remaining(&verdicts[0]), [if round < 2 { 9 - round } else { 8 }]);
        assert_eq!(remaining(&verdicts[2]), remaining(&verdicts[0]));
    }
    let unseen = ask(&fixture, &[(&wide, "never seen before"), (&narrow, "narrow")]).await;
    assert_eq!(remaining(&unseen[0]), [10]);
}

pub(crate) async fn every_denying_limit_says_so_with_its_own_wait(fixture: impl Fixture) {
    let (minute, hour, day) = (Limit::rates("1/minute"), Limit::rates("1/hour"), Limit::rates("100/day"));
    let charges = [(&minute, "minute"), (&day, "day"), (&hour, "hour")];
    assert_eq!(passing(&ask(&fixture, &charges).await), [true; 3]);
    fixture.advance(Duration::from_secs(20));
    let waits: Vec<_> = ask(&fixture, &charges).await.into_iter().map(|verdict| verdict.retry_after).collect();
    assert_eq!(waits, [Some(Duration::from_secs(40)), None, Some(Duration::from_secs(3580))]);
}

pub(crate) async fn all_keys_of_a_limit_pass_together(fixture: impl Fixture) {
    let limit = Limit::rates("3/minute");
    for _ in 0..2 {
        assert!(ask_one(&fixture, &limit, "bob").await.passes());
    }
    let both = [(&limit, "alice"), (&limit, "bob")];
    assert_eq!(passing(&ask(&fixture, &both).await), [true, true]);
    let verdicts = ask(&fixture, &both).await;
    assert_eq!(passing(&verdicts), [true, false]);
    assert_eq!(remaining(&verdicts[0]), [2]);
}

pub(crate) async fn a_batch_without_charges_is_decided(fixture: impl Fixture) {
    assert_eq!(ask(&fixture, &[]).await, []);
}
