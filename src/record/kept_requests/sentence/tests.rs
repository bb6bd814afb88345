use std::num::NonZeroU32;
use std::sync::Arc;

use super::*;
use crate::record::RequestRecord;
use crate::record::kept_requests::samples::{TIME, facts, kept, limit_facts, policy, policy_with_only, record};
use crate::record::kept_requests::{DecisionFacts, KeptCause};
use crate::rules::key::{OperatorKey, OperatorPart};
use crate::rules::limit::{ActionSeverity, LimitId};

fn limit(rates: &str) -> (LimitFacts, KeptLimit) {
    let rates: crate::rules::limit::Rates = rates.parse().unwrap();
    let part = |selector: &str, value: &str, masked: Option<&str>| OperatorPart {
        selector: selector.to_owned(),
        value: value.to_owned(),
        masked: masked.map(str::to_owned),
    };
    let parts = vec![part("client_ip", "198.51.100.7", None), part("param.user", "alice", Some("a***1f3c"))];
    let met = KeptLimit {
        limit: LimitId(0),
        standings: rates.as_slice().iter().map(|_| Standing { remaining: 0, reset: Duration::from_secs(37) }).collect(),
        key: Some(Arc::new(OperatorKey { parts })),
        applied: Some(ActionSeverity::Deny),
        grounds: Grounds::Count,
    };
    (LimitFacts { rates: rates.as_slice().to_vec(), ..limit_facts("login-pace") }, met)
}

fn request(decision: DecisionLabel, met: (LimitFacts, KeptLimit)) -> Box<KeptRequest> {
    kept(&policy(&[met.0]), facts(), [met.1], &RequestRecord { decision, ..record() })
}

fn without_any_limit(facts: DecisionFacts, record: &RequestRecord<'_>) -> Box<KeptRequest> {
    kept(&policy(&[]), DecisionFacts { limit: None, ..facts }, [], record)
}

#[track_caller]
fn check(request: &KeptRequest, expected: &str) {
    assert_eq!(sentence(request, Viewer::ThisGateway), expected);
}

#[test]
fn a_denial_says_who_may_do_what_how_often_and_from_when() {
    let alone = |rates| {
        let (facts, mut met) = limit(rates);
        met.key = Some(Arc::new(OperatorKey::of_client("198.51.100.7/32".parse().unwrap())));
        request(DecisionLabel::Denied, (facts, met))
    };
    check(
        &alone("5/minute"),
        "Denied at 22:13:20 UTC: the limit login-pace allows 5 requests a minute for 198.51.100.7, and so many were \
         counted; the next one may pass from 22:13:57 UTC.",
    );
    check(
        &alone("1 per 3 minutes; 20/day"),
        "Denied at 22:13:20 UTC: the limit login-pace allows 1 request in 3 minutes and 20 a day for 198.51.100.7, and \
         so many were counted; the next one may pass from 22:13:57 UTC.",
    );
}

#[test]
fn a_user_name_is_masked_for_others() {
    let denied = request(DecisionLabel::Denied, limit("5/minute"));
    assert!(sentence(&denied, Viewer::ThisGateway).contains("for client_ip 198.51.100.7 with param.user alice, and"));
    assert!(sentence(&denied, Viewer::Others).contains("for client_ip 198.51.100.7 with param.user a***1f3c, and"));
}

#[test]
fn every_other_cause_has_its_words() {
    let (facts_of_limit, mut missing) = limit("5/minute");
    (missing.key, missing.standings) = (None, smallvec::SmallVec::new());
    let never = DecisionFacts { frees_at: None, ..facts() };
    check(
        &kept(&policy(&[facts_of_limit]), never, [missing], &record()),
        "Denied at 22:13:20 UTC: the limit login-pace counts by client_ip and param.user, and the request lacks a part \
         of it.",
    );
    let banned = RequestRecord { decision: DecisionLabel::Banned, ban: Some("k1"), ..record() };
    check(
        &without_any_limit(facts(), &banned),
        "Denied at 22:13:20 UTC: 198.51.100.7 is banned until 22:13:57 UTC (ban k1).",
    );
    let listed = RequestRecord { decision: DecisionLabel::Listed, ..record() };
    check(
        &without_any_limit(never, &RequestRecord { list: Some("abusers"), ..listed.clone() }),
        "Denied at 22:13:20 UTC: the list abusers denies 198.51.100.7.",
    );
    check(
        &without_any_limit(DecisionFacts { cause: KeptCause::TooManyValues, ..never }, &record()),
        "Denied at 22:13:20 UTC: it sent a field that a limit counts too often.",
    );
    check(
        &without_any_limit(DecisionFacts { cause: KeptCause::DeniedDescriptor, ..never }, &record()),
        "Denied at 22:13:20 UTC: the route login denies such descriptors by its configuration, whatever was counted.",
    );
    let (slow, met) = limit("3/hour");
    let slow = LimitFacts { delay: Some(Duration::from_secs(20)), ..slow };
    check(
        &request(DecisionLabel::Delayed, (slow, met)),
        "Held for 20 seconds at 22:13:20 UTC, then forwarded: the limit login-pace allows 3 requests an hour for \
         client_ip 198.51.100.7 with param.user alice, and so many were counted.",
    );
}

#[test]
fn a_denial_by_a_route_names_the_lists_whose_members_it_lets_in() {
    let listed = RequestRecord { decision: DecisionLabel::Listed, ..record() };
    let denied = |lists: &[&str], record: &RequestRecord<'_>| {
        let never = DecisionFacts { frees_at: None, limit: None, ..facts() };
        kept(&policy_with_only(lists, &[]), never, [], record)
    };
    check(
        &denied(&["office"], &listed),
        "Denied at 22:13:20 UTC: the route login lets only members of the list office in, and 198.51.100.7 is not on it.",
    );
    check(
        &denied(&["office", "vpn", "partners"], &listed),
        "Denied at 22:13:20 UTC: the route login lets only members of the lists office, vpn and partners in, and \
         198.51.100.7 is on none.",
    );
    let other = "Denied at 22:13:20 UTC: a route that it may be read for lets only members of its lists in, and \
                 198.51.100.7 is not on one.";
    check(&denied(&[], &listed), other);
    check(&denied(&["office"], &RequestRecord { route: None, ..listed }), other);
}

#[test]
fn one_of_anything_is_singular() {
    let at_once = |most: u32| {
        let (facts, met) = limit("5/minute");
        request(DecisionLabel::Denied, (LimitFacts { concurrent: NonZeroU32::new(most), ..facts }, met))
    };
    let says = |most, expected: &str| {
        let sentence = sentence(&at_once(most), Viewer::ThisGateway);
        assert!(sentence.contains(expected), "{sentence}");
    };
    says(1, "allows 1 request at a time for client_ip 198.51.100.7 with param.user alice, and one was under way");
    says(2, "allows 2 requests at a time for client_ip 198.51.100.7 with param.user alice, and so many were under way");
    assert_eq!(span_words(Duration::from_millis(1)), "1 millisecond");
    assert_eq!(span_words(Duration::from_secs(3600)), "1 hour");
}

#[test]
fn an_end_on_another_day_has_its_date() {
    let (facts_of_limit, met) = limit("5/day");
    let end = Some(TIME + Duration::from_secs(7200));
    let denied = kept(&policy(&[facts_of_limit]), DecisionFacts { frees_at: end, ..facts() }, [met], &record());
    assert!(sentence(&denied, Viewer::ThisGateway).ends_with("may pass from 2023-11-15 00:13:20 UTC."));
}
