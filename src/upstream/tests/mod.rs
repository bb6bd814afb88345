//! What becomes of a request, over real sockets.

mod bodies;
mod failures;
mod health;
mod origin;
mod reuse;

use std::io;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::Request;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;

use self::origin::Origin;
use super::*;

/// Short where a test waits for it, and nothing else takes as long.
const SHORT: Duration = Duration::from_millis(150);

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

type TestBody = BoxBody<Bytes, io::Error>;

impl ReplayBody for TestBody {
    fn keep(&mut self) {}

    fn replay(&mut self) -> bool {
        false
    }

    fn stop_keeping(&mut self) {}
}

fn settings(origins: &[&Origin]) -> Settings {
    Settings {
        name: "app".into(),
        servers: origins.iter().map(|origin| origin.authority().into()).collect(),
        balance: Balance::RoundRobin,
        host: HostHeader::Preserve,
        timeouts: Timeouts { connect: LONG, response: LONG, idle: LONG },
        heads: HeadBounds::default(),
        health: None,
        tls: ServerVerification::default(),
        http2: false,
    }
}

fn timeouts(response: Duration, idle: Duration) -> Timeouts {
    Timeouts { connect: LONG, response, idle }
}

fn request(method: Method, body: &'static str) -> Request<TestBody> {
    let body = match body {
        "" => TestBody::default(),
        body => Full::from(body).map_err(|never| match never {}).boxed(),
    };
    Request::builder().method(method).uri("/path").header("host", "a").body(body).unwrap()
}

fn get() -> Request<TestBody> {
    request(Method::GET, "")
}

async fn text(answer: UpstreamResponse) -> String {
    let bytes = answer.response.into_body().collect().await.unwrap().to_bytes();
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
