//! Serves the admin listener on its socket.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use http::Request;
use http::Response;
use http::header::EXPECT;
use tower::ServiceExt;

use super::AdminState;
use super::auth::PeerAddress;
use super::router::router;
use crate::listen;
use crate::listen::AcceptStop;
use crate::listen::Connections;
use crate::listen::ListenerState;
use crate::listen::connection::Connection;

/// Serves one socket until `stop`.
pub async fn serve(socket: TcpListener, state: Arc<AdminState>, stop: AcceptStop) {
    let settings = Arc::new(ArcSwap::from_pointee(CONNECTIONS));
    let listener = Arc::new(ListenerState::default());
    listen::serve(socket, listener, settings, AdminHandler { router: router(state) }, Connections::default(), stop)
        .await;
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
};

#[derive(Clone, Debug)]
struct AdminHandler {
    router: Router,
}

impl listen::RequestHandler for AdminHandler {
    type Body = Body;

    fn handle(
        &self,
        connection: Arc<Connection>,
        mut request: Request<listen::IncomingBody>,
        interim: listen::InterimSender,
    ) -> impl Future<Output = Response<Body>> + Send + 'static {
        if request.headers().contains_key(EXPECT) {
            interim.send_continue();
        }
        request.extensions_mut().insert(PeerAddress(connection.peer.ip()));
        let answer = self.router.clone().oneshot(request.map(Body::new));
        async move {
            let Ok(response) = answer.await;
            response
        }
    }
}
