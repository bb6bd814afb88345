use super::*;
use crate::clock::Timestamp;

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

fn limit(decided: u64, lacking: u64) -> ObservedLimit {
    ObservedLimit { name: "login".into(), login_field: Some("param.username".into()), decided, lacking }
}

/// The kinds that hold after this.
fn kinds(advisor: &Advisor, observed: &Observed) -> Vec<AdviceKind> {
    advisor.judge(observed, NOW);
    advisor.advice().iter().map(|advice| advice.kind).collect()
}

#[test]
fn nothing_is_said_before_a_thousand_requests() {
    let advisor = Advisor::default();
    let route = ObservedRoute { name: "login".into(), answers: 999, neither: 999 };
    let observed = Observed {
        passed: 999,
        untrusted_forwarding: 999,
        busiest_client: Some(("198.51.100.7".into(), 999, 999)),
        limits: vec![limit(999, 999)],
        routes: vec![route],
    };
    assert_eq!(kinds(&advisor, &observed), []);
}

#[test]
fn each_is_said_from_a_thousand_on_and_gone_when_it_is_no_longer_so() {
    let advisor = Advisor::default();
    let observe = |passed: u64, part: u64, busiest: u64| Observed {
        passed,
        untrusted_forwarding: part,
        busiest_client: Some(("198.51.100.7".into(), busiest, 1000)),
        limits: vec![limit(passed, part)],
        routes: vec![ObservedRoute { name: "login".into(), answers: passed, neither: part }],
    };
    assert_eq!(kinds(&advisor, &observe(0, 0, 0)), []);
    let all = [
        AdviceKind::UntrustedForwarding,
        AdviceKind::OneClient,
        AdviceKind::MissingField,
        AdviceKind::OutcomeMatchesNeither,
    ];
    assert_eq!(kinds(&advisor, &observe(1000, 500, 950)), all);
    // It stays while too few requests say anything else.
    assert_eq!(kinds(&advisor, &observe(1999, 500, 950)), all);
    assert_eq!(kinds(&advisor, &observe(2000, 500, 949)), []);
    let advice = Observed { limits: vec![limit(3000, 1000)], ..observe(2000, 500, 0) };
    assert_eq!(kinds(&advisor, &advice), [AdviceKind::MissingField]);
    let advice = &advisor.advice()[0];
    assert_eq!((advice.limit.as_deref(), advice.since), (Some("login"), NOW));
    assert!(advice.message.contains("500 of the last 1000") && advice.help.contains("param.username"), "{advice:?}");
    // A reload removes the limit.
    assert_eq!(kinds(&advisor, &Observed { limits: Vec::new(), ..observe(2000, 500, 0) }), []);
}

#[test]
fn a_limit_that_counts_nothing_is_named_until_it_counts() {
    let advisor = Advisor::default();
    let observe =
        |passed: u64, decided: u64| Observed { passed, limits: vec![limit(decided, 0)], ..Observed::default() };
    assert_eq!(kinds(&advisor, &observe(50, 0)), []);
    assert_eq!(kinds(&advisor, &observe(1049, 0)), []);
    assert_eq!(kinds(&advisor, &observe(1050, 0)), [AdviceKind::LimitNeverCounted]);
    assert_eq!(kinds(&advisor, &observe(1051, 1)), []);
    assert_eq!(kinds(&advisor, &observe(9000, 1)), []);
    assert_eq!(kinds(&advisor, &observe(90_000, 1)), []);
}
