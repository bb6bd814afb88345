//! The admin listener: health, readiness and metrics, for those who watch over the gateway.

mod health;
mod metrics;
mod problem;

use std::fmt;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Request;
use http::Response;
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::listen;
use crate::listen::Connections;
use crate::listen::connection::Connection;
use crate::record::Gauges;
use crate::record::Metrics;

/// The `admin` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub address: SocketAddr,
}

/// All that the admin listener may ask of the gateway.
pub struct Control {
    metrics: Arc<Metrics>,
    gauges: Box<dyn Fn() -> Gauges + Send + Sync>,
    draining: AtomicBool,
}

impl Control {
    /// `gauges` says how things stand now; it is asked for each answer.
    pub fn new(metrics: Arc<Metrics>, gauges: impl Fn() -> Gauges + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { metrics, gauges: Box::new(gauges), draining: AtomicBool::new(false) })
    }

    /// From now on the gateway is not ready: it is finishing what it has.
    pub fn begin_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("draining", &self.draining).finish_non_exhaustive()
    }
}

/// Answers on one socket until `stop` is cancelled.
pub async fn serve(socket: TcpListener, control: Arc<Control>, stop: CancellationToken) {
    let settings = Arc::new(ArcSwap::from_pointee(CONNECTIONS));
    listen::serve(socket, settings, Admin { router: router(control) }, Connections::default(), stop).await;
}

fn router(control: Arc<Control>) -> Router {
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .with_state(control)
}

/// Scrapers and probes ask little and seldom; nobody else should be here.
const CONNECTIONS: listen::Settings = listen::Settings {
    header: Duration::from_secs(10),
    keepalive: Duration::from_secs(75),
    body_idle: Duration::from_secs(30),
    drain: Duration::from_secs(1),
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
        _connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send + 'static {
        let answer = self.router.clone().oneshot(request.map(Body::new));
        async move {
            let Ok(response) = answer.await;
            response
        }
    }
}

#[cfg(test)]
mod tests;
