//! Limits that only delay: they deny nothing, and count what passes.

use std::time::Duration;

use crate::support::{Fixture, Limit, ask, ask_one, charge, give_back, passing, remaining, take_back};

pub(crate) async fn a_delay_denies_nobody(fixture: impl Fixture) {
    let (delay, pace) = (Limit::rates("1/minute").delay(), Limit::rates("4/minute"));
    for round in 0..6 {
        let verdicts = ask(&fixture, &[(&delay, "delay"), (&pace, "pace")]).await;
        assert_eq!(passing(&verdicts), [round == 0, round < 4]);
    }
}

pub(crate) async fn what_has_no_room_is_charged_all_the_same(fixture: impl Fixture) {
    let delay = Limit::rates("2/minute").delay();
    for round in 0..5 {
        let verdict = ask_one(&fixture, &delay, "delay").await;
        assert_eq!(verdict.passes(), round < 2);
        assert!(verdict.charged.is_some());
        fixture.advance(Duration::from_secs(20));
    }
    // At 0:40, 1:00 and 1:20: the latest two of them count.
    assert_eq!(ask_one(&fixture, &delay, "delay").await.retry_after, Some(Duration::from_secs(20)));
}

pub(crate) async fn a_delay_is_charged_only_with_what_passes(fixture: impl Fixture) {
    let (delay, pace) = (Limit::rates("5/minute").delay(), Limit::rates("1/minute"));
    for _ in 0..4 {
        let verdicts = ask(&fixture, &[(&delay, "delay"), (&pace, "pace")]).await;
        assert_eq!(remaining(&verdicts[0]), [4]);
    }
}

pub(crate) async fn what_counts_by_outcome_is_not_charged_without_room(fixture: impl Fixture) {
    let delay = Limit::rates("2/minute").failures().delay();
    let first = ask_one(&fixture, &delay, "delay").await;
    assert!(first.passes() && ask_one(&fixture, &delay, "delay").await.passes());
    for _ in 0..5 {
        let verdict = ask_one(&fixture, &delay, "delay").await;
        assert!(!verdict.passes() && verdict.charged.is_none());
    }
    take_back(&fixture, &delay, "delay", &first).await;
    assert!(ask_one(&fixture, &delay, "delay").await.passes());
}

pub(crate) async fn a_failure_without_room_is_charged_afterwards(fixture: impl Fixture) {
    for (limit, name) in Limit::each("2/minute").map(|(limit, name)| (limit.failures().delay(), name)) {
        charge(&fixture, &limit, &name).await;
        assert_eq!(remaining(&ask_one(&fixture, &limit, &name).await), [0], "{name}");
    }
    let limit = Limit::rates("2/minute").failures().delay();
    fixture.advance(Duration::from_secs(30));
    for _ in 0..2 {
        charge(&fixture, &limit, "log").await;
        charge(&fixture, &limit, "log").await;
    }
    fixture.advance(Duration::from_secs(59));
    assert_eq!(ask_one(&fixture, &limit, "log").await.retry_after, Some(Duration::from_secs(1)));
}

pub(crate) async fn no_slot_is_taken_beyond_the_bound(fixture: impl Fixture) {
    let (slots, pace) = (Limit::concurrent(1).delay(), Limit::rates("9/minute"));
    let charges = [(&slots, "slots"), (&pace, "pace")];
    assert_eq!(passing(&ask(&fixture, &charges).await), [true, true]);
    for _ in 0..3 {
        let verdicts = ask(&fixture, &charges).await;
        assert_eq!(passing(&verdicts), [false, true]);
        assert!(verdicts[0].charged.is_none() && verdicts[1].charged.is_some());
    }
    give_back(&fixture, "slots").await;
    assert_eq!(passing(&ask(&fixture, &charges).await), [true, true]);
}
