//! What the handlers of the admin listener read and change.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::access::DynAccess;
use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Mutex, mpsc};

use super::session::{FailedAttempts, Sessions};
use super::shared::PublishedStories;
use super::status::LastJudgement;
use super::{AdminRules, GatewayIdentity, LoadedConfig, ReloadReport, ReloadRequest};
use crate::listen::ListenAddress;
use crate::listen::tls::NameExpiries;
use crate::record::advice::Advisor;
use crate::record::attacks::Attacks;
use crate::record::heavy_keys::KeyTables;
use crate::record::kept_requests::KeptRequests;
use crate::record::{EventBus, Gauges, Metrics};
use crate::rules::decision::Policy;
use crate::store::{AnyStore, SharedRecords};

/// What the gateway gives to the admin listener.
pub struct AdminSources {
    pub metrics: Arc<Metrics>,
    /// Reads the gauges, but for those of certificates, once for each scrape.
    pub gauges: Box<dyn Fn() -> Gauges + Send + Sync>,
    /// The policy in force.
    pub policy: Box<dyn DynAccess<Policy> + Send + Sync>,
    pub store: Arc<AnyStore>,
    pub event_bus: Arc<EventBus>,
    /// The configuration that the gateway begins with.
    pub config: LoadedConfig,
    /// To the thread that controls the gateway.
    pub reload_requests: mpsc::Sender<ReloadRequest>,
    pub identity: GatewayIdentity,
    pub kept_requests: Arc<KeptRequests>,
    pub key_tables: Arc<KeyTables>,
    pub advisor: Arc<Advisor>,
    pub attacks: Arc<Attacks>,
}

/// Shared by all handlers.
pub struct AdminState {
    pub(super) metrics: Arc<Metrics>,
    gauges: Box<dyn Fn() -> Gauges + Send + Sync>,
    pub(super) policy: Box<dyn DynAccess<Policy> + Send + Sync>,
    pub(super) store: Arc<AnyStore>,
    pub(super) event_bus: Arc<EventBus>,
    pub(super) config: ArcSwap<LoadedConfig>,
    pub(super) last_reload: ArcSwapOption<ReloadReport>,
    pub(super) reload_requests: mpsc::Sender<ReloadRequest>,
    pub(super) identity: GatewayIdentity,
    pub(super) advisor: Arc<Advisor>,
    pub(super) attacks: Arc<Attacks>,
    /// What the gateways on one Redis know of each other; `None`: the store is in this process.
    pub(super) records: Option<SharedRecords>,
    /// Where requests are accepted.
    pub(super) listeners: ArcSwap<Vec<ListenAddress>>,
    /// When what clients are shown there for each name ends.
    pub(super) name_expiries: ArcSwap<NameExpiries>,
    pub(super) kept_requests: Arc<KeptRequests>,
    /// The stories that this gateway has published.
    pub(super) published_stories: Mutex<PublishedStories>,
    pub(super) key_tables: Arc<KeyTables>,
    pub(super) rules: ArcSwap<AdminRules>,
    pub(super) sessions: Sessions,
    /// At the form of the dashboard.
    pub(super) failed_attempts: FailedAttempts,
    /// As bearers. They are counted apart, so that a program with an old token keeps nobody from the dashboard.
    pub(super) failed_bearers: FailedAttempts,
    /// Of the verdict, as the metrics show it.
    pub(super) last_judgement: LastJudgement,
    draining: AtomicBool,
}

impl AdminState {
    pub fn new(sources: AdminSources, rules: AdminRules) -> Arc<Self> {
        let AdminSources {
            metrics,
            gauges,
            policy,
            store,
            event_bus,
            config,
            reload_requests,
            identity,
            kept_requests,
            key_tables,
            advisor,
            attacks,
        } = sources;
        let records = SharedRecords::of(&store, Arc::clone(&identity.id));
        let (config, last_reload) = (ArcSwap::from_pointee(config), ArcSwapOption::empty());
        let (rules, draining) = (ArcSwap::from_pointee(rules), AtomicBool::new(false));
        Arc::new(Self {
            metrics,
            gauges,
            policy,
            store,
            event_bus,
            config,
            last_reload,
            reload_requests,
            identity,
            advisor,
            attacks,
            records,
            listeners: ArcSwap::default(),
            name_expiries: ArcSwap::default(),
            kept_requests,
            published_stories: Mutex::default(),
            key_tables,
            rules,
            sessions: Sessions::default(),
            failed_attempts: FailedAttempts::default(),
            failed_bearers: FailedAttempts::default(),
            last_judgement: LastJudgement::default(),
            draining,
        })
    }

    /// Applies the rules of a reload.
    pub fn set_rules(&self, rules: AdminRules) {
        let before = self.rules.swap(Arc::new(rules));
        // The subscribers of the event stream and the browsers with a session showed the old token.
        if before.token != self.rules.load().token {
            self.sessions.end_all();
            self.event_bus.stream().close_subscriptions();
        }
    }

    /// Takes the configuration that a reload has brought into force.
    pub fn set_config(&self, config: LoadedConfig) {
        self.config.store(Arc::new(config));
    }

    /// Takes the addresses at which requests are accepted from now on, and when the certificates end that are shown there.
    pub fn set_listeners(&self, addresses: Vec<ListenAddress>, name_expiries: NameExpiries) {
        self.listeners.store(Arc::new(addresses));
        self.name_expiries.store(Arc::new(name_expiries));
    }

    /// The gauges now.
    pub(super) fn gauges(&self) -> Gauges {
        let name_expiries = self.name_expiries.load();
        let certificates = name_expiries.iter().map(|(name, expires)| (name.to_owned(), expires.as_second()));
        Gauges { certificates: certificates.collect(), ..(self.gauges)() }
    }

    /// Takes the result of a reload.
    pub fn set_last_reload(&self, report: ReloadReport) {
        self.last_reload.store(Some(Arc::new(report)));
    }

    /// From now on `/readyz` answers that the gateway is draining.
    pub fn begin_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for AdminSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminSources").field("store", &self.store).finish_non_exhaustive()
    }
}

impl fmt::Debug for AdminState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminState").field("draining", &self.draining).finish_non_exhaustive()
    }
}
