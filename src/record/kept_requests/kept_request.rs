//! A request that was denied or held, as this process keeps it.

use std::net::IpAddr;
use std::sync::Arc;

use http::Method;
use smallvec::SmallVec;

use super::LimitFacts;
use crate::clock::Timestamp;
use crate::key::OperatorKey;
use crate::limit::Standings;
use crate::record::DecisionLabel;

/// A request that was denied or held.
#[derive(Clone, Debug)]
pub struct KeptRequest {
    pub id: Box<str>,
    /// When it came.
    pub time: Timestamp,
    pub decision: DecisionLabel,
    pub client: IpAddr,
    pub peer: IpAddr,
    pub method: Method,
    pub host: Box<str>,
    /// Without the query. At most 512 bytes.
    pub path: Box<str>,
    /// `None`: it took no route.
    pub route: Option<Arc<str>>,
    /// `None`: the client left before the answer.
    pub status: Option<u16>,
    /// The limit that decided.
    pub limit: Option<Arc<str>>,
    /// The id of the ban that denied it.
    pub ban: Option<Box<str>>,
    /// The list that denied it.
    pub list: Option<Box<str>>,
    pub facts: Arc<DecisionFacts>,
}

/// What the gateway knew when it decided.
#[derive(Clone, Debug)]
pub struct DecisionFacts {
    pub decided: Timestamp,
    /// When such a request may pass again. `None`: no wait helps.
    pub frees_at: Option<Timestamp>,
    /// The client sent a field so often that a limit cannot count it.
    pub too_many_values: bool,
    /// Each limit that the request met, in the order in which they were asked.
    pub limits: SmallVec<[KeptLimit; 2]>,
}

/// A limit that the request met.
#[derive(Clone, Debug)]
pub struct KeptLimit {
    pub facts: Arc<LimitFacts>,
    /// `None`: a part of the key is missing, and the limit denies such requests.
    pub key: Option<Arc<OperatorKey>>,
    pub denied: bool,
    /// Where the key stood after the decision, one standing for each rate. Empty where it is not known.
    pub standings: Standings,
}

/// Longer paths are cut.
pub(in crate::record) const MAX_PATH: usize = 512;

impl KeptRequest {
    /// Whether this limit denied or held it.
    pub fn is_denied_by(&self, limit: &str) -> bool {
        let acted = |met: &KeptLimit| met.denied && !met.facts.shadow && &*met.facts.name == limit;
        self.limit.as_deref() == Some(limit) || self.facts.limits.iter().any(acted)
    }
}

/// The start of a text, cut at the end of a character.
pub(in crate::record) fn cut(text: &str, most: usize) -> Box<str> {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text[..end.unwrap_or_default()].into()
}
