//! What is in force, swapped whole by a reload.

use std::sync::Arc;

use super::forward::header_names::LookedAt;
use super::respond::ratelimit_headers::Shown;
use super::settings::Settings;
use crate::client::TrustedProxies;
use crate::decision::Policy;
use crate::limit::Action;
use crate::record::Recorder;
use crate::upstream::Upstream;

/// Everything a request needs of the configuration, swapped whole; a request keeps the one it started with.
#[derive(Debug)]
pub struct Snapshot {
    pub policy: Policy,
    pub clients: TrustedProxies,
    /// By `UpstreamId`.
    pub upstreams: Vec<Arc<Upstream>>,
    pub settings: Settings,
    pub recorder: Recorder,
    pub(super) shown: Shown,
    pub(super) looked_at: LookedAt,
    /// Whether a limit challenges: without one no cookie is a proof of work.
    pub(super) challenges: bool,
}

impl Snapshot {
    /// `upstreams` are in the order of `UpstreamId`, and the recorder knows the names of all this.
    pub fn new(
        policy: Policy,
        clients: TrustedProxies,
        upstreams: Vec<Arc<Upstream>>,
        settings: Settings,
        recorder: Recorder,
    ) -> Self {
        let shown = Shown::new(&policy, settings.headers);
        let looked_at = LookedAt::new(&policy, &clients);
        let challenges = policy.limits.iter().any(|limit| matches!(limit.then.action, Action::Challenge));
        Self { policy, clients, upstreams, settings, recorder, shown, looked_at, challenges }
    }
}
