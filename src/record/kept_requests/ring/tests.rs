use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{iter, thread};

use http::{Method, StatusCode};
use proptest::prelude::*;

use super::super::samples::{TIME, identity, limit_facts, record};
use super::super::{DecisionFacts, KeptCause, KeptLimit, PolicyFacts, RequestStory, Viewer, samples};
use super::*;
use crate::record::kept_requests::ring::OLDER;
use crate::record::{DecisionLabel, RequestRecord};
use crate::rules::decision::Grounds;
use crate::rules::key::OperatorKey;
use crate::rules::limit::{ActionSeverity, LimitId, Standing};
use crate::rules::route::RouteId;
use crate::words::clock::Timestamp;

/// What is kept of one request.
#[derive(Clone, Debug)]
struct Told {
    id: String,
    client: [u8; 4],
    method: Method,
    path: String,
    decision: DecisionLabel,
    status: Option<StatusCode>,
    route: Option<RouteId>,
    ban: Option<String>,
    list: Option<String>,
    frees_at: Option<Timestamp>,
    cause: KeptCause,
    /// Of each limit that it met: what is left of each rate. `None`: it lacks a part of the key.
    limits: Vec<Option<Vec<u64>>>,
}

impl Told {
    fn new(number: u32, client: [u8; 4]) -> Self {
        Self {
            id: format!("{number:08x}"),
            client,
            method: Method::GET,
            path: "/".to_owned(),
            decision: DecisionLabel::Denied,
            status: Some(StatusCode::TOO_MANY_REQUESTS),
            route: None,
            ban: None,
            list: None,
            frees_at: None,
            cause: KeptCause::Rule,
            limits: Vec::new(),
        }
    }

    /// The request that is kept, of this number.
    fn kept(&self, policy: &Arc<PolicyFacts>, number: u32) -> Box<KeptRequest> {
        let came = TIME + Duration::from_micros(number.into());
        let facts = DecisionFacts {
            came,
            decided: came,
            frees_at: self.frees_at,
            cause: self.cause,
            limit: (!self.limits.is_empty()).then_some(LimitId(0)),
            unread: None,
        };
        let standing = |remaining: &u64| Standing { remaining: *remaining, reset: Duration::from_secs(*remaining) };
        let met = (0..).zip(&self.limits).map(|(limit, left)| KeptLimit {
            limit: LimitId(limit),
            key: left.as_ref().map(|_| Arc::new(OperatorKey::of_client(IpAddr::from(self.client).into()))),
            applied: (limit == 0).then_some(ActionSeverity::Deny),
            standings: left.iter().flatten().map(standing).collect(),
            grounds: Grounds::Count,
        });
        let record = RequestRecord {
            request_id: &self.id,
            identity: identity(self.client),
            method: &self.method,
            path: &self.path,
            route: self.route,
            decision: self.decision,
            list: self.list.as_deref(),
            ban: self.ban.as_deref(),
            status: self.status,
            ..record()
        };
        samples::kept(policy, facts, met, &record)
    }
}

fn keep(kept: &KeptRequests, number: u32, client: [u8; 4]) {
    kept.keep(Told::new(number, client).kept(&Arc::default(), number));
}

const ATTACKER: [u8; 4] = [203, 0, 113, 1];

const OWNER: [u8; 4] = [198, 51, 100, 7];

#[test]
fn the_newest_ten_thousand_are_found_by_their_ids() {
    let kept = KeptRequests::default();
    for number in 0..30_000 {
        keep(&kept, number, ATTACKER);
    }
    for number in (20_000..30_000).step_by(7) {
        let id = format!("{number:08x}");
        assert_eq!(kept.find(&id).map(|request| request.id().to_owned()).as_ref(), Some(&id));
    }
    assert!(kept.find("unknown").is_none());
    let newest = kept.newest_of_each_client_first(|number| number >= 29_995);
    assert_eq!(newest, [29_999, 29_998, 29_997, 29_996, 29_995]);
    assert_eq!(kept.first_of_newest(), 20_000);
    assert_eq!(kept.newest_of_each_client_first(|_| true).len(), 10_000 + 2 * SHARDS);
    assert!(kept.newest_of_each_client_first(|_| false).is_empty());
    let newest = kept.newest(3, |_| true);
    assert_eq!(newest.iter().map(KeptRequest::id).collect::<Vec<_>>(), ["0000752f", "0000752e", "0000752d"]);
    assert_eq!(kept.newest(usize::MAX, |_| true).len(), 10_000 + 2 * SHARDS);
}

#[test]
fn the_newest_of_each_client_comes_first() {
    let kept = KeptRequests::default();
    for number in 0..40_000 {
        keep(&kept, number, if matches!(number, 5 | 7 | 20_000) { OWNER } else { ATTACKER });
    }
    let first = |seen| kept.newest_of_each_client_first(|number| number >= seen)[..3].to_vec();
    assert_eq!(kept.newest_of_each_client_first(|_| true)[..5], [39_999, 20_000, 39_998, 7, 39_997]);
    assert_eq!(first(6), [39_999, 20_000, 39_998]);
    assert_eq!(first(39_997), [39_999, 39_998, 39_997]);
}

#[test]
fn one_client_does_not_push_out_what_happened_to_others() {
    let kept = KeptRequests::default();
    keep(&kept, 0, OWNER);
    for number in 1..100_000 {
        keep(&kept, number, ATTACKER);
    }
    assert!(kept.find("00000000").is_some());
    assert_eq!(kept.newest(50, |request| request.client == IpAddr::from(OWNER)).len(), 1);
    assert_bounded(&kept);
}

#[test]
fn very_many_clients_take_no_more_room() {
    let kept = KeptRequests::default();
    for number in 0..60_000_u32 {
        keep(&kept, number, number.to_be_bytes());
    }
    assert_bounded(&kept);
}

#[track_caller]
fn assert_bounded(kept: &KeptRequests) {
    for shard in &kept.shards {
        let [newest, older, clients] = shard.lock().lengths();
        assert!(newest <= NEWEST && older <= OLDER && clients <= OLDER, "{newest} {older} {clients}");
    }
}

#[test]
fn of_two_requests_with_one_id_the_newer_one_is_found() {
    let kept = KeptRequests::default();
    for client in [ATTACKER, OWNER] {
        keep(&kept, 7, client);
    }
    assert_eq!(kept.find("00000007").map(|request| request.client), Some(OWNER.into()));
}

#[test]
fn one_that_reads_what_it_has_not_read_misses_none_of_what_several_threads_keep() {
    let kept = KeptRequests::default();
    let mut seen = HashSet::new();
    thread::scope(|scope| {
        let write = |from: u32| (from..from + 2000).for_each(|number| keep(&kept, number, ATTACKER));
        let writers = [0, 2000, 4000].map(|from| scope.spawn(move || write(from)));
        let mut read = || seen.extend(kept.newest_of_each_client_first(|number| !seen.contains(&number)));
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            read();
        }
        read();
    });
    assert_eq!(seen, (0..6000).collect());
}

fn policy() -> Arc<PolicyFacts> {
    samples::policy(&["first", "second", "third"].map(limit_facts))
}

prop_compose! {
    fn told()(
        id in "[a-z]{1,64}",
        client: [u8; 4],
        method in prop::sample::select(vec!["GET", "POST", "A-METHOD-THAT-IS-LONGER-THAN-OTHERS"]),
        path in "/[a-zé]{0,40}",
        repeated in 1_usize..30,
        decision in prop::sample::select(DecisionLabel::ALL.to_vec()),
        status in prop::option::of(Just(StatusCode::FORBIDDEN)),
        route in prop::option::of((0_u16..2).prop_map(RouteId)),
        ban in prop::option::of("[0-9a-f]{1,32}"),
        list in prop::option::of("[a-z]{1,9}"),
        frees_at in prop::option::of((0..u64::MAX / 2).prop_map(Timestamp::from_micros)),
        cause in prop::sample::select(vec![KeptCause::Rule, KeptCause::TooManyValues, KeptCause::DeniedDescriptor]),
        limits in prop::collection::vec(prop::option::of(prop::collection::vec(0_u64..1000, 0..5)), 0..4),
    ) -> Told {
        let (method, path) = (method.parse().unwrap(), path.repeat(repeated));
        Told { id, client, method, path, decision, status, route, ban, list, frees_at, cause, limits }
    }
}

proptest! {
    #[test]
    fn memory_that_is_used_again_shows_nothing_of_an_earlier_request(requests in prop::collection::vec(told(), 2..20)) {
        let policy = policy();
        let story = |request: &KeptRequest| RequestStory::of(request, Viewer::ThisGateway);
        let spare_before: Vec<_> = iter::from_fn(kept_request::take).collect();
        for (number, told) in (0..).zip(&requests) {
            let again = told.kept(&policy, number);
            // Nothing is spare now, so that this one has memory of its own.
            let fresh = told.kept(&policy, number);
            prop_assert_eq!(story(&again), story(&fresh));
            drop(fresh);
            kept_request::put(again);
        }
        drop(spare_before);
    }

    #[test]
    fn what_is_read_is_what_was_kept(requests in prop::collection::vec(told(), 1..60), rounds in 1_u32..5) {
        let (policy, kept) = (policy(), KeptRequests::default());
        // The ring is full, so that every request takes the memory of an earlier one.
        (0..10_064).for_each(|number| keep(&kept, number, ATTACKER));
        let all = requests.iter().cycle().take(requests.len() * rounds as usize);
        let all: Vec<_> = (0..).zip(all).collect();
        for (number, told) in &all {
            kept.keep(told.kept(&policy, *number));
        }
        let mut numbers = kept.newest_of_each_client_first(|number| number >= 10_064);
        numbers.sort_unstable();
        let read: Vec<_> = numbers.into_iter().filter_map(|number| kept.numbered(number)).collect();
        prop_assert_eq!(read.len(), all.len());
        for (request, (number, told)) in read.iter().zip(all) {
            prop_assert_eq!(request.id(), &*told.id);
            prop_assert_eq!(request.client, IpAddr::from(told.client));
            prop_assert_eq!(&request.method, &told.method);
            let is_whole = told.path.len() <= 512 && request.path() == told.path;
            prop_assert!(is_whole || request.path().len() > 508 && told.path.starts_with(request.path()));
            prop_assert_eq!(request.route(), told.route.map(|route| ["one", "login"][usize::from(route.0)]));
            prop_assert_eq!(request.ban(), told.ban.as_deref());
            prop_assert_eq!(request.list(), told.list.as_deref());
            prop_assert_eq!(request.status, told.status.map(|status| status.as_u16()));
            prop_assert_eq!(request.facts.frees_at, told.frees_at);
            let left = |met: &KeptLimit| met.standings.iter().map(|it| it.remaining).collect::<Vec<_>>();
            let limits: Vec<_> = request.limits.iter().map(|met| met.key.as_ref().map(|_| left(met))).collect();
            prop_assert_eq!(&limits, &told.limits);
            prop_assert_eq!(request.facts.came, TIME + Duration::from_micros(number.into()));
        }
    }
}
