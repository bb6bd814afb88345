//! Requests and limits for tests.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Version};

use super::{DecisionFacts, KeptCause, KeptLimit, KeptRequest, LimitFacts, PolicyFacts, RouteFacts};
use crate::record::{DecisionLabel, RequestRecord};
use crate::rules::client::{ClientIp, Identity};
use crate::rules::limit::{LimitId, Rate};
use crate::rules::route::RouteId;
use crate::words::clock::Timestamp;

/// 2023-11-14, 22:13:20 UTC.
pub(crate) const TIME: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

/// A limit of this name.
pub(crate) fn limit_facts(name: &str) -> LimitFacts {
    LimitFacts {
        name: name.into(),
        selectors: vec!["client_ip".to_owned(), "param.user".to_owned()],
        rates: vec![Rate { count: NonZeroU32::MIN, per: Duration::from_secs(60) }; 4],
        concurrent: None,
        counted: ["request", "requests"].map(str::to_owned),
        shadow: false,
        delay: None,
    }
}

/// The routes `one` and `login`, and these limits.
pub(crate) fn policy(limits: &[LimitFacts]) -> Arc<PolicyFacts> {
    policy_with_only(&[], limits)
}

/// The same where `login` lets only the members of these lists in.
pub(crate) fn policy_with_only(lists: &[&str], limits: &[LimitFacts]) -> Arc<PolicyFacts> {
    let route = |name: &str, only: &[&str]| RouteFacts {
        name: name.into(),
        only: only.iter().map(|&list| list.into()).collect(),
    };
    Arc::new(PolicyFacts { routes: vec![route("one", &[]), route("login", lists)], limits: limits.to_vec() })
}

/// The first limit decided at [`TIME`], and denies for 36.5 s.
pub(crate) fn facts() -> DecisionFacts {
    DecisionFacts {
        came: TIME,
        decided: TIME,
        frees_at: Some(TIME + Duration::from_millis(36_500)),
        cause: KeptCause::Rule,
        limit: Some(LimitId(0)),
        unread: None,
    }
}

/// A login that was denied.
pub(crate) fn record() -> RequestRecord<'static> {
    RequestRecord {
        request_id: "01J",
        identity: identity([198, 51, 100, 7]),
        method: &Method::POST,
        host: "example.com",
        path: "/login",
        query: None,
        version: Some(Version::HTTP_11),
        scheme: "https",
        user_agent: None,
        trace: None,
        route: Some(RouteId(1)),
        decision: DecisionLabel::Denied,
        limit: None,
        list: None,
        ban: None,
        limits: &[],
        unread: None,
        retry_after: None,
        status: Some(StatusCode::TOO_MANY_REQUESTS),
        outcome: None,
        upstream: None,
        error: None,
        duration: Duration::ZERO,
        decision_duration: None,
        bytes_in: 0,
        bytes_out: 0,
        applied_limit: None,
        keys: &[],
        sign_in: None,
    }
}

pub(crate) fn identity(client: [u8; 4]) -> Identity {
    let client = ClientIp::new(client.into());
    Identity { peer: client, peer_is_trusted: false, client }
}

pub(crate) fn kept(
    policy: &Arc<PolicyFacts>,
    facts: DecisionFacts,
    met: impl IntoIterator<Item = KeptLimit>,
    record: &RequestRecord<'_>,
) -> Box<KeptRequest> {
    let mut kept = KeptRequest::begin(policy, facts);
    kept.limits.extend(met);
    kept.complete(record);
    kept
}
