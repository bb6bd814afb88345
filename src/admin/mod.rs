//! The admin listener: health and metrics for those who watch over the gateway, an API for those who run it.

pub mod auth;

mod bans;
mod events;
mod export;
mod health;
mod limits;
mod metrics;
mod openapi;
mod problem;
mod then;
mod unban;

use std::fmt;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use arc_swap::access::DynAccess;
use axum::Router;
use axum::body::Body;
use axum::middleware;
use axum::routing::MethodRouter;
use axum::routing::get;
use axum::routing::post;
use http::Request;
use http::Response;
use http::header::EXPECT;
use tower::ServiceExt;

use crate::decision::Policy;
use crate::limit::OnFailure;
use crate::listen;
use crate::listen::AcceptStop;
use crate::listen::Connections;
use crate::listen::ListenerState;
use crate::listen::connection::Connection;
use crate::record::EventBus;
use crate::record::Gauges;
use crate::record::Metrics;
use crate::store::AnyStore;

pub use self::auth::Token;

/// The `admin` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AdminSettings {
    pub address: SocketAddr,
    /// `None`: the API is open to this machine.
    pub token: Option<Token>,
}

/// What a reload changes without a new listener.
#[derive(Clone, Debug)]
pub struct AdminRules {
    pub token: Option<Token>,
    /// What holds while a shared store is away, for limits that do not say.
    pub on_failure: OnFailure,
}

/// What the admin listener is given to answer from.
pub struct AdminSources {
    pub metrics: Arc<Metrics>,
    /// How things stand now; asked for each answer.
    pub gauges: Box<dyn Fn() -> Gauges + Send + Sync>,
    /// The rules in force.
    pub policy: Box<dyn DynAccess<Policy> + Send + Sync>,
    pub store: Arc<AnyStore>,
    /// What happens, as it happens.
    pub event_bus: Arc<EventBus>,
}

/// All that the admin listener may ask of the gateway.
pub struct AdminState {
    metrics: Arc<Metrics>,
    gauges: Box<dyn Fn() -> Gauges + Send + Sync>,
    policy: Box<dyn DynAccess<Policy> + Send + Sync>,
    store: Arc<AnyStore>,
    event_bus: Arc<EventBus>,
    rules: ArcSwap<AdminRules>,
    draining: AtomicBool,
}

impl AdminState {
    pub fn new(sources: AdminSources, rules: AdminRules) -> Arc<Self> {
        let AdminSources { metrics, gauges, policy, store, event_bus } = sources;
        let (rules, draining) = (ArcSwap::from_pointee(rules), AtomicBool::new(false));
        Arc::new(Self { metrics, gauges, policy, store, event_bus, rules, draining })
    }

    /// From now on these hold.
    pub fn follow(&self, rules: AdminRules) {
        let before = self.rules.swap(Arc::new(rules));
        // Whoever listens showed the token of before.
        if before.token != self.rules.load().token {
            self.event_bus.stream().close_subscriptions();
        }
    }

    /// From now on the gateway is not ready: it is finishing what it has.
    pub fn begin_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn is_draining(&self) -> bool {
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

/// Answers on one socket until told to stop.
pub async fn serve(socket: TcpListener, state: Arc<AdminState>, stop: AcceptStop) {
    let settings = Arc::new(ArcSwap::from_pointee(CONNECTIONS));
    let listener = Arc::new(ListenerState::default());
    listen::serve(socket, listener, settings, Admin { router: router(state) }, Connections::default(), stop).await;
}

fn router(state: Arc<AdminState>) -> Router {
    let routed = routes().into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    routed
        .method_not_allowed_fallback(problem::method_not_allowed)
        .route_layer(middleware::from_fn_with_state(Arc::clone(&state), auth::guard))
        .fallback(problem::not_found)
        .with_state(state)
}

/// All there is, as `openapi.json` describes it.
fn routes() -> [(&'static str, MethodRouter<Arc<AdminState>>); 11] {
    [
        ("/healthz", get(health::healthz)),
        ("/readyz", get(health::readyz)),
        ("/metrics", get(metrics::metrics)),
        ("/openapi.json", get(openapi::document)),
        ("/api/v1/bans", get(bans::list).post(bans::add).delete(unban::remove_those)),
        ("/api/v1/bans/{id}", get(bans::show).delete(bans::remove)),
        ("/api/v1/bans/export", get(bans::exported)),
        ("/api/v1/events", get(events::follow)),
        ("/api/v1/limits", get(limits::list)),
        ("/api/v1/limits/{name}/state", get(limits::key_state).delete(limits::reset)),
        ("/api/v1/limits/{name}/hit", post(limits::hit)),
    ]
}

/// Scrapers, probes and operators ask little and seldom; nobody else should be here.
const CONNECTIONS: listen::Settings = listen::Settings {
    header: Duration::from_secs(10),
    keepalive: Duration::from_secs(75),
    body_idle: Duration::from_secs(30),
    body_rate: 100,
    drain: Duration::from_secs(1),
    lame_duck: Duration::ZERO,
    max_header_bytes: 16 * 1024,
    max_headers: 64,
    max_connections: 256,
    max_connections_per_client: 0,
};

#[derive(Clone, Debug)]
struct Admin {
    router: Router,
}

impl listen::Handle for Admin {
    type Body = Body;

    fn handle(
        &self,
        connection: Arc<Connection>,
        mut request: Request<listen::IncomingBody>,
        interim: listen::InterimSender,
    ) -> impl Future<Output = Response<Body>> + Send + 'static {
        if request.headers().contains_key(EXPECT) {
            interim.invite();
        }
        request.extensions_mut().insert(auth::Peer(connection.peer.ip()));
        let answer = self.router.clone().oneshot(request.map(Body::new));
        async move {
            let Ok(response) = answer.await;
            response
        }
    }
}

#[cfg(test)]
mod tests;
