//! Lines of random requests, compared with lines that the formatting of the standard library and `serde_json` make.

use std::net::IpAddr;
use std::time::Duration;

use http::{Method, StatusCode, Version};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::record::access_log::{LineContext, write};
use crate::record::metrics::LimitMetrics;
use crate::record::{
    AppliedLimit, DecisionLabel, LogFormat, MaskedKey, ObservedOutcome, RequestRecord, UpstreamRecord,
};
use crate::rules::client::{ClientIp, Identity};
use crate::rules::decision::{FoundKey, LimitReport};
use crate::rules::key::KeyHash;
use crate::rules::limit::{ActionSeverity, LimitId};
use crate::rules::outcome::Outcome;
use crate::rules::route::UpstreamId;
use crate::words::clock::Timestamp;

/// What a request record borrows.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Timestamp,
    pub(super) addresses: [IpAddr; 2],
    pub(super) method: Method,
    pub(super) version: Option<Version>,
    pub(super) decision: DecisionLabel,
    pub(super) outcome: Option<ObservedOutcome>,
    /// The request's id, its host and its path.
    pub(super) texts: [String; 3],
    /// The query, the route, the limit, the list, the ban, the upstream, its server, its id of the request and the error.
    pub(super) optional_texts: [Option<String>; 9],
    pub(super) user_agent: Option<Vec<u8>>,
    pub(super) key: Option<(u128, Vec<(String, String)>)>,
    pub(super) shadow_limits: [bool; 2],
    pub(super) is_unread: bool,
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<u64>,
    /// The duration in microseconds, and the bytes in and out.
    pub(super) numbers: [u64; 3],
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,40}", "[\\x00-\\x7f]{0,20}", "[a\"\\\\/é€\u{7f}\u{9f}\n\u{10ffff}]{0,20}", any::<String>()]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_u64, 0..100_000_u64, any::<u64>()]
}

fn samples() -> impl Strategy<Value = Sample> {
    let addresses = any::<[IpAddr; 2]>().prop_map(|both| both.map(|address| ClientIp::new(address).address()));
    let methods = select(vec![Method::GET, Method::POST, Method::from_bytes(b"X-~'`|!").unwrap()]);
    let versions = option::of(select(vec![Version::HTTP_10, Version::HTTP_11, Version::HTTP_2, Version::HTTP_3]));
    let outcomes = Outcome::ALL.map(ObservedOutcome::Known).into_iter().chain([ObservedOutcome::Unknown]);
    let outcomes = option::of(select(outcomes.collect::<Vec<_>>()));
    let words = (methods, versions, select(DecisionLabel::ALL.to_vec()), outcomes);
    let texts =
        (prop::array::uniform3(text()), prop::array::uniform9(option::of(text())), option::of(vec(any::<u8>(), 0..40)));
    let key = option::of((any::<u128>(), vec((text(), text()), 0..3)));
    let numbers = (option::of(100..1000_u16), option::of(number()), prop::array::uniform3(number()));
    // Up to the year 9999.
    let at = (0..253_402_300_800_000_000_u64).prop_map(Timestamp::from_micros);
    (at, addresses, words, texts, key, any::<([bool; 2], bool)>(), numbers).prop_map(
        |(at, addresses, words, (texts, optional_texts, user_agent), key, (shadow_limits, is_unread), numbers)| {
            Sample {
                at,
                addresses,
                method: words.0,
                version: words.1,
                decision: words.2,
                outcome: words.3,
                texts,
                optional_texts,
                user_agent,
                key,
                shadow_limits,
                is_unread,
                status: numbers.0,
                retry_after: numbers.1,
                numbers: numbers.2,
            }
        },
    )
}

proptest! {
    #[test]
    fn every_line_is_the_one_that_serde_json_and_the_standard_library_make(sample in samples()) {
        prop_assert_eq!(sample.line(LogFormat::Json), sample.expected_json());
        prop_assert_eq!(sample.line(LogFormat::Ecs), sample.expected_ecs());
        prop_assert_eq!(sample.line(LogFormat::Otel), sample.expected_otel());
        prop_assert_eq!(sample.line(LogFormat::Human), sample.expected_human());
    }
}

impl Sample {
    fn line(&self, format: LogFormat) -> String {
        let [client, peer] = self.addresses.map(ClientIp::new);
        let [query, route, limit, list, ban, upstream, server, request_id, error] =
            self.optional_texts.each_ref().map(Option::as_deref);
        let applied = self.applied_limit();
        let limits = [("login-pace", 0), ("a \"new\" one", 1)];
        let reports = limits.map(|(_, number)| LimitReport {
            limit: LimitId(number),
            shadow: self.shadow_limits[usize::from(number)],
            applied: Some(ActionSeverity::Deny),
            is_shown: false,
            found: FoundKey::Whole,
        });
        let request = RequestRecord {
            request_id: &self.texts[0],
            identity: Identity { peer, peer_is_trusted: true, client },
            method: &self.method,
            host: &self.texts[1],
            path: &self.texts[2],
            query,
            version: self.version,
            scheme: "https",
            user_agent: self.user_agent.as_deref(),
            trace: None,
            route: None,
            decision: self.decision,
            limit,
            list,
            ban,
            limits: &reports,
            unread: self.is_unread.then_some("a reason"),
            retry_after: self.retry_after,
            status: self.status.map(|status| StatusCode::from_u16(status).unwrap()),
            outcome: self.outcome,
            upstream: Some(UpstreamRecord {
                id: UpstreamId(0),
                server,
                failure: None,
                request_id,
                previous_attempts: &[],
            }),
            error,
            duration: Duration::from_micros(self.numbers[0]),
            decision_duration: None,
            bytes_in: self.numbers[1],
            bytes_out: self.numbers[2],
            applied_limit: applied.as_ref(),
            keys: &[],
            sign_in: None,
        };
        let limits = limits.map(|(name, _)| LimitMetrics::new(&name.into()));
        let context = LineContext { route, upstream, query, gateway: None, limits: &limits };
        let mut line = Vec::new();
        write(&mut line, format, self.at, &request, &context);
        String::from_utf8(line).unwrap()
    }

    fn applied_limit(&self) -> Option<AppliedLimit> {
        let (hash, parts) = self.key.clone()?;
        let masked_key = Some(MaskedKey { hash: KeyHash(hash), parts });
        Some(AppliedLimit { limit: LimitId(0), key: None, masked_key, span: None, is_ban: false, is_suspect: false })
    }
}
