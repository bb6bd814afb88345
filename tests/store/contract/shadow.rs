//! Limits in shadow: decided and counted as if each stood alone.

use crate::support::{Fixture, Limit, ask, ask_one, passing, remaining};

pub(crate) async fn a_shadow_denies_nobody(fixture: impl Fixture) {
    let (shadow, binding) = (Limit::rates("1/minute").shadow(), Limit::rates("5/minute"));
    for round in 0..5 {
        let verdicts = ask(&fixture, &[(&shadow, "shadow"), (&binding, "binding")]).await;
        assert_eq!(passing(&verdicts), [round == 0, true]);
        assert_eq!(remaining(&verdicts[1]), [4 - round]);
    }
}

pub(crate) async fn a_shadow_counts_what_others_deny(fixture: impl Fixture) {
    let (shadow, binding) = (Limit::rates("3/minute").shadow(), Limit::rates("1/minute"));
    for round in 0..5 {
        let verdicts = ask(&fixture, &[(&binding, "binding"), (&shadow, "shadow")]).await;
        assert_eq!(passing(&verdicts), [round == 0, round < 3]);
    }
}

pub(crate) async fn a_shadow_that_refuses_is_not_charged(fixture: impl Fixture) {
    let (tight, loose) = (Limit::rates("2/minute").shadow(), Limit::rates("9/minute").shadow());
    for round in 0..5 {
        let verdicts = ask(&fixture, &[(&tight, "tight"), (&loose, "loose")]).await;
        assert_eq!(passing(&verdicts), [round < 2, true]);
        assert_eq!(remaining(&verdicts[1]), [8 - round]);
    }
    // Had the tight one been charged for what it refused, this would not pass.
    fixture.at("00:01:00");
    assert!(ask_one(&fixture, &tight, "tight").await.passes());
    assert!(ask_one(&fixture, &tight, "tight").await.passes());
}

pub(crate) async fn a_shadow_charges_all_its_keys_or_none(fixture: impl Fixture) {
    let (shadow, other) = (Limit::rates("2/minute").shadow(), Limit::rates("2/minute").shadow());
    for _ in 0..2 {
        assert!(ask_one(&fixture, &shadow, "bob").await.passes());
    }
    let charges = [(&shadow, "alice"), (&shadow, "bob"), (&other, "carol")];
    for round in 0..3 {
        let verdicts = ask(&fixture, &charges).await;
        assert_eq!(passing(&verdicts), [true, false, round < 2]);
        assert_eq!(remaining(&verdicts[0]), [2]);
    }
}

pub(crate) async fn a_shadow_slot_is_taken_though_another_limit_denies(fixture: impl Fixture) {
    let (slots, binding) = (Limit::concurrent(2).shadow(), Limit::rates("1/minute"));
    for round in 0..4 {
        let verdicts = ask(&fixture, &[(&binding, "binding"), (&slots, "slots")]).await;
        assert_eq!(passing(&verdicts), [round == 0, round < 2]);
    }
}
