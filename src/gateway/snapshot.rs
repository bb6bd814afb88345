//! The configuration in force, swapped as a whole by a reload.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::tokens::TokenVerifier;
use crate::gateway::enforce::HeldRequests;
use crate::gateway::header_kind::SignificantHeaders;
use crate::gateway::pages::OperatorPages;
use crate::gateway::ratelimit_headers::{HeaderStyle, RateLimitHeaders};
use crate::record::Recorder;
use crate::rules::client::{ClientIp, Reputation, TrustedProxies};
use crate::rules::decision::Policy;
use crate::rules::list::AddressSet;
use crate::rules::route::KnownBy;
use crate::store::AnyStore;
use crate::upstream::{Pool, Upstream};
use crate::words::clock::Clock;

/// Everything that requests need from the configuration. A request keeps the snapshot that it started with.
#[derive(Debug)]
pub struct Snapshot {
    pub policy: Policy,
    pub clients: TrustedProxies,
    /// By `UpstreamId`.
    pub upstreams: Vec<Arc<Upstream>>,
    pub settings: GatewaySettings,
    pub recorder: Recorder,
    pub followed_lists: FollowedLists,
    /// `None`: no rule reads what a token claims.
    pub tokens: Option<Arc<TokenVerifier>>,
    pub(super) ratelimit_headers: RateLimitHeaders,
    pub(super) significant_headers: SignificantHeaders,
    /// Whether any limit challenges. If none does, cookies are not searched for proofs of work.
    pub(super) challenges: bool,
    /// Whether a route knows clients by a device cookie: without one no request needs the key ring.
    pub(super) device_cookies: bool,
}

impl Snapshot {
    /// `upstreams` are in the order of `UpstreamId`, `followed_lists` in the order of their numbers. The recorder has
    /// the names of the same policy.
    pub fn new(
        policy: Policy,
        clients: TrustedProxies,
        upstreams: Vec<Arc<Upstream>>,
        settings: GatewaySettings,
        recorder: Recorder,
        followed_lists: FollowedLists,
    ) -> Self {
        let ratelimit_headers = RateLimitHeaders::new(&policy, settings.headers);
        let significant_headers = SignificantHeaders::new(&policy, &clients);
        let challenges = policy.challenges();
        let known_clients = policy.routes.all().iter().filter_map(|route| route.known_clients.as_ref());
        let device_cookies = known_clients.into_iter().any(|known| known.by == KnownBy::Cookie);
        Self {
            policy,
            clients,
            upstreams,
            settings,
            recorder,
            followed_lists,
            tokens: None,
            ratelimit_headers,
            significant_headers,
            challenges,
            device_cookies,
        }
    }

    /// Adds the verifier of tokens, for rules that read claims.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Option<Arc<TokenVerifier>>) -> Self {
        self.tokens = tokens.filter(|_| self.policy.reads_claims());
        if let Some(header) = self.tokens.as_ref().and_then(|tokens| tokens.header()) {
            self.significant_headers.add(header);
        }
        self
    }
}

// The settings for requests.

/// The settings for requests from the `server`, `headers` and `pages` sections.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GatewaySettings {
    /// The longest allowed body; `None`: any length.
    pub max_body: Option<u64>,
    /// How much of a body a key may read.
    pub inspect_body: usize,
    /// How long a body may make no progress.
    pub body_idle: Duration,
    /// The lowest allowed rate of a body in bytes per second, measured over each `body_idle` after the first; zero:
    /// any.
    pub body_rate: u32,
    pub headers: HeaderStyle,
    /// Bytes above 0x7f in a target are encoded, where they are UTF-8. Otherwise such a target is refused.
    pub accepts_utf8_targets: bool,
    /// How many delayed and tarpitted requests are held at a time.
    pub max_held: usize,
    /// The pages in the place of the gateway's own.
    pub pages: Arc<OperatorPages>,
}

/// Where the configuration leaves them out.
impl GatewaySettings {
    pub const INSPECT_BODY: usize = 64 << 10;
    pub const MAX_HELD: usize = 10_000;
}

// The decisions that are in force, from lists that follow a source.

/// The members of one list, replaced as a whole whenever its source says something else.
pub type LiveAddresses = Arc<ArcSwap<FollowedAddresses>>;

/// The addresses that a source has decided about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FollowedAddresses {
    pub banned: AddressSet,
    /// To be let in only after a challenge.
    pub challenged: AddressSet,
}

/// The lists of a configuration that follow a source, by their number.
#[derive(Clone, Debug, Default)]
pub struct FollowedLists(Vec<LiveAddresses>);

impl FollowedLists {
    /// The decisions of the lists about a client at this moment.
    pub fn reputation(&self, client: ClientIp) -> Reputation {
        let mut reputation = Reputation::default();
        for (number, list) in (0..).zip(&self.0) {
            let addresses = list.load();
            if addresses.banned.contains(client) {
                reputation = reputation.banned_by(number);
            }
            if addresses.challenged.contains(client) {
                reputation = reputation.challenged_by(number);
            }
        }
        reputation
    }
}

impl FromIterator<LiveAddresses> for FollowedLists {
    fn from_iter<I: IntoIterator<Item = LiveAddresses>>(lists: I) -> Self {
        Self(lists.into_iter().collect())
    }
}

// What the requests of one worker share.

/// The state of one worker. Every request in progress keeps a reference to it.
#[derive(Debug)]
pub struct WorkerState {
    pub(super) live: Arc<ArcSwap<Snapshot>>,
    pub(super) store: Arc<AnyStore>,
    pub(super) pool: Pool,
    pub(super) held_requests: HeldRequests,
    /// Requests that go on without their clients.
    pub(super) detached: TaskTracker,
    pub(super) clock: Clock,
}

impl WorkerState {
    /// Runs the rest of a request whose client has disconnected.
    pub(super) fn spawn_detached(&self, rest: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime this worker has ended.
        if let Ok(runtime) = Handle::try_current() {
            self.detached.spawn_on(rest, &runtime);
        }
    }
}
