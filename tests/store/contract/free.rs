//! Charges of calls that cost nothing.

use std::time::Duration;

use crate::support::{Fixture, Limit, ask, ask_one, passing, remaining};

pub(crate) async fn a_free_charge_is_decided_and_never_charged(fixture: impl Fixture) {
    for (limit, key) in Limit::each("2/minute") {
        let free = limit.clone().free();
        for used in 0..2 {
            for _ in 0..3 {
                let verdict = ask_one(&fixture, &free, &key).await;
                assert!(verdict.passes() && verdict.charged.is_none(), "{key}");
                assert_eq!(remaining(&verdict), [2 - used], "{key}");
            }
            assert!(ask_one(&fixture, &limit, &key).await.passes(), "{key}");
        }
        let verdict = ask_one(&fixture, &free, &key).await;
        assert!(!verdict.passes() && verdict.charged.is_none(), "{key}");
    }
}

pub(crate) async fn a_free_charge_without_room_denies_what_passes_with_it(fixture: impl Fixture) {
    let (narrow, wide) = (Limit::rates("1/minute"), Limit::rates("9/minute"));
    let free = narrow.clone().free();
    assert_eq!(passing(&ask(&fixture, &[(&free, "narrow"), (&wide, "wide")]).await), [true, true]);
    assert!(ask_one(&fixture, &narrow, "narrow").await.passes());
    fixture.advance(Duration::from_secs(20));
    let verdicts = ask(&fixture, &[(&free, "narrow"), (&wide, "wide")]).await;
    assert_eq!(verdicts[0].retry_after, Some(Duration::from_secs(40)));
    assert!(verdicts[1].passes() && verdicts[1].charged.is_none());
    assert_eq!(remaining(&ask_one(&fixture, &wide, "wide").await), [7]);
}

pub(crate) async fn a_free_attempt_counts_nothing(fixture: impl Fixture) {
    let limit = Limit::rates("1/minute").attempts();
    let free = limit.clone().free();
    assert!(ask_one(&fixture, &limit, "key").await.passes());
    fixture.advance(Duration::from_secs(30));
    assert_eq!(ask_one(&fixture, &free, "key").await.retry_after, Some(Duration::from_secs(30)));
    fixture.advance(Duration::from_secs(30));
    assert!(ask_one(&fixture, &limit, "key").await.passes());
}

pub(crate) async fn a_free_shadow_denies_nobody_and_counts_nothing(fixture: impl Fixture) {
    let shadow = Limit::rates("1/minute").shadow();
    let (free, wide) = (shadow.clone().free(), Limit::rates("9/minute"));
    assert_eq!(passing(&ask(&fixture, &[(&free, "shadow"), (&wide, "wide")]).await), [true, true]);
    assert_eq!(passing(&ask(&fixture, &[(&shadow, "shadow"), (&wide, "wide")]).await), [true, true]);
    let verdicts = ask(&fixture, &[(&free, "shadow"), (&wide, "wide")]).await;
    assert_eq!(passing(&verdicts), [false, true]);
    assert_eq!(remaining(&verdicts[1]), [6]);
}
