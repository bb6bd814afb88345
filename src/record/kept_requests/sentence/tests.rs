use std::sync::Arc;

use http::Method;

use super::*;
use crate::key::OperatorKey;
use crate::key::OperatorPart;
use crate::record::kept_requests::DecisionFacts;
use crate::record::kept_requests::LimitFacts;

/// 2023-11-14, 22:13:20 UTC.
const TIME: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

fn limit(rates: &str) -> KeptLimit {
    let rates: crate::limit::Rates = rates.parse().unwrap();
    let part = |selector: &str, value: &str, masked: Option<&str>| OperatorPart {
        selector: selector.to_owned(),
        value: value.to_owned(),
        masked: masked.map(str::to_owned),
    };
    let parts = vec![part("client_ip", "198.51.100.7", None), part("param.user", "alice", Some("a***1f3c"))];
    KeptLimit {
        standings: rates.as_slice().iter().map(|_| Standing { remaining: 0, reset: Duration::from_secs(37) }).collect(),
        facts: Arc::new(LimitFacts {
            name: "login-pace".into(),
            selectors: vec!["client_ip".to_owned(), "param.user".to_owned()],
            rates: rates.as_slice().to_vec(),
            concurrent: None,
            counted: ["request", "requests"].map(str::to_owned),
            shadow: false,
            delay: None,
            decision: "denied",
        }),
        key: Some(Arc::new(OperatorKey { parts })),
        denied: true,
    }
}

fn request(decision: DecisionLabel, met: Option<KeptLimit>) -> KeptRequest {
    KeptRequest {
        id: "01J".into(),
        time: TIME,
        decision,
        client: [198, 51, 100, 7].into(),
        peer: [10, 0, 0, 1].into(),
        method: Method::POST,
        host: "example.com".into(),
        path: "/login".into(),
        route: Some("login".into()),
        status: Some(429),
        limit: met.as_ref().map(|met| Arc::clone(&met.facts.name)),
        ban: None,
        list: None,
        facts: Arc::new(DecisionFacts {
            decided: TIME,
            frees_at: Some(TIME + Duration::from_millis(36_500)),
            too_many_values: false,
            limits: met.into_iter().collect(),
        }),
    }
}

#[track_caller]
fn check(request: &KeptRequest, expected: &str) {
    assert_eq!(sentence(request, Viewer::ThisGateway), expected);
}

#[test]
fn a_denial_says_who_may_do_what_how_often_and_from_when() {
    let alone = |rates| {
        let mut met = limit(rates);
        met.key = Some(Arc::new(OperatorKey::of_client("198.51.100.7/32".parse().unwrap())));
        request(DecisionLabel::Denied, Some(met))
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
    let denied = request(DecisionLabel::Denied, Some(limit("5/minute")));
    assert!(sentence(&denied, Viewer::ThisGateway).contains("for client_ip 198.51.100.7 with param.user alice, and"));
    assert!(sentence(&denied, Viewer::Others).contains("for client_ip 198.51.100.7 with param.user a***1f3c, and"));
}

#[test]
fn every_other_cause_has_its_words() {
    let mut missing = limit("5/minute");
    (missing.key, missing.standings) = (None, smallvec::SmallVec::new());
    let mut denied = request(DecisionLabel::Denied, Some(missing));
    denied.facts = Arc::new(DecisionFacts { frees_at: None, ..DecisionFacts::clone(&denied.facts) });
    check(
        &denied,
        "Denied at 22:13:20 UTC: the limit login-pace counts by client_ip and param.user, and the request lacks a part \
         of it.",
    );
    let banned = KeptRequest { ban: Some("k1".into()), ..request(DecisionLabel::Banned, None) };
    check(&banned, "Denied at 22:13:20 UTC: 198.51.100.7 is banned until 22:13:57 UTC (ban k1).");
    let listed = KeptRequest { list: Some("abusers".into()), ..denied_without_end(DecisionLabel::Listed) };
    check(&listed, "Denied at 22:13:20 UTC: the list abusers denies 198.51.100.7.");
    check(
        &denied_without_end(DecisionLabel::Listed),
        "Denied at 22:13:20 UTC: the route login lets only members of its lists in, and 198.51.100.7 is not on one.",
    );
    let mut slow = limit("3/hour");
    slow.facts = Arc::new(LimitFacts { delay: Some(Duration::from_secs(20)), ..LimitFacts::clone(&slow.facts) });
    check(
        &request(DecisionLabel::Delayed, Some(slow)),
        "Held for 20 seconds at 22:13:20 UTC, then forwarded: the limit login-pace allows 3 requests an hour for \
         client_ip 198.51.100.7 with param.user alice, and so many were counted.",
    );
}

#[test]
fn an_end_on_another_day_has_its_date() {
    let mut denied = request(DecisionLabel::Denied, Some(limit("5/day")));
    let end = Some(TIME + Duration::from_secs(7200));
    denied.facts = Arc::new(DecisionFacts { frees_at: end, ..DecisionFacts::clone(&denied.facts) });
    assert!(sentence(&denied, Viewer::ThisGateway).ends_with("may pass from 2023-11-15 00:13:20 UTC."));
}

fn denied_without_end(decision: DecisionLabel) -> KeptRequest {
    let denied = request(decision, None);
    let facts = DecisionFacts { frees_at: None, ..DecisionFacts::clone(&denied.facts) };
    KeptRequest { facts: Arc::new(facts), ..denied }
}
