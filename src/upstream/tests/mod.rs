//! What becomes of a request, over real sockets.

mod bodies;
mod bursts;
mod failures;
mod health;
mod origin;
mod reuse;

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};

use self::origin::Origin;
use super::*;
use crate::wire::head::{KnownName, RequestHead};

/// Short where a test waits for it, and nothing else takes as long.
const SHORT: Duration = Duration::from_millis(150);

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

/// A client without connections of its own.
struct Nobody;

impl Client for Nobody {
    fn address(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    }

    fn own_connections(&self) -> Option<Arc<OwnConnections>> {
        None
    }

    fn own_connections_or_new(&self) -> Option<Arc<OwnConnections>> {
        None
    }
}

type TestBody = BoxBody<Bytes, io::Error>;

impl ReplayBody for TestBody {
    fn keep(&mut self) {}

    fn replay(&mut self) -> bool {
        false
    }

    fn stop_keeping(&mut self) {}
}

fn settings(origins: &[&Origin]) -> UpstreamSettings {
    UpstreamSettings {
        name: "app".into(),
        servers: origins.iter().map(|origin| origin.authority().into()).collect(),
        balance: Balance::RoundRobin,
        host: HostHeader::Preserve,
        timeouts: Timeouts { connect: LONG, response: LONG, idle: LONG },
        heads: HeadBounds::default(),
        health: None,
        tls: ServerVerification::default(),
        http2: false,
        max_idle: None,
    }
}

fn timeouts(response: Duration, idle: Duration) -> Timeouts {
    Timeouts { connect: LONG, response, idle }
}

/// A request that a test sends.
struct TestRequest {
    head: RequestHead,
    body: TestBody,
}

impl TestRequest {
    fn with_body(self, body: TestBody) -> Self {
        Self { body, ..self }
    }
}

fn request(method: Method, body: &'static str) -> TestRequest {
    let body = match body {
        "" => TestBody::default(),
        body => Full::from(body).map_err(|never| match never {}).boxed(),
    };
    let mut head = RequestHead::to(method, "/path").unwrap();
    head.fields.append(KnownName::HOST, b"a");
    TestRequest { head, body }
}

fn get() -> TestRequest {
    request(Method::GET, "")
}

async fn send(pool: &Pool, upstream: &Arc<Upstream>, request: TestRequest) -> Result<UpstreamResponse, ForwardError> {
    let TestRequest { mut head, mut body } = request;
    let request = OutgoingRequest { head: &mut head, body: &mut body, awaits_end: false };
    pool.send(upstream, request, &Nobody, |_| ()).await
}

async fn text(answer: UpstreamResponse) -> String {
    let bytes = answer.body.collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn eventually(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("it should hold by now");
}
