//! Upgrades: the gateway passes the client's request for an upgrade on, and after a 101 it copies bytes both ways.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use http::Version;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tracing::debug;

use crate::gateway::body::expect::BodyProgress;
use crate::gateway::exchange::Exchange;
use crate::listen::OnUpgrade;
use crate::upstream::Tunnel;
use crate::wire::head::{Fields, KnownName, RequestHead};
use crate::words::base64;
use crate::words::pool::Pooled;

/// In bytes, for each direction of a tunnel.
const BUFFER: usize = 16 * 1024;

/// A tunnel without traffic for this long is closed, at the latest after twice this time.
const MAX_SILENCE: Duration = Duration::from_secs(3600);

/// A client's request to upgrade its connection.
#[derive(Debug)]
pub struct UpgradeRequest {
    pub protocols: Vec<u8>,
    pub client: OnUpgrade,
    /// The gateway's own handshake with the application, for a client of HTTP/2, which has none.
    pub handshake: Option<Handshake>,
}

/// Why an application's answer does not match the request for an upgrade.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UpgradeError {
    #[error("the application switched to a protocol that the client did not ask for")]
    Unasked,
    #[error("the application's Sec-WebSocket-Accept does not match the key")]
    Handshake,
    #[error("the application answered without switching protocols")]
    NotSwitched,
}

impl UpgradeError {
    /// The label in the metric of failures.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unasked => "unsolicited_upgrade",
            Self::Handshake => "handshake",
            Self::NotSwitched => "not_switched",
        }
    }
}

impl UpgradeRequest {
    /// The upgrade that a request asks for; `None` when there is none to pass on. `Connection` must have named it.
    /// Upgrades to HTTP are not passed on, and neither are upgrades of requests with a body.
    pub fn read(client: Option<OnUpgrade>, head: &RequestHead, has_body: bool) -> Option<Self> {
        let client = client?;
        if has_body || head.version < Version::HTTP_11 {
            return None;
        }
        let handshake = is_stream(head.version).then(Handshake::random);
        Some(Self { protocols: offered(&head.fields)?, client, handshake })
    }

    /// Writes the upgrade into a request for the application.
    pub fn ask(&self, fields: &mut Fields) {
        fields.insert(KnownName::CONNECTION, b"upgrade");
        fields.insert(KnownName::UPGRADE, &self.protocols);
        if let Some(handshake) = &self.handshake {
            handshake.ask(fields);
        }
    }

    /// Checks that the application switched to a protocol that the client asked for. Removes the answer to the
    /// gateway's own handshake.
    pub fn check(&self, switched: &mut Fields) -> Result<(), UpgradeError> {
        let protocol = switched.get(KnownName::UPGRADE).ok_or(UpgradeError::Unasked)?;
        if !elements(&self.protocols).any(|offered| offered.eq_ignore_ascii_case(protocol)) {
            return Err(UpgradeError::Unasked);
        }
        let is_sound = self.handshake.as_ref().is_none_or(|handshake| handshake.take_accept(switched));
        if is_sound { Ok(()) } else { Err(UpgradeError::Handshake) }
    }
}

fn is_stream(version: Version) -> bool {
    version == Version::HTTP_2
}

fn offered(fields: &Fields) -> Option<Vec<u8>> {
    let offered = fields.get_all(KnownName::UPGRADE).flat_map(elements);
    let protocols: Vec<&[u8]> = offered.filter(|protocol| !is_http(protocol)).collect();
    if protocols.is_empty() { None } else { Some(protocols.join(&b", "[..])) }
}

fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

/// `h2c`, `h2` and `HTTP/2.0`: the rules would not see the requests in such a tunnel.
fn is_http(protocol: &[u8]) -> bool {
    let begins = |start: &[u8]| protocol.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    begins(b"h2") || begins(b"h3") || begins(b"http")
}

/// Copies bytes both ways until both sides have ended or nothing moves. `received` counts what the client sends, `sent` what
/// it gets. The exchange ends with the tunnel, and the server counts the request until then.
pub async fn tunnel(
    client: OnUpgrade,
    application: Tunnel,
    exchange: Pooled<Exchange>,
    (received, sent): (BodyProgress, BodyProgress),
) {
    let client = match client.await {
        Ok(client) => client,
        Err(error) => {
            debug!(request_id = exchange.facts.request_id.as_str(), %error, "the client left before the tunnel was established");
            return;
        }
    };
    let given_up = client.given_up();
    let mut client = CountedStream { io: client, read: received.clone() };
    let mut application = CountedStream { io: application, read: sent.clone() };
    let moved = || received.bytes() + sent.bytes();
    tokio::select! {
        // Bytes that came before the end are copied first.
        biased;
        _ = tokio::io::copy_bidirectional_with_sizes(&mut client, &mut application, BUFFER, BUFFER) => {}
        () = given_up => {}
        () = silence(moved) => {}
    }
    drop(exchange);
}

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

/// One end of a tunnel, and the count of bytes that were read from it.
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

// The WebSocket handshake of HTTP/1.1 (RFC 6455), made by the gateway for a client of HTTP/2, which has none (RFC
// 8441).

/// RFC 6455, section 1.3.
const SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The key of a handshake. The application proves with its answer that it understands WebSocket.
#[derive(Debug)]
pub struct Handshake {
    key: String,
}

impl Handshake {
    /// A handshake with a random key.
    pub fn random() -> Self {
        let mut key = [0; 16];
        getrandom::fill(&mut key).expect("the system has random bytes");
        Self { key: base64::encode(&key) }
    }

    /// Writes the key into a request, in place of a key that the client may have sent.
    pub fn ask(&self, fields: &mut Fields) {
        fields.insert(KnownName::SEC_WEBSOCKET_KEY, self.key.as_bytes());
    }

    /// Removes the application's answer to the key from its 101. Returns whether it is the right one.
    pub fn take_accept(&self, fields: &mut Fields) -> bool {
        let accept = fields.single(KnownName::SEC_WEBSOCKET_ACCEPT);
        let is_right = accept.is_some_and(|accept| accept == accept_for(&self.key).as_bytes());
        fields.remove(KnownName::SEC_WEBSOCKET_ACCEPT);
        is_right
    }
}

fn accept_for(key: &str) -> String {
    let asked = [key, SUFFIX].concat();
    base64::encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, asked.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_answer_is_that_of_the_rfc() {
        assert_eq!(accept_for("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn only_a_single_right_answer_is_accepted() {
        let handshake = Handshake::random();
        let right = accept_for(&handshake.key);
        let other = accept_for(&Handshake::random().key);
        for (answers, is_right) in
            [(vec![&right], true), (vec![], false), (vec![&other], false), (vec![&right, &other], false)]
        {
            let answers = answers.into_iter().map(|answer| (KnownName::SEC_WEBSOCKET_ACCEPT, answer));
            let mut fields: Fields = answers.collect();
            assert_eq!(handshake.take_accept(&mut fields), is_right);
            assert!(fields.is_empty());
        }
    }

    fn asking(upgrade: &str) -> Fields {
        let mut fields = Fields::default();
        fields.append(KnownName::UPGRADE, upgrade.as_bytes());
        fields
    }

    #[track_caller]
    fn check(upgrade: &str, expected: Option<&str>) {
        assert_eq!(offered(&asking(upgrade)).as_deref(), expected.map(str::as_bytes));
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
            let offer = offered(&asking(&asked));
            prop_assert!(offer.iter().flat_map(|offer| elements(offer)).all(|protocol| !is_http(protocol)));
        }
    }
}
