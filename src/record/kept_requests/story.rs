//! The story of a request, as people and programs read it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

use super::KeptLimit;
use super::KeptRequest;
use super::LimitFacts;
use super::Viewer;
use super::sentence::sentence;
use crate::clock::Timestamp;
use crate::record::limit_decision::LimitDecision;

/// Everything that is known of a request that was denied or held.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[schema(as = Request)]
pub struct RequestStory {
    pub id: String,
    #[schema(format = DateTime)]
    pub time: String,
    /// As in the request log.
    pub decision: String,
    pub client: String,
    pub peer: String,
    pub method: String,
    pub host: String,
    pub path: String,
    pub route: Option<String>,
    pub status: Option<u16>,
    /// The limit that decided.
    pub limit: Option<String>,
    /// The id of the ban that denied it.
    pub ban: Option<String>,
    /// The list that denied it.
    pub list: Option<String>,
    /// A part of it that a limit counts was not understood, so that it also counts under the empty value. Left out
    /// otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
    /// Each limit that it met.
    pub limits: Vec<LimitStory>,
    /// The same for people.
    pub sentence: String,
}

/// What one limit made of the request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[schema(as = RequestLimit)]
pub struct LimitStory {
    pub name: String,
    /// Each selector and its value. `None`: a part is missing, and the limit denies such requests.
    pub key: Option<BTreeMap<String, String>>,
    /// As in the metrics.
    pub decision: String,
    /// Empty where it is not known what was counted, and for a limit of concurrent requests.
    pub rates: Vec<RateStory>,
}

/// Where a key stood under one rate.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[schema(as = RequestRate)]
pub struct RateStory {
    pub limit: u32,
    /// In seconds.
    pub window: u64,
    pub counted: u64,
    /// When more may pass than at that moment. `None`: nothing was counted.
    #[schema(format = DateTime)]
    pub frees_at: Option<String>,
}

impl RequestStory {
    pub fn of(request: &KeptRequest, viewer: Viewer) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let limits = request.met_limits().map(|(met, facts)| LimitStory::of(met, facts, request.facts.decided, viewer));
        Self {
            id: request.id().to_owned(),
            time: request.facts.came.to_string(),
            decision: request.decision.as_str().to_owned(),
            client: request.client.to_string(),
            peer: request.peer.to_string(),
            method: request.method.to_string(),
            host: request.host().to_owned(),
            path: request.path().to_owned(),
            route: owned(request.route()),
            status: request.status,
            limit: owned(request.limit().map(|limit| &*limit.name)),
            ban: owned(request.ban()),
            list: owned(request.list()),
            unread: request.facts.unread.is_some(),
            limits: limits.collect(),
            sentence: sentence(request, viewer),
        }
    }

    /// As it is sent to other gateways.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }

    /// `None`: another version has written it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

impl LimitStory {
    fn of(met: &KeptLimit, facts: &LimitFacts, decided: Timestamp, viewer: Viewer) -> Self {
        let rates = facts.rates.iter().zip(&met.standings);
        let rates = rates.map(|(rate, standing)| RateStory {
            limit: rate.count.get(),
            window: rate.per.as_secs(),
            counted: u64::from(rate.count.get()).saturating_sub(standing.remaining),
            frees_at: (!standing.reset.is_zero()).then(|| (decided + standing.reset).to_string()),
        });
        Self {
            name: facts.name.to_string(),
            key: met.key.as_ref().map(|key| viewer.values(key)),
            decision: LimitDecision::of(facts.shadow, met.applied).as_str().to_owned(),
            rates: rates.collect(),
        }
    }
}
