//! Serves the admin listener on its socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::body::Body;
use axum::{Extension, Router, middleware};
use http::StatusCode;
use tower::ServiceExt;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::AdminState;
use super::problem::Problem;
use crate::admin::auth::PeerAddress;
use crate::admin::input::TakenInputs;
use crate::admin::openapi::Document;
use crate::admin::{
    Token, attacks, auth, bans, config, events, health, history, input, limits, openapi, page, problem, requests,
    session, status, top,
};
use crate::listen;
use crate::listen::connection::Connection;
use crate::listen::{AcceptStop, Connections, ListenAddress, ListenerRuntime, ListenerState, ListeningSocket};
use crate::rules::limit::OnFailure;
use crate::wire::head::{KnownName, ResponseHead};

/// Scrapers, probes and operators send few and small requests.
const CONNECTIONS: listen::ConnectionSettings = listen::ConnectionSettings {
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
    accepts_bare_line_feeds: false,
};

/// Serves one socket until `stop`.
pub async fn serve(socket: ListeningSocket, address: ListenAddress, state: Arc<AdminState>, stop: AcceptStop) {
    let settings = Arc::new(ArcSwap::from_pointee(CONNECTIONS));
    let listener = Arc::new(ListenerState::new(ListenerRuntime::default(), Connections::default()));
    listen::serve(socket, address, listener, settings, AdminHandler { router: router(state) }, stop).await;
}

impl listen::ResponseBody for Body {}

#[derive(Clone, Debug)]
struct AdminHandler {
    router: Router,
}

impl listen::RequestHandler for AdminHandler {
    type Body = Body;

    fn handle(
        &self,
        connection: Arc<Connection>,
        request: listen::IncomingRequest,
        interim: listen::InterimSender,
    ) -> impl Future<Output = listen::Response<Body>> + Send + Unpin + 'static {
        if request.head.fields.has(KnownName::EXPECT) {
            interim.send_continue();
        }
        let mut asked = request.head.to_http(Body::new(request.body));
        asked.extensions_mut().insert(PeerAddress(connection.peer.ip()));
        let answer = self.router.clone().oneshot(asked);
        Box::pin(async move {
            let Ok(response) = answer.await;
            let head = ResponseHead::from_headers(response.status(), response.headers());
            listen::Response { head, body: response.into_body() }
        })
    }

    fn refuse(&self, _connection: &Connection, refused: listen::RefusedHead) -> listen::Refusal {
        let detail = match refused.status {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "the head of the request has more than 16 KiB or 64 fields",
            StatusCode::NOT_IMPLEMENTED => "this opens no tunnels",
            _ => "the head of the request is malformed",
        };
        Problem::new(refused.status, detail).into()
    }
}

// The paths and methods of the admin listener.

pub(super) fn router(state: Arc<AdminState>) -> Router {
    let (routed, mut description) = described_routes().split_for_parts();
    let taken = TakenInputs::of(&mut description);
    routed
        .method_not_allowed_fallback(problem::method_not_allowed)
        .route_layer(Extension(Document::complete(description)))
        .route_layer(middleware::from_fn_with_state(taken, input::refuse_others))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&state), auth::guard))
        .fallback(problem::not_found)
        .with_state(state)
}

/// Every route with its description: a handler that is not described is not served.
fn described_routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(history::metrics))
        .routes(routes!(openapi::document))
        .merge(page::routes())
        .merge(session::routes())
        .merge(bans::routes())
        .merge(config::routes())
        .routes(routes!(events::stream))
        .routes(routes!(events::recent))
        .routes(routes!(history::history))
        .merge(limits::routes())
        .merge(status::routes())
        .routes(routes!(requests::list))
        .routes(routes!(requests::show))
        .routes(routes!(top::top))
        .routes(routes!(attacks::attacks))
        .routes(routes!(status::advice))
}

// The settings of the admin listener.

/// The `admin` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AdminSettings {
    pub address: SocketAddr,
    /// `None`: programs of this machine may use the API.
    pub token: Option<Token>,
}

/// What a reload changes without a new listener.
#[derive(Clone, Debug)]
pub struct AdminRules {
    pub token: Option<Token>,
    /// What to do while Redis is down, for limits that do not say.
    pub on_failure: OnFailure,
}
