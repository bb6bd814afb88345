//! A request that was denied or held, as this process keeps it.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::Method;
use smallvec::SmallVec;

use super::{LimitFacts, PolicyFacts};
use crate::record::{DecisionLabel, RequestRecord};
use crate::rules::decision::MetLimit;
use crate::rules::key::OperatorKey;
use crate::rules::limit::{ActionSeverity, LimitId};
use crate::rules::route::RouteId;
use crate::words::clock::Timestamp;

/// A request that was denied or held. Its memory is used again for a later one: [`KeptRequest::begin`] and
/// [`KeptRequest::complete`] together write all of it.
///
/// It has about 350 bytes and its texts, which are 200 bytes of most requests and never more than 1.7 KiB.
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

/// The facts that the gateway knew when it decided.
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

/// The cause that denied or held a request, beside rules with a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeptCause {
    /// A limit, a list, a ban, or that the client is on no list.
    Rule,
    /// The client sent a field so often that a limit cannot count it.
    TooManyValues,
    /// The route of a domain denies such descriptors.
    DeniedDescriptor,
    /// A limit was to hold it, and as many are held as may be.
    TooManyHeld,
    /// A limit was to hold it, and the gateway was shutting down.
    NotHeldAtTheEnd,
}

/// A limit that the request met, with its readable key.
pub type KeptLimit = MetLimit<Arc<OperatorKey>>;

impl KeptRequest {
    /// A request that was decided just now and has met no limit yet. It reuses the memory of an earlier one, if there
    /// is one.
    pub fn begin(policy: &Arc<PolicyFacts>, facts: DecisionFacts) -> Box<Self> {
        let Some(mut begun) = take() else {
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
    pub fn set_denied(&mut self, limit: LimitId, cause: KeptCause) {
        self.facts.cause = cause;
        for met in self.limits.iter_mut().filter(|met| met.limit == limit) {
            met.applied = Some(ActionSeverity::Deny);
        }
    }

    /// Adds the facts that are known when the request has ended.
    pub fn complete(&mut self, request: &RequestRecord<'_>) {
        // The decision has set the other fields, and the ring sets the number.
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
            agent: request.user_agent.map(agent_text).unwrap_or_default(),
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
        self.route_name().map(|name| &**name)
    }

    pub fn route_name(&self) -> Option<&Arc<str>> {
        self.route.map(|route| &self.policy.route(route).name)
    }

    /// The start of `User-Agent`. Empty: it is not there, or is not text.
    pub fn agent(&self) -> &str {
        self.text.get().agent
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

    /// Each limit that the request met, and the facts of that limit.
    pub fn met_limits(&self) -> impl Iterator<Item = (&KeptLimit, &LimitFacts)> {
        self.limits.iter().map(|met| (met, self.policy.limit(met.limit)))
    }

    /// Whether this limit denied or held it.
    pub fn is_denied_by(&self, limit: &str) -> bool {
        let decided = self.limit().is_some_and(|facts| &*facts.name == limit);
        decided || self.met_limits().any(|(met, facts)| met.applied.is_some() && !facts.shadow && &*facts.name == limit)
    }
}

// The texts of a kept request in one buffer, which is filled again for the next request that is kept in its place.

const TEXTS: usize = 6;

/// Longer paths are cut.
const MAX_PATH: usize = 512;

/// Every other text is cut at this length. Names of hosts are not longer, and ids and bans are short.
const MAX_OTHER: usize = 255;

const MAX_AGENT: usize = 120;

/// A buffer that was larger for a long path becomes as small as this again. It holds what most requests have.
const USUAL: usize = 384;

/// The texts of a request. One that is empty is not known.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptText {
    buffer: String,
    /// Where each text ends, in the order of [`Texts`].
    ends: [u16; TEXTS],
}

/// The texts of a request, to be kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Texts<'a> {
    pub(super) id: &'a str,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) ban: &'a str,
    pub(super) list: &'a str,
    pub(super) agent: &'a str,
}

impl KeptText {
    /// Replaces the texts.
    pub(super) fn set(&mut self, Texts { id, host, path, ban, list, agent }: Texts<'_>) {
        let texts = [
            cut(id, MAX_OTHER),
            cut(host, MAX_OTHER),
            cut(path, MAX_PATH),
            cut(ban, MAX_OTHER),
            cut(list, MAX_OTHER),
            agent,
        ];
        let length = texts.iter().map(|text| text.len()).sum();
        self.buffer.clear();
        if length <= USUAL && self.buffer.capacity() > USUAL {
            self.buffer.shrink_to(USUAL);
        }
        self.buffer.reserve(length);
        for (text, end) in texts.into_iter().zip(&mut self.ends) {
            self.buffer.push_str(text);
            *end = u16::try_from(self.buffer.len()).unwrap_or(u16::MAX);
        }
    }

    pub(super) fn get(&self) -> Texts<'_> {
        let mut start = 0;
        let [id, host, path, ban, list, agent] = self.ends.map(|end| {
            let text = self.buffer.get(start..usize::from(end)).unwrap_or_default();
            start = usize::from(end);
            text
        });
        Texts { id, host, path, ban, list, agent }
    }
}

/// The start of a `User-Agent` as far as it is text.
pub(in crate::record) fn agent_text(user_agent: &[u8]) -> &str {
    let start = &user_agent[..user_agent.len().min(MAX_AGENT)];
    match str::from_utf8(start) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// The start of a text, cut at the end of a character.
fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

// Kept requests that left the ring. This thread reuses them: once the ring is full, keeping a request allocates no
// memory.

/// Enough for the denials of a busy core that are under way.
const MAX_FREE: usize = 64;

thread_local! {
    #[expect(clippy::vec_box, reason = "they go back into the ring as boxes")]
    static FREE: RefCell<Vec<Box<KeptRequest>>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn take() -> Option<Box<KeptRequest>> {
    FREE.try_with(|free| free.borrow_mut().pop()).ok().flatten()
}

pub(super) fn put(request: Box<KeptRequest>) {
    // While a thread ends it has no list.
    let _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free.len() < MAX_FREE {
            free.push(request);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_the_end_of_a_character_and_leaves_no_large_buffer() {
        let mut text = KeptText::default();
        let long = "é".repeat(300);
        text.set(Texts { id: "1", host: &long, path: &long, ban: "b", list: "", agent: "curl" });
        let Texts { id, host, path, ban, list, agent } = text.get();
        assert_eq!((id, host.len(), path.len(), ban, list, agent), ("1", 254, 512, "b", "", "curl"));
        assert!(text.buffer.capacity() <= 2 * (4 * MAX_OTHER + MAX_PATH));
        text.set(Texts { id: "2", host: "h", path: "/", ban: "", list: "l", agent: "" });
        let Texts { id, host, path, ban, list, agent } = text.get();
        assert_eq!((id, host, path, ban, list, agent), ("2", "h", "/", "", "l", ""));
        for (sent, kept) in [(&b"curl/8"[..], "curl/8"), (b"a\xff", "a"), ("é".repeat(99).as_bytes(), &*"é".repeat(60))]
        {
            assert_eq!(agent_text(sent), kept);
        }
        assert!(text.buffer.capacity() <= USUAL);
    }
}
