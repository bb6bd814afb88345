//! What clients see, tested over real sockets.

mod bounds;
mod client;
mod drain;
mod http1;
mod http2;
mod proxy_protocol;
mod timeouts;

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use self::client::Client;
use super::{
    AcceptStopper, Connection, ConnectionSettings, Connections, IncomingBody, IncomingBodyError, IncomingRequest,
    InterimSender, ListenAddress, ListenerRuntime, ListenerSettings, ListenerState, ListeningSocket, RefusedHead,
    RequestHandler, Response, Stack, bind, serve,
};
use crate::listen::Refusal;
use crate::wire::head::ResponseHead;

/// A timeout that a test waits for. No other step takes as long.
const SHORT: Duration = Duration::from_millis(150);

/// A timeout that no test reaches.
const LONG: Duration = Duration::from_secs(60);

fn settings() -> ConnectionSettings {
    ConnectionSettings {
        header: LONG,
        keepalive: LONG,
        body_idle: LONG,
        body_rate: 0,
        drain: LONG,
        lame_duck: Duration::ZERO,
        max_header_bytes: 16 * 1024,
        max_headers: 100,
        max_connections: 0,
        max_connections_per_client: 0,
        accepts_bare_line_feeds: false,
    }
}

/// A listener with an application that does what the path says.
struct Server {
    address: SocketAddr,
    connections: Connections,
    stop: AcceptStopper,
    app: App,
    settings: Arc<ArcSwap<ConnectionSettings>>,
    door: Arc<ListenerState>,
}

impl Server {
    fn start(settings: ConnectionSettings) -> Self {
        Self::with_terms(settings, ListenerSettings::default())
    }

    fn with_terms(settings: ConnectionSettings, terms: ListenerSettings) -> Self {
        let socket = bind((Ipv4Addr::LOCALHOST, 0).into(), Stack::Dual, 1).unwrap().remove(0);
        let connections = Connections::default();
        let runtime = ListenerRuntime::prepare(terms, None).unwrap();
        let server = Self {
            address: socket.local_addr().unwrap(),
            connections: connections.clone(),
            stop: AcceptStopper::default(),
            app: App::default(),
            settings: Arc::new(ArcSwap::from_pointee(settings)),
            door: Arc::new(ListenerState::new(runtime, connections)),
        };
        tokio::spawn(serve(
            ListeningSocket::Tcp(socket),
            server.address.into(),
            Arc::clone(&server.door),
            Arc::clone(&server.settings),
            server.app.clone(),
            server.stop.stop(),
        ));
        server
    }

    async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }
}

async fn eventually(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("it should hold by now");
}

#[derive(Clone, Debug)]
struct App {
    /// A waiting request goes on when it gets a permit.
    gate: Arc<Semaphore>,
    started: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
    /// How many bodies broke off while another task read them.
    broken_off: Arc<AtomicUsize>,
}

impl Default for App {
    fn default() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(0)),
            started: Arc::default(),
            dropped: Arc::default(),
            broken_off: Arc::default(),
        }
    }
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl RequestHandler for App {
    type Body = Reply;

    fn handle(
        &self,
        connection: Arc<Connection>,
        request: IncomingRequest,
        _: InterimSender,
    ) -> impl Future<Output = Response<Reply>> + Send + Unpin + 'static {
        let app = self.clone();
        Box::pin(async move {
            app.started.fetch_add(1, Ordering::SeqCst);
            let dropped = CountDrop(app.dropped);
            let reply = match request.head.path() {
                "/wait" => {
                    app.gate.acquire().await.unwrap().forget();
                    Reply::Text(Some("waited".into()))
                }
                "/aside" => {
                    let body = request.body;
                    tokio::spawn(async move {
                        if body.collect().await.is_err() {
                            app.broken_off.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                    app.gate.acquire().await.unwrap().forget();
                    Reply::Text(Some("aside".into()))
                }
                "/ends" => Reply::Text(Some(format!("{} {}", connection.peer, connection.local).into())),
                "/panic" => panic!("on purpose"),
                "/endless" => Reply::Endless,
                "/echo" => Reply::Echo(request.body),
                _ => Reply::Text(Some("hello".into())),
            };
            std::mem::forget(dropped);
            Response { head: ResponseHead::of(StatusCode::OK), body: reply }
        })
    }

    fn refuse(&self, _: &Connection, _: RefusedHead) -> Refusal {
        Refusal::default()
    }
}

impl super::ResponseBody for Reply {}

enum Reply {
    Text(Option<Bytes>),
    Endless,
    Echo(IncomingBody),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = IncomingBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        match &mut *self {
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Endless => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 16 * 1024]))))),
            Self::Echo(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Text(text) => text.is_none(),
            Self::Endless => false,
            Self::Echo(body) => body.is_end_stream(),
        }
    }
}
