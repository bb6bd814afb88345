//! One client's connection, as its requests see it.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::OnceLock;

use super::budget::Budget;
use super::connections::ConnectionGroup;
use super::connections::DrainStage;
use super::progress::Progress;
use super::tls::TlsInfo;
use crate::client::Networks;

/// One client's connection.
#[derive(Debug)]
pub struct Connection {
    /// The address of the client: that of the socket, or that of a PROXY header from a trusted proxy.
    pub peer: SocketAddr,
    /// The address that the client connected to.
    pub local: SocketAddr,
    /// The proxies that may ask for decisions over this connection; `None`: its requests are forwarded.
    pub askers: Option<Arc<Networks>>,
    /// The most fields of one request. HTTP/1 enforces it itself. HTTP/2 bounds only their bytes.
    pub max_headers: usize,
    /// For the bodies of requests that are kept until the decision.
    pub peeked: Budget,
    /// For the parts of responses that are kept until their outcome is known.
    pub inspected: Budget,
    tls_info: OnceLock<TlsInfo>,
    kept: OnceLock<Arc<dyn Any + Send + Sync>>,
    group: Arc<ConnectionGroup>,
    pub(super) progress: Progress,
}

impl Connection {
    /// A connection of this group.
    pub(super) fn new(
        peer: SocketAddr,
        local: SocketAddr,
        askers: Option<Arc<Networks>>,
        max_headers: usize,
        group: &Arc<ConnectionGroup>,
    ) -> Self {
        Self {
            peer,
            local,
            askers,
            max_headers,
            peeked: Budget::default(),
            inspected: Budget::default(),
            tls_info: OnceLock::new(),
            kept: OnceLock::new(),
            group: Arc::clone(group),
            progress: Progress::default(),
        }
    }

    /// Runs a task that outlives its request, such as a tunnel, until it is done or connections are cut.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let group = Arc::clone(&self.group);
        tokio::spawn(async move {
            tokio::select! {
                () = group.wait_for_stage(DrainStage::Cut) => {}
                () = task => {}
            }
        });
    }

    /// Returns when the process is about to end, so that requests in progress should end soon.
    pub async fn ending(&self) {
        self.group.root().wait_for_stage(DrainStage::Draining).await;
    }

    /// Whether the client has closed its side: it has left, or it only reads. Without a request in progress it has left.
    pub fn has_left(&self) -> bool {
        self.progress.read_closed()
    }

    /// Makes the connection's task check, when it next waits, whether the client has closed its side behind bytes that were
    /// not read yet. Not needed over HTTP/2, where all bytes are read.
    pub fn check_whether_client_left(&self) {
        self.progress.set_check_requested(true);
    }

    /// Treats a client that has closed its side as one that has left: it gets no response, and the connection ends.
    pub fn abandon(&self) {
        self.progress.set_abandoned(true);
    }

    /// What a handler keeps for its client until the connection ends; `None`: nothing of this type.
    pub fn kept<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.kept.get().and_then(|kept| Arc::clone(kept).downcast().ok())
    }

    /// Keeps a value for this client until the connection ends, unless one is kept already. A connection keeps values of one
    /// type.
    pub fn keep<T: Any + Send + Sync + Default>(&self) -> Option<Arc<T>> {
        Arc::clone(self.kept.get_or_init(|| Arc::new(T::default()))).downcast().ok()
    }

    /// What the TLS handshake said; `None`: without TLS.
    pub fn tls_info(&self) -> Option<&TlsInfo> {
        self.tls_info.get()
    }

    /// The handshake is complete.
    pub(super) fn set_tls_info(&self, tls_info: TlsInfo) {
        // There is only one handshake.
        let _ = self.tls_info.set(tls_info);
    }

    /// Whether the connection should close after its current request.
    pub(super) fn is_retiring(&self) -> bool {
        self.group.drain_stage() != DrainStage::Running
    }

    pub(super) fn group(&self) -> &ConnectionGroup {
        &self.group
    }
}
