//! Serves the admin listener on its socket.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use http::StatusCode;
use tower::ServiceExt;

use super::AdminState;
use super::origin::PeerAddress;
use super::problem::Problem;
use super::router::router;
use crate::head::KnownName;
use crate::head::ResponseHead;
use crate::listen;
use crate::listen::AcceptStop;
use crate::listen::Connections;
use crate::listen::ListenAddress;
use crate::listen::ListenerRuntime;
use crate::listen::ListenerState;
use crate::listen::ListeningSocket;
use crate::listen::connection::Connection;

/// Serves one socket until `stop`.
pub async fn serve(socket: ListeningSocket, address: ListenAddress, state: Arc<AdminState>, stop: AcceptStop) {
    let settings = Arc::new(ArcSwap::from_pointee(CONNECTIONS));
    let listener = Arc::new(ListenerState::new(ListenerRuntime::default(), Connections::default()));
    listen::serve(socket, address, listener, settings, AdminHandler { router: router(state) }, stop).await;
}

/// Scrapers, probes and operators send few and small requests.
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
    accepts_bare_line_feeds: false,
};

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
