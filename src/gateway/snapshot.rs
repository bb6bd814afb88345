//! The configuration in force, swapped as a whole by a reload.

use std::sync::Arc;

use super::followed_lists::FollowedLists;
use super::forward::significant_headers::SignificantHeaders;
use super::respond::ratelimit_headers::RateLimitHeaders;
use super::settings::GatewaySettings;
use super::tokens::TokenVerifier;
use crate::client::TrustedProxies;
use crate::decision::Policy;
use crate::record::Recorder;
use crate::route::KnownBy;
use crate::upstream::Upstream;

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
    /// `upstreams` are in the order of `UpstreamId`, `followed_lists` in that of their numbers. The recorder has the names of the
    /// same policy.
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

    /// The same, where rules may read what tokens claim.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Option<Arc<TokenVerifier>>) -> Self {
        self.tokens = tokens.filter(|_| self.policy.reads_claims());
        if let Some(header) = self.tokens.as_ref().and_then(|tokens| tokens.header()) {
            self.significant_headers.add(header);
        }
        self
    }
}
