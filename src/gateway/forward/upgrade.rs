//! Upgrades: what a client asks for is offered to the application, and after its 101 bytes are carried both ways.

use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use http::HeaderMap;
use http::HeaderValue;
use http::Version;
use http::header::CONNECTION;
use http::header::UPGRADE;
use http::request::Parts;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tracing::debug;

use super::websocket::Handshake;
use crate::gateway::admit::progress::BodyProgress;
use crate::gateway::exchange::Exchange;
use crate::listen::OnUpgrade;
use crate::upstream::Tunnel;

/// What a client wants its connection to become.
#[derive(Debug)]
pub struct UpgradeRequest {
    pub protocols: HeaderValue,
    pub client: OnUpgrade,
    /// Ours with the application, where its client has none.
    pub handshake: Option<Handshake>,
}

/// Why an application's answer is none to what it was asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UpgradeError {
    #[error("the application switched protocols unasked")]
    Unasked,
    #[error("the application's Sec-WebSocket-Accept is not for the key it was sent")]
    Handshake,
    #[error("the application answered without switching protocols")]
    NotSwitched,
}

impl UpgradeError {
    /// As the metric of failures has it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unasked => "unsolicited_upgrade",
            Self::Handshake => "handshake",
            Self::NotSwitched => "not_switched",
        }
    }
}

impl UpgradeRequest {
    /// What a request asks for, `Connection` naming it; `None` where there is nothing to offer. HTTP/2 over the
    /// application's connection is not on offer, and a request with a body ends with its body.
    pub fn read(parts: &mut Parts, is_named_in_connection: bool, has_body: bool) -> Option<Self> {
        let client = parts.extensions.remove::<OnUpgrade>()?;
        if !is_named_in_connection || has_body || parts.version < Version::HTTP_11 {
            return None;
        }
        let handshake = is_stream(parts.version).then(Handshake::random);
        Some(Self { protocols: offered(&parts.headers)?, client, handshake })
    }

    /// Writes it into a request for the application.
    pub fn ask(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, self.protocols.clone());
        if let Some(handshake) = &self.handshake {
            handshake.ask(headers);
        }
    }

    /// Checks that the application switched to something that was asked for. What was for us alone is taken out.
    pub fn check(&self, switched: &mut HeaderMap) -> Result<(), UpgradeError> {
        let protocol = switched.get(UPGRADE).ok_or(UpgradeError::Unasked)?.as_bytes().trim_ascii();
        if !elements(&self.protocols).any(|upgrade| upgrade.eq_ignore_ascii_case(protocol)) {
            return Err(UpgradeError::Unasked);
        }
        let is_sound = self.handshake.as_ref().is_none_or(|handshake| handshake.take_accept(switched));
        if is_sound { Ok(()) } else { Err(UpgradeError::Handshake) }
    }
}

fn is_stream(version: Version) -> bool {
    version == Version::HTTP_2
}

fn offered(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut protocols = Vec::new();
    for protocol in headers.get_all(UPGRADE).iter().flat_map(elements) {
        if is_http(protocol) {
            continue;
        }
        if !protocols.is_empty() {
            protocols.extend_from_slice(b", ");
        }
        protocols.extend_from_slice(protocol);
    }
    if protocols.is_empty() { None } else { HeaderValue::try_from(protocols).ok() }
}

fn elements(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

/// `h2c`, `h2` and `HTTP/2.0`: requests inside would meet no rule.
fn is_http(protocol: &[u8]) -> bool {
    let begins = |start: &[u8]| protocol.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    begins(b"h2") || begins(b"h3") || begins(b"http")
}

/// Carries bytes both ways until both sides are done or nothing moves. The exchange ends with it, and the server counts
/// as busy as long.
pub async fn tunnel(client: OnUpgrade, application: Tunnel, mut exchange: Box<Exchange>) {
    let client = match client.await {
        Ok(client) => client,
        Err(error) => {
            debug!(request_id = exchange.facts.request_id.as_str(), %error, "the client left before the tunnel stood");
            return;
        }
    };
    let given_up = client.given_up();
    let (received, sent) = (BodyProgress::default(), BodyProgress::default());
    exchange.set_body(Some(received.clone()));
    let mut client = CountedStream { io: client, read: received.clone() };
    let mut application = CountedStream { io: application, read: sent.clone() };
    let moved = || received.bytes() + sent.bytes();
    tokio::select! {
        // What came before the end goes on first.
        biased;
        _ = tokio::io::copy_bidirectional_with_sizes(&mut client, &mut application, BUFFER, BUFFER) => {}
        () = given_up => {}
        () = silence(moved) => {}
    }
    exchange.add_bytes_out(sent.bytes());
}

/// For each direction of a tunnel.
const BUFFER: usize = 16 * 1024;
/// A tunnel through which nothing moves for so long is closed, at the latest after twice as long.
const MAX_SILENCE: Duration = Duration::from_secs(3600);

async fn silence(moved: impl Fn() -> u64) {
    let mut before = moved();
    loop {
        tokio::time::sleep(MAX_SILENCE).await;
        let now = moved();
        if now == before {
            return;
        }
        before = now;
    }
}

/// One end of a tunnel, and how much came out of it.
#[derive(Debug)]
struct CountedStream<T> {
    io: T,
    read: BodyProgress,
}

impl<T: AsyncRead + Unpin> AsyncRead for CountedStream<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        self.read.count(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CountedStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(upgrade: &'static str, expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
        assert_eq!(offered(&headers).as_ref().map(|value| value.to_str().expect("text")), expected);
    }

    #[test]
    fn http_in_a_tunnel_is_not_offered() {
        check("websocket", Some("websocket"));
        check("h2c", None);
        check("H2C, websocket", Some("websocket"));
        check("HTTP/2.0", None);
        check("chat/2, irc", Some("chat/2, irc"));
        check(" , ", None);
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_http_is_not_offered(asked in "(h2c|H2|http|HTTP/2[.]0|websocket|irc|,| ){0,8}") {
            let headers = HeaderMap::from_iter([(UPGRADE, HeaderValue::try_from(asked).expect("a value"))]);
            let offer = offered(&headers);
            prop_assert!(offer.iter().flat_map(elements).all(|protocol| !is_http(protocol)));
        }
    }
}
