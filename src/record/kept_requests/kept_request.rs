//! A request that was denied or held, as this process keeps it.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::sync::Arc;

use http::Method;
use smallvec::SmallVec;

use super::LimitFacts;
use super::PolicyFacts;
use super::kept_text::KeptText;
use super::kept_text::Texts;
use super::spare;
use crate::clock::Timestamp;
use crate::key::OperatorKey;
use crate::limit::ActionSeverity;
use crate::limit::LimitId;
use crate::limit::Standings;
use crate::record::DecisionLabel;
use crate::record::RequestRecord;
use crate::route::RouteId;

/// A request that was denied or held. Its memory is used again for a later one: [`KeptRequest::begin`] and
/// [`KeptRequest::complete`] together write all of it.
///
/// It has about 350 bytes and its texts, which are 100 bytes of most requests and never more than 1.5 KiB.
#[derive(Clone, Debug)]
pub struct KeptRequest {
    /// Later requests have higher numbers.
    pub(super) number: u64,
    policy: Arc<PolicyFacts>,
    pub facts: DecisionFacts,
    /// Each limit that the request met, in the order in which they were asked.
    pub limits: SmallVec<[KeptLimit; 2]>,
    pub decision: DecisionLabel,
    pub client: IpAddr,
    pub peer: IpAddr,
    pub method: Method,
    /// `None`: the client left before the answer.
    pub status: Option<u16>,
    /// `None`: it took no route.
    route: Option<RouteId>,
    text: KeptText,
}

/// What the gateway knew when it decided.
#[derive(Clone, Copy, Debug)]
pub struct DecisionFacts {
    /// When the request came.
    pub came: Timestamp,
    pub decided: Timestamp,
    /// When such a request may pass again. `None`: no wait helps.
    pub frees_at: Option<Timestamp>,
    pub cause: KeptCause,
    /// The limit that decided.
    pub limit: Option<LimitId>,
    /// Why a part of the request that a limit counts was not understood.
    pub unread: Option<&'static str>,
}

/// What denied or held a request, as far as no name says it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeptCause {
    /// A limit, a list, a ban, or that the client is on no list.
    Rule,
    /// The client sent a field so often that a limit cannot count it.
    TooManyValues,
    /// The route of a domain denies such descriptors.
    DeniedDescriptor,
}

/// A limit that the request met.
#[derive(Clone, Debug)]
pub struct KeptLimit {
    pub limit: LimitId,
    /// `None`: a part of the key is missing, and the limit denies such requests.
    pub key: Option<Arc<OperatorKey>>,
    /// What the limit does to the request. `None`: it lets it pass. A shadow limit only would.
    pub applied: Option<ActionSeverity>,
    /// Where the key stood after the decision, one standing for each rate. Empty where it is not known.
    pub standings: Standings,
}

impl KeptRequest {
    /// A request that was decided just now and has met no limit yet. Its memory is that of an earlier one, if there is one.
    pub fn begin(policy: &Arc<PolicyFacts>, facts: DecisionFacts) -> Box<Self> {
        let Some(mut begun) = spare::take() else {
            return Box::new(Self {
                number: 0,
                policy: Arc::clone(policy),
                facts,
                limits: SmallVec::new(),
                decision: DecisionLabel::Denied,
                client: Ipv4Addr::UNSPECIFIED.into(),
                peer: Ipv4Addr::UNSPECIFIED.into(),
                method: Method::GET,
                status: None,
                route: None,
                text: KeptText::default(),
            });
        };
        if !Arc::ptr_eq(&begun.policy, policy) {
            begun.policy = Arc::clone(policy);
        }
        begun.facts = facts;
        begun.limits.clear();
        begun
    }

    /// The limit that was to hold it denies it, and does nothing besides.
    pub fn set_denied(&mut self, limit: LimitId) {
        for met in self.limits.iter_mut().filter(|met| met.limit == limit) {
            met.applied = Some(ActionSeverity::Deny);
        }
    }

    /// Takes what is known now that the request has ended.
    pub fn complete(&mut self, request: &RequestRecord<'_>) {
        // What is not here, the decision has set, and the ring numbers what it keeps.
        let Self { number: _, policy: _, facts: _, limits: _, decision, client, peer, method, status, route, text } =
            self;
        *decision = match request.decision {
            // Only requests that were held go on, and may fail.
            DecisionLabel::Error | DecisionLabel::Allowed => DecisionLabel::Delayed,
            decision => decision,
        };
        *client = request.identity.client.address();
        *peer = request.identity.peer.address();
        method.clone_from(request.method);
        *status = request.status.map(|status| status.as_u16());
        *route = request.route;
        text.set(Texts {
            id: request.request_id,
            host: request.host,
            path: request.path,
            ban: request.ban.unwrap_or_default(),
            list: request.list.unwrap_or_default(),
        });
    }

    /// Later requests have higher numbers.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn id(&self) -> &str {
        self.text.get().id
    }

    pub fn host(&self) -> &str {
        self.text.get().host
    }

    /// Without the query. At most 512 bytes.
    pub fn path(&self) -> &str {
        self.text.get().path
    }

    pub fn route(&self) -> Option<&str> {
        self.route.map(|route| &*self.policy.route(route).name)
    }

    /// The lists whose members alone its route lets in. Empty: the route lets everyone in.
    pub(super) fn only(&self) -> &[Arc<str>] {
        self.route.map_or(&[], |route| &self.policy.route(route).only)
    }

    /// The limit that decided.
    pub fn limit(&self) -> Option<&LimitFacts> {
        self.facts.limit.map(|limit| self.policy.limit(limit))
    }

    /// The id of the ban that denied it.
    pub fn ban(&self) -> Option<&str> {
        Some(self.text.get().ban).filter(|ban| !ban.is_empty())
    }

    /// The list that denied it.
    pub fn list(&self) -> Option<&str> {
        Some(self.text.get().list).filter(|list| !list.is_empty())
    }

    /// Each limit that the request met, and what is known of that limit.
    pub fn met_limits(&self) -> impl Iterator<Item = (&KeptLimit, &LimitFacts)> {
        self.limits.iter().map(|met| (met, self.policy.limit(met.limit)))
    }

    /// Whether this limit denied or held it.
    pub fn is_denied_by(&self, limit: &str) -> bool {
        let decided = self.limit().is_some_and(|facts| &*facts.name == limit);
        decided || self.met_limits().any(|(met, facts)| met.applied.is_some() && !facts.shadow && &*facts.name == limit)
    }
}
