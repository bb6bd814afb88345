//! Calls about descriptors: which limits they meet, what they are charged, and where each descriptor stands.

use std::num::NonZeroU32;
use std::time::Duration;

use portcullis::rules::decision::descriptors::{
    DescriptorCall, DescriptorStatus, InvalidCall, MAX_DESCRIPTORS, MAX_ENTRIES, PricedDescriptor,
};
use portcullis::rules::decision::{Decision, DenialCause};
use portcullis::rules::limit::{
    Action, Algorithm, Count, DescriptorFilter, Detail, EntrySet, Ladder, Limit, Rule, Then,
};
use portcullis::words::glob::Glob;

use crate::entries::descriptor;
use crate::support::{World, ask, concurrent, limit, world};

const MINUTE: Duration = Duration::from_secs(60);

fn costing(hits: u64, entries: &str) -> PricedDescriptor {
    PricedDescriptor { hits: Some(hits), ..descriptor(entries) }
}

fn shop(descriptors: Vec<PricedDescriptor>) -> DescriptorCall {
    DescriptorCall { domain: "shop".into(), descriptors, hits: 0 }
}

/// Whether a call passes, and the status of each descriptor.
#[track_caller]
fn call(world: &World, descriptors: Vec<PricedDescriptor>) -> (bool, Vec<DescriptorStatus>) {
    let (decision, statuses) = world.call(&shop(descriptors)).expect("a valid call");
    let passes = matches!(decision, Decision::Pass(_));
    assert_eq!(passes, statuses.iter().all(|status| !status.is_over), "the whole is over where a part is");
    (passes, statuses)
}

#[track_caller]
fn passes(world: &World, entries: &str) -> bool {
    call(world, vec![descriptor(entries)]).0
}

fn left(statuses: &[DescriptorStatus]) -> Vec<u64> {
    statuses.iter().map(|status| status.remaining).collect()
}

fn domain(limits: Vec<Limit>) -> World {
    let mut world = world();
    world.domain("shop", limits);
    world
}

#[test]
fn a_descriptor_is_counted_by_its_entries() {
    let world = domain(vec![limit("user", "descriptor.user", "2/minute")]);
    for _ in 0..2 {
        assert!(passes(&world, "user=alice"));
    }
    assert!(!passes(&world, "user=alice"));
    assert!(!passes(&world, "user=alice path=/"), "further entries do not matter");
    assert!(passes(&world, "user=bob"));
    assert!(passes(&world, "path=/"), "what lacks the entry does not meet the limit");
    assert!(passes(&world, "user") && passes(&world, "user=") && !passes(&world, "user"), "empty is a value");
}

#[test]
fn an_unknown_domain_passes() {
    let world = domain(vec![limit("user", "descriptor.user", "1/minute")]);
    for _ in 0..3 {
        let call = DescriptorCall { domain: "other".into(), ..shop(vec![descriptor("user=alice")]) };
        let (decision, statuses) = world.call(&call).unwrap();
        assert!(matches!(decision, Decision::Pass(pass) if pass.route.is_none()));
        assert!(!statuses[0].is_over && statuses[0].current_limit.is_none());
    }
}

#[test]
fn a_domain_takes_no_request_and_no_limit_for_every_request() {
    let mut world = domain(vec![limit("domain", "", "1/minute")]);
    world.everywhere(limit("everywhere", "", "5/minute"));
    assert_eq!(world.passing(&ask("GET /login"), 9), 5);
    assert!(passes(&world, "user=alice") && !passes(&world, "user=bob"));
}

#[test]
fn all_descriptors_of_a_call_pass_together_or_not_at_all() {
    let world =
        domain(vec![limit("user", "descriptor.user", "1/minute"), limit("path", "descriptor.path", "9/minute")]);
    assert!(passes(&world, "user=alice"));
    for _ in 0..3 {
        let (passes, statuses) = call(&world, vec![descriptor("path=/"), descriptor("user=alice")]);
        assert!(!passes && !statuses[0].is_over && statuses[1].is_over);
        assert_eq!(left(&statuses), [9, 0], "a denied call is charged to no limit");
    }
}

#[test]
fn descriptors_with_the_same_key_are_charged_their_sum() {
    let world = domain(vec![limit("user", "descriptor.user", "5/minute")]);
    let twice = || vec![costing(2, "user=alice path=/a"), costing(1, "user=alice path=/b")];
    let (first, statuses) = call(&world, twice());
    assert!(first);
    assert_eq!(left(&statuses), [2, 2]);
    let (second, statuses) = call(&world, twice());
    assert!(!second && statuses.iter().all(|status| status.is_over));
    assert!(call(&world, vec![costing(2, "user=alice")]).0);
    assert!(!passes(&world, "user=alice"));
}

#[test]
fn a_call_says_what_its_descriptors_cost() {
    let world = domain(vec![limit("user", "descriptor.user", "10/minute")]);
    let with_hits = |hits, descriptors| DescriptorCall { hits, ..shop(descriptors) };
    let remaining = |call: DescriptorCall| left(&world.call(&call).unwrap().1);
    assert_eq!(remaining(with_hits(0, vec![descriptor("user=alice")])), [9], "none is one");
    assert_eq!(remaining(with_hits(4, vec![descriptor("user=alice")])), [5]);
    assert_eq!(remaining(with_hits(4, vec![costing(2, "user=alice")])), [3], "a descriptor may say otherwise");
}

#[test]
fn a_descriptor_that_costs_nothing_is_denied_by_what_is_exhausted() {
    let world = domain(vec![limit("user", "descriptor.user", "2/minute")]);
    for _ in 0..5 {
        assert_eq!(left(&call(&world, vec![costing(0, "user=alice")]).1), [2]);
    }
    assert!(call(&world, vec![costing(2, "user=alice")]).0);
    let (passes, statuses) = call(&world, vec![costing(0, "user=alice"), descriptor("user=bob")]);
    assert!(!passes && statuses[0].is_over && !statuses[1].is_over);
    assert_eq!(left(&statuses), [0, 2]);
}

#[test]
fn a_descriptor_that_costs_nothing_is_not_denied_by_what_another_costs() {
    let world = domain(vec![limit("user", "descriptor.user", "2/minute")]);
    let (passes, statuses) = call(&world, vec![costing(0, "user=alice"), costing(3, "user=alice")]);
    assert!(!passes && !statuses[0].is_over && statuses[1].is_over);
}

#[test]
fn hits_that_no_window_holds_never_pass() {
    for count in [Count::Requests, Count::Attempts] {
        let algorithms = [
            Algorithm::SlidingWindowLog,
            Algorithm::SlidingWindowCounter,
            Algorithm::BucketedWindow { buckets: None },
            Algorithm::FixedWindow,
            Algorithm::TokenBucket { burst: NonZeroU32::new(7) },
        ];
        for algorithm in algorithms {
            let rule = Rule::Rates { algorithm, rates: "5/minute; 6/hour".parse().unwrap(), cost: NonZeroU32::MIN };
            let world = domain(vec![Limit { rule, count, ..limit("user", "descriptor.user", "1/minute") }]);
            for hits in [8, 1_000_000_000, u64::from(u32::MAX)] {
                let (passes, statuses) = call(&world, vec![costing(hits, "user=alice")]);
                assert!(!passes && statuses[0].reset.is_some_and(|reset| !reset.is_zero()), "{algorithm:?} {hits}");
            }
            let passes = passes(&world, "user=alice");
            assert_eq!(
                passes,
                count == Count::Requests,
                "{algorithm:?}: what was denied is not charged but by attempts"
            );
        }
    }
}

#[test]
fn attempts_of_a_denied_call_are_charged_to_every_descriptor() {
    let counted = |name, key, rate| Limit { count: Count::Attempts, ..limit(name, key, rate) };
    let limits = vec![counted("user", "descriptor.user", "1/minute"), counted("path", "descriptor.path", "3/minute")];
    let world = domain(limits);
    let both = || vec![descriptor("user=alice"), descriptor("path=/")];
    assert!(call(&world, both()).0);
    for remaining in [1, 0] {
        assert_eq!(left(&call(&world, both()).1), [0, remaining]);
    }
    assert!(!passes(&world, "path=/"));
}

#[test]
fn a_shadow_limit_denies_nothing_and_tells_the_proxy_nothing() {
    let world = domain(vec![Limit { shadow: true, ..limit("shadow", "descriptor.user", "1/minute") }]);
    for round in 0..3 {
        let (decision, statuses) = world.call(&shop(vec![descriptor("user=alice")])).unwrap();
        let Decision::Pass(pass) = decision else { panic!("a shadow limit denies nothing") };
        assert_eq!(pass.report.limits[0].applied.is_some(), round > 0, "it is reported");
        assert!(!statuses[0].is_over && statuses[0].current_limit.is_none() && statuses[0].reset.is_none());
    }
}

#[test]
fn a_limit_of_what_is_in_flight_is_skipped() {
    let world = domain(vec![concurrent("flight", "descriptor.user", 1)]);
    for _ in 0..3 {
        assert!(passes(&world, "user=alice"));
    }
}

#[test]
fn a_limit_that_would_wait_for_answers_keeps_every_place() {
    for count in [Count::Failures, Count::Successes] {
        let world = domain(vec![Limit { count, ..limit("user", "descriptor.user", "2/minute") }]);
        assert!(passes(&world, "user=alice") && passes(&world, "user=alice") && !passes(&world, "user=alice"));
    }
}

#[test]
fn different_values_are_counted_once_over_all_descriptors() {
    let part = limit("", "descriptor.account", "1/minute").key.parts.remove(0);
    let rule = Rule::Distinct("2/minute".parse().unwrap());
    let guessing = Limit { rule, distinct: Some(part), ..limit("guessing", "descriptor.address", "1/minute") };
    let world = domain(vec![guessing]);
    let tries = |account: &str| descriptor(&format!("address=192.0.2.1 account={account}"));
    assert!(call(&world, vec![tries("alice"), tries("bob"), tries("alice")]).0);
    assert!(call(&world, vec![tries("bob")]).0, "it was counted already");
    assert!(!call(&world, vec![tries("carol")]).0);
    assert!(passes(&world, "address=192.0.2.1"), "what names no account does not meet the limit");
}

#[test]
fn values_choose_among_descriptors() {
    let chosen = |name: &str, rate, descriptors| Limit { descriptors, ..limit(name, "descriptor.user", rate) };
    let gold = DescriptorFilter { values: vec![("tier".into(), Glob::cased("gold*"))], ..Default::default() };
    let others = DescriptorFilter {
        except: vec![("tier".into(), vec![Glob::cased("gold*")])],
        entries: EntrySet::Exact,
        values: vec![("tier".into(), Glob::cased("*"))],
        ..Default::default()
    };
    let world = domain(vec![chosen("gold", "3/minute", gold), chosen("others", "1/minute", others)]);
    let count = |entries| (0..9).filter(|_| passes(&world, entries)).count();
    assert_eq!(count("user=alice tier=gold-2"), 3);
    assert_eq!(count("user=bob tier=lead"), 1);
    assert_eq!(count("user=carol tier=lead path=/"), 9);
    assert_eq!(count("user=dave"), 9);
}

#[test]
fn a_denial_may_ban_a_key_and_a_ban_denies_it() {
    let then = Then { action: Action::Ban(Ladder::new(vec![MINUTE]).unwrap()), notify: Vec::new() };
    let limits = vec![
        Limit { then, ..limit("user", "descriptor.user", "1/second") },
        limit("path", "descriptor.path", "9/minute"),
    ];
    let mut world = domain(limits);
    assert!(passes(&world, "user=alice"));
    let (decision, _) = world.call(&shop(vec![descriptor("user=alice"), descriptor("user=bob")])).unwrap();
    let Decision::Deny(denial) = decision else { panic!("it is denied") };
    let [banned] = &denial.new_bans[..] else { panic!("one key is banned") };
    world.bans.insert(banned.key, MINUTE);
    world.clock.advance(Duration::from_secs(2));
    let (passing, statuses) = call(&world, vec![descriptor("path=/"), descriptor("user=alice")]);
    assert!(!passing && !statuses[0].is_over && statuses[1].is_over);
    assert_eq!(statuses[1].reset, Some(MINUTE));
    assert_eq!(left(&call(&world, vec![descriptor("path=/")]).1), [8], "the denied call was charged to no limit");
}

#[test]
fn a_status_names_the_rate_that_binds() {
    let limits = vec![limit("pace", "descriptor.user", "9/second; 4/minute"), limit("total", "", "100/day")];
    let world = domain(limits);
    let status = |entries| call(&world, vec![descriptor(entries)]).1.remove(0);
    let first = status("user=alice");
    let current = first.current_limit.expect("a limit");
    assert_eq!((&*current.name, current.rate.to_string(), first.remaining), ("pace", "4/minute".to_owned(), 3));
    assert_eq!(first.reset, Some(MINUTE));
    let other = status("path=/");
    assert_eq!(other.current_limit.map(|current| current.name.to_string()).as_deref(), Some("total"));
    for _ in 0..3 {
        assert!(passes(&world, "user=alice"));
    }
    world.clock.advance(Duration::from_secs(20));
    let over = status("user=alice");
    assert!(over.is_over && over.remaining == 0);
    assert_eq!(over.reset, Some(Duration::from_secs(40)));
}

#[test]
fn a_limit_shows_no_more_than_its_headers_do() {
    for (headers, shows_limit, shows_wait) in
        [(Detail::Full, true, true), (Detail::RetryAfter, false, true), (Detail::None, false, false)]
    {
        let world = domain(vec![Limit { headers, ..limit("user", "descriptor.user", "1/minute") }]);
        let passed = call(&world, vec![descriptor("user=alice")]).1.remove(0);
        assert_eq!((passed.current_limit.is_some(), passed.reset.is_some()), (shows_limit, shows_limit));
        let denied = call(&world, vec![descriptor("user=alice")]).1.remove(0);
        assert_eq!((denied.current_limit.is_some(), denied.reset.is_some()), (shows_limit, shows_wait));
    }
}

#[test]
fn a_denied_call_names_its_limits_and_its_wait() {
    let world = domain(vec![limit("user", "descriptor.user", "1/minute"), limit("path", "descriptor.path", "1/hour")]);
    let both = || shop(vec![descriptor("user=alice"), descriptor("path=/")]);
    assert!(matches!(world.call(&both()).unwrap().0, Decision::Pass(_)));
    let Decision::Deny(denial) = world.call(&both()).unwrap().0 else { panic!("it is denied") };
    let DenialCause::Limited { limits, retry_after } = &denial.cause else { panic!("by limits") };
    assert_eq!((limits.len(), *retry_after), (2, Some(60 * MINUTE)));
}

#[test]
fn a_call_beyond_the_bounds_is_refused() {
    let world = domain(vec![
        limit("user", "descriptor.user", "5/minute"),
        limit("pair", "descriptor.a descriptor.b", "5/minute"),
    ]);
    let refused = |call: &DescriptorCall| world.call(call).err();
    assert_eq!(refused(&shop(Vec::new())), Some(InvalidCall::NoDescriptors));
    let nameless = DescriptorCall { domain: String::new(), ..shop(vec![descriptor("user=alice")]) };
    assert_eq!(refused(&nameless), Some(InvalidCall::NoDomain));
    let many = |count| shop(vec![descriptor("user=alice"); count]);
    assert_eq!(refused(&many(MAX_DESCRIPTORS + 1)), Some(InvalidCall::TooManyDescriptors(MAX_DESCRIPTORS + 1)));
    assert_eq!(refused(&many(MAX_DESCRIPTORS)), None);
    let long = |count: usize| shop(vec![descriptor(&"x=1 ".repeat(count))]);
    assert_eq!(refused(&long(MAX_ENTRIES + 1)), Some(InvalidCall::TooManyEntries(MAX_ENTRIES + 1)));
    assert_eq!(refused(&long(MAX_ENTRIES)), None);
    let users: Vec<_> = (0..9).map(|number| format!("user={number}")).collect();
    assert_eq!(refused(&shop(vec![descriptor(&users.join(" "))])), Some(InvalidCall::TooManyValues));
    assert_eq!(refused(&shop(vec![costing(1 << 32, "user=alice")])), Some(InvalidCall::TooManyHits));
    let half = u64::from(u32::MAX / 2 + 1);
    let sum = vec![costing(half, "user=alice"), costing(half, "user=alice")];
    assert_eq!(refused(&shop(sum)), Some(InvalidCall::TooManyHits));
    let pairs = |number: usize| {
        let values = (0..8).map(|value| format!("a={number}-{value} b={value}"));
        descriptor(&values.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(refused(&shop((0..16).map(pairs).collect())), None);
    assert_eq!(refused(&shop((0..17).map(pairs).collect())), Some(InvalidCall::TooManyKeys));
}

#[test]
fn a_call_that_the_domain_denies_is_denied_though_no_limit_could_count_it() {
    let mut world = domain(vec![limit("user", "descriptor.user", "5/minute")]);
    let mallory = vec![("user".into(), Glob::cased("mallory"))];
    world.deny_in_domain("shop", DescriptorFilter { values: mallory, ..Default::default() });
    let many: Vec<_> = (0..9).map(|number| format!("user={number}")).collect();
    let (many, few) = (many.join(" "), "user=alice");
    assert_eq!(world.call(&shop(vec![descriptor(&many)])).err(), Some(InvalidCall::TooManyValues));
    let denied = format!("user=mallory {many}");
    for descriptors in [vec![&*denied], vec!["user=mallory", &many], vec![&*many, few, "user=mallory"]] {
        let (passes, statuses) = call(&world, descriptors.iter().map(|entries| descriptor(entries)).collect());
        let over: Vec<_> = statuses.iter().map(|status| status.is_over).collect();
        let is_mallory: Vec<_> = descriptors.iter().map(|entries| entries.contains("mallory")).collect();
        assert_eq!((passes, over), (false, is_mallory), "{descriptors:?}");
    }
    assert_eq!(left(&call(&world, vec![descriptor(few)]).1), [4], "what was denied is charged to no limit");
}
