//! A stream that becomes a tunnel if the response opens it.

use std::task::Context;

use bytes::Bytes;
use h2::RecvStream;
use h2::SendStream;
use tokio::sync::oneshot;

use super::open_stream::OpenStream;
use super::tunnel::Http2Tunnel;
use super::tunnel::TunnelReader;
use super::write_backlog::WriteBacklog;
use crate::listen::OnUpgrade;
use crate::listen::Upgraded;

/// A stream whose request asks for a tunnel.
#[derive(Debug)]
pub(super) struct PendingTunnel {
    inbound: TunnelReader,
    upgraded: oneshot::Sender<Upgraded>,
}

impl PendingTunnel {
    pub(super) fn new(stream: RecvStream) -> (Self, OnUpgrade) {
        let (upgraded, upgrade) = OnUpgrade::pair();
        (Self { inbound: TunnelReader::new(stream), upgraded }, upgrade)
    }

    /// Takes the bytes that come before the response.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>) {
        self.inbound.fill(cx);
    }

    /// The response opened the tunnel. If the handler has dropped its side, the stream is reset.
    pub(super) fn open(self, outbound: SendStream<Bytes>, open: OpenStream, backlog: WriteBacklog) {
        let Self { inbound, upgraded } = self;
        drop(upgraded.send(Http2Tunnel::new(inbound, outbound, open, backlog).into()));
    }
}
