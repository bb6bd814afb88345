use std::num::NonZeroU32;
use std::time::Duration;

use crate::gateway::ratelimit_headers::*;
use crate::rules::decision::FoundKey;
use crate::rules::key::KeySpec;
use crate::rules::limit::{Algorithm, Count, DescriptorFilter, Detail, Missing, Rule, Standing, Then};

fn limit(name: &str, rates: &str) -> Limit {
    Limit {
        name: name.into(),
        key: KeySpec::default(),
        missing: Missing::Count,
        rule: Rule::Rates {
            algorithm: Algorithm::SlidingWindowLog,
            rates: rates.parse().expect("a rate"),
            cost: NonZeroU32::MIN,
        },
        count: Count::Requests,
        distinct: None,
        reset_on: None,
        then: Then::default(),
        shadow: false,
        unless: Vec::new(),
        unless_known: false,
        descriptors: DescriptorFilter::default(),
        headers: Detail::Full,
        on_failure: crate::rules::limit::OnFailure::Local,
        leases: true,
    }
}

struct Shown {
    headers: RateLimitHeaders,
    limits: Vec<Limit>,
}

/// What the store said about one limit.
struct Told {
    limit: u16,
    standings: Vec<Standing>,
}

fn shown(style: HeaderStyle, limits: &[Limit]) -> Shown {
    let headers = RateLimitHeaders { style, limits: limits.iter().map(ExposedLimit::new).collect() };
    Shown { headers, limits: limits.to_vec() }
}

fn report(limit: u16, standings: &[(u64, u64)]) -> Told {
    let standing = |&(remaining, millis)| Standing { remaining, reset: Duration::from_millis(millis) };
    Told { limit, standings: standings.iter().map(standing).collect() }
}

impl Shown {
    fn write(&self, fields: &mut Fields, told: &[Told]) {
        let mut reports = LimitReports::default();
        for Told { limit, standings } in told {
            reports.add(LimitId(*limit), &self.limits[usize::from(*limit)], None, FoundKey::Whole, standings);
        }
        self.headers.write(fields, &reports);
    }
}

#[track_caller]
fn check(shown: &Shown, reports: &[Told], expected: &[(&str, &str)]) {
    let mut fields = Fields::default();
    shown.write(&mut fields, reports);
    let found: Vec<_> =
        fields.iter().map(|field| (field.name.as_str(), str::from_utf8(field.value).expect("text"))).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_policy_and_the_state_of_a_limit_are_shown() {
    let shown = shown(HeaderStyle::Ietf, &[limit("login-pace", "20/minute")]);
    let expected = [("ratelimit-policy", r#""login-pace";q=20;w=60"#), ("ratelimit", r#""login-pace";r=17;t=42"#)];
    check(&shown, &[report(0, &[(17, 41_001)])], &expected);
}

#[test]
fn further_rates_of_a_limit_are_numbered_and_the_closest_is_the_state() {
    let shown = shown(HeaderStyle::Ietf, &[limit("pace", "4/second; 20/minute; 200/hour")]);
    let policy = r#""pace";q=4;w=1, "pace/2";q=20;w=60, "pace/3";q=200;w=3600"#;
    let expected = [("ratelimit-policy", policy), ("ratelimit", r#""pace/2";r=2;t=30"#)];
    check(&shown, &[report(0, &[(3, 1000), (2, 30_000), (150, 3000)])], &expected);
}

#[test]
fn of_two_equally_close_rates_the_one_that_recovers_later_is_shown() {
    let shown = shown(HeaderStyle::Ietf, &[limit("a", "1/second"), limit("b", "10/minute")]);
    let policy = r#""a";q=1;w=1, "b";q=10;w=60"#;
    let expected = [("ratelimit-policy", policy), ("ratelimit", r#""b";r=0;t=9"#)];
    check(&shown, &[report(0, &[(0, 1000)]), report(1, &[(0, 9000)])], &expected);
}

#[test]
fn the_older_headers_show_the_same_rate() {
    let shown = shown(HeaderStyle::Legacy, &[limit("a", "10/minute")]);
    let older = [("x-ratelimit-limit", "10"), ("x-ratelimit-remaining", "7"), ("x-ratelimit-reset", "9")];
    check(&shown, &[report(0, &[(7, 8_500)])], &older);
    let newer = [("ratelimit-policy", r#""a";q=10;w=60"#), ("ratelimit", r#""a";r=7;t=9"#)];
    let both = self::shown(HeaderStyle::Both, &[limit("a", "10/minute")]);
    check(&both, &[report(0, &[(7, 8_500)])], &[&newer[..], &older].concat());
}

#[test]
fn hidden_limits_are_not_shown() {
    let shadow = Limit { shadow: true, ..limit("shadow", "1/minute") };
    let quiet = Limit { headers: Detail::RetryAfter, ..limit("quiet", "1/minute") };
    let in_flight = Limit { rule: Rule::Concurrent(NonZeroU32::MIN), ..limit("flight", "1/minute") };
    let shown_none = shown(HeaderStyle::Both, &[shadow, quiet, in_flight]);
    check(&shown_none, &[report(0, &[(0, 0)]), report(1, &[(0, 0)]), report(2, &[])], &[]);
    check(&shown(HeaderStyle::Off, &[limit("a", "1/minute")]), &[report(0, &[(0, 0)])], &[]);
}

#[test]
fn a_cost_is_shown_in_units_of_the_quota() {
    let mut dear = limit("dear", "20/minute");
    if let Rule::Rates { cost, .. } = &mut dear.rule {
        *cost = NonZeroU32::new(5).expect("not zero");
    }
    let expected = [("ratelimit-policy", r#""dear";q=20;w=60"#), ("ratelimit", r#""dear";r=15;t=60"#)];
    check(&shown(HeaderStyle::Ietf, &[dear]), &[report(0, &[(15, 60_000)])], &expected);
}

#[test]
fn a_name_is_escaped_as_structured_fields_ask() {
    assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
    assert_eq!(quoted("é"), r#""?""#);
}

#[test]
fn an_applications_own_fields_are_kept_beside_ours() {
    let shown = shown(HeaderStyle::Ietf, &[limit("a", "10/minute")]);
    let mut fields = Fields::default();
    fields.append(KnownName::RATELIMIT, br#""app";r=1"#);
    shown.write(&mut fields, &[report(0, &[(7, 1000)])]);
    let values: Vec<_> = fields.get_all(KnownName::RATELIMIT).collect();
    assert_eq!(values, [&br#""app";r=1"#[..], br#""a";r=7;t=1"#]);
}
