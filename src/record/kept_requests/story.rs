//! The story of a request, as people and programs read it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::sentence::sentence;
use super::{KeptLimit, KeptRequest};
use crate::record::DecisionLabel;
use crate::record::request_record::LimitDecision;
use crate::rules::decision::Policy;
use crate::rules::key::{OperatorKey, OperatorPart};
use crate::rules::limit::{Action, Count, Limit, LimitId, Rate, Rates, Rule};
use crate::rules::route::{Route, RouteId};
use crate::words::clock::Timestamp;

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
    /// When such a request may pass again; of a ban, its end. `None`: no wait helps, or it was held and then forwarded.
    #[schema(format = DateTime)]
    #[serde(default)]
    pub until: Option<String>,
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
        let until = request.facts.frees_at.filter(|_| request.decision != DecisionLabel::Delayed);
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
            until: until.map(|until| until.to_string()),
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

// The readers of a story, and how much of a key they see.

/// Who reads a story.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Viewer {
    /// An operator of this gateway, who sees user names.
    ThisGateway,
    /// Everyone else.
    Others,
}

impl Viewer {
    /// The value of each part of a key.
    pub fn values(self, key: &OperatorKey) -> BTreeMap<String, String> {
        let value = |part: &OperatorPart| match (self, &part.masked) {
            (Self::Others, Some(masked)) => masked.clone(),
            _ => part.value.clone(),
        };
        key.parts.iter().map(|part| (part.selector.clone(), value(part))).collect()
    }
}

// The facts of a limit when it decided, which stay when the configuration changes.

/// Made once for each limit of a configuration. It outlives the configuration in the requests that are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitFacts {
    pub name: Arc<str>,
    pub selectors: Vec<String>,
    pub rates: Vec<Rate>,
    /// So many requests at once. `None`: the limit has rates.
    pub concurrent: Option<NonZeroU32>,
    /// What is counted: one of it, and several.
    pub counted: [String; 2],
    pub shadow: bool,
    /// The limit holds requests for so long, and does not deny them.
    pub delay: Option<Duration>,
}

impl LimitFacts {
    pub fn of(limit: &Limit) -> Self {
        let counted = match (&limit.distinct, limit.count) {
            (Some(part), _) => ["value", "different values"].map(|words| format!("{words} of {}", part.selector)),
            (None, Count::Requests) => ["request", "requests"].map(str::to_owned),
            (None, Count::Attempts) => ["attempt", "attempts"].map(str::to_owned),
            (None, Count::Failures) => ["failure", "failures"].map(str::to_owned),
            (None, Count::Successes) => ["success", "successes"].map(str::to_owned),
        };
        Self {
            name: Arc::clone(&limit.name),
            selectors: limit.key.parts.iter().map(|part| part.selector.to_string()).collect(),
            rates: limit.rule.rates().map_or(&[][..], Rates::as_slice).to_vec(),
            concurrent: match limit.rule {
                Rule::Concurrent(most) => Some(most),
                Rule::Rates { .. } | Rule::Distinct(_) => None,
            },
            counted,
            shadow: limit.shadow,
            delay: match limit.then.action {
                Action::Delay(span) => Some(span),
                _ => None,
            },
        }
    }
}

// The facts of a policy when it decided, which stay when the configuration changes.

/// Made once for each configuration. It outlives the configuration in the requests that are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyFacts {
    /// By `RouteId`.
    pub routes: Vec<RouteFacts>,
    /// By `LimitId`.
    pub limits: Vec<LimitFacts>,
}

/// The facts of a route in a story.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteFacts {
    pub name: Arc<str>,
    /// The names of the lists whose members alone it lets in. Empty: it lets everyone in.
    pub only: Vec<Arc<str>>,
}

impl PolicyFacts {
    pub fn of(policy: &Policy) -> Self {
        let route = |route: &Route| RouteFacts {
            name: Arc::clone(&route.name),
            only: route.only.iter().flatten().map(|&list| Arc::clone(&policy.list(list).list.name)).collect(),
        };
        Self {
            routes: policy.routes.all().iter().map(route).collect(),
            limits: policy.limits.iter().map(LimitFacts::of).collect(),
        }
    }

    pub fn route(&self, id: RouteId) -> &RouteFacts {
        &self.routes[usize::from(id.0)]
    }

    pub fn limit(&self, id: LimitId) -> &LimitFacts {
        &self.limits[usize::from(id.0)]
    }
}
