//! Known clients, and the limits that do not apply to them.

use std::time::Duration;

use crate::support::{Fixture, Limit, ask_as, look_as, passing, remaining, remember};

const DAY: u64 = 86_400;

pub(crate) async fn a_known_client_passes_what_does_not_hold_for_it(fixture: impl Fixture) {
    let limit = Limit::rates("1/hour").unless_known();
    let charges = [(&limit, "alice")];
    assert!(ask_as(&fixture, &charges, &[("alice", "home")]).await[0].passes());
    assert!(!ask_as(&fixture, &charges, &[("alice", "home")]).await[0].passes(), "not known yet");
    remember(&fixture, "alice", "home", 5, DAY).await;
    for _ in 0..5 {
        let verdict = &ask_as(&fixture, &charges, &[("alice", "home")]).await[0];
        assert!(verdict.passes() && verdict.is_exempt && verdict.charged.is_none() && verdict.standings.is_empty());
        assert!(look_as(&fixture, &charges, &[("alice", "home")]).await[0].is_exempt);
        assert!(!ask_as(&fixture, &charges, &[("alice", "far away")]).await[0].passes());
        assert!(!look_as(&fixture, &charges, &[("alice", "far away")]).await[0].passes());
    }
}

pub(crate) async fn nothing_is_charged_where_it_does_not_hold(fixture: impl Fixture) {
    let (exempt, other) = (Limit::rates("5/hour").unless_known(), Limit::rates("3/hour"));
    remember(&fixture, "alice", "home", 5, DAY).await;
    for round in 0..5 {
        let verdicts = ask_as(&fixture, &[(&exempt, "exempt"), (&other, "other")], &[("alice", "home")]).await;
        assert_eq!(passing(&verdicts), [true, round < 3], "another limit holds for known clients as well");
        // A cached denial does not say whether the client is exempt.
        assert!((verdicts[0].is_exempt || round >= 3) && !verdicts[1].is_exempt);
    }
    let stranger = ask_as(&fixture, &[(&exempt, "exempt")], &[("alice", "far away")]).await;
    assert_eq!(remaining(&stranger[0]), [4]);
}

pub(crate) async fn a_client_is_known_to_one_subject_and_not_to_another(fixture: impl Fixture) {
    let limit = Limit::rates("1/hour").unless_known();
    remember(&fixture, "alice", "home", 5, DAY).await;
    assert!(ask_as(&fixture, &[(&limit, "key")], &[("alice", "home")]).await[0].is_exempt);
    assert!(!ask_as(&fixture, &[(&limit, "key")], &[("bob", "home")]).await[0].is_exempt);
}

pub(crate) async fn a_client_is_known_when_it_is_so_for_every_subject(fixture: impl Fixture) {
    let limit = Limit::rates("9/hour").unless_known();
    let both = [("alice", "home"), ("bob", "home")];
    remember(&fixture, "alice", "home", 5, DAY).await;
    assert!(!ask_as(&fixture, &[(&limit, "key")], &both).await[0].is_exempt);
    remember(&fixture, "bob", "home", 5, DAY).await;
    assert!(ask_as(&fixture, &[(&limit, "key")], &both).await[0].is_exempt);
}

pub(crate) async fn who_names_nobody_is_not_known(fixture: impl Fixture) {
    let limit = Limit::rates("9/hour").unless_known();
    remember(&fixture, "alice", "home", 5, DAY).await;
    assert!(!ask_as(&fixture, &[(&limit, "key")], &[]).await[0].is_exempt);
}

pub(crate) async fn whether_it_was_known_is_told_when_it_is_remembered(fixture: impl Fixture) {
    assert!(!remember(&fixture, "alice", "home", 2, DAY).await);
    assert!(remember(&fixture, "alice", "home", 2, DAY).await);
    assert!(!remember(&fixture, "bob", "home", 2, DAY).await);
    assert!(!remember(&fixture, "alice", "work", 2, DAY).await && !remember(&fixture, "alice", "train", 2, DAY).await);
    assert!(!remember(&fixture, "alice", "home", 2, DAY).await, "others have taken its place");
}

pub(crate) async fn the_latest_clients_are_known_and_no_more(fixture: impl Fixture) {
    for client in ["one", "two", "three", "four"] {
        remember(&fixture, "alice", client, 3, DAY).await;
        fixture.advance(Duration::from_secs(1));
    }
    assert_eq!(known(&fixture, ["one", "two", "three", "four"]).await, [false, true, true, true]);
    // A count that was lowered holds from the next success on.
    remember(&fixture, "alice", "five", 2, DAY).await;
    assert_eq!(known(&fixture, ["two", "three", "four", "five"]).await, [false, false, true, true]);
}

pub(crate) async fn who_succeeds_again_is_the_latest(fixture: impl Fixture) {
    for client in ["one", "two", "one", "one", "three"] {
        remember(&fixture, "alice", client, 2, DAY).await;
        fixture.advance(Duration::from_secs(1));
    }
    assert_eq!(known(&fixture, ["one", "two", "three", "four"]).await, [true, false, true, false]);
}

pub(crate) async fn a_client_is_known_for_a_while(fixture: impl Fixture) {
    remember(&fixture, "alice", "one", 5, 60).await;
    fixture.advance(Duration::from_secs(30));
    remember(&fixture, "alice", "two", 5, 60).await;
    fixture.advance(Duration::from_secs(29));
    assert_eq!(known(&fixture, ["one", "two", "", ""]).await, [true, true, false, false]);
    fixture.advance(Duration::from_secs(1));
    assert_eq!(known(&fixture, ["one", "two", "", ""]).await, [false, true, false, false]);
    remember(&fixture, "alice", "two", 5, 60).await;
    fixture.advance(Duration::from_secs(59));
    assert_eq!(known(&fixture, ["one", "two", "", ""]).await, [false, true, false, false]);
    fixture.advance(Duration::from_secs(1));
    assert_eq!(known(&fixture, ["one", "two", "", ""]).await, [false; 4]);
}

/// Which of these clients are known to alice.
async fn known<F: Fixture>(fixture: &F, clients: [&str; 4]) -> [bool; 4] {
    let limit = Limit::rates("1000/hour").unless_known();
    let mut known = [false; 4];
    for (client, known) in clients.iter().zip(&mut known) {
        *known = ask_as(fixture, &[(&limit, "key")], &[("alice", client)]).await[0].is_exempt;
    }
    known
}
