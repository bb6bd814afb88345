//! The admin listener: its sockets, and the tasks that accept on them.

use std::io;
use std::sync::Arc;

use tracing::error;

use super::sockets::BoundSockets;
use crate::admin;
use crate::admin::AdminState;
use crate::listen::AcceptStopper;
use crate::listen::ListenAddress;
use crate::listen::ListeningSocket;

pub(super) struct AdminListener {
    /// As configured.
    pub(super) configured: ListenAddress,
    /// As bound: with the port that was free where the configuration says 0.
    pub(super) address: ListenAddress,
    pub(super) stopper: AcceptStopper,
    /// Kept to be handed to a process that takes over.
    pub(super) sockets: Vec<ListeningSocket>,
}

impl AdminListener {
    pub(super) fn serve(bound: BoundSockets, control: &Arc<AdminState>) -> Self {
        let BoundSockets { configured, address, sockets, .. } = bound;
        let stopper = AcceptStopper::default();
        for socket in &sockets {
            match socket.try_clone() {
                Ok(socket) => {
                    let serving = admin::serve(socket, address.clone(), Arc::clone(control), stopper.stop());
                    drop(tokio::spawn(serving));
                }
                Err(error) => error!(%address, %error, "the admin listener does not accept connections: {error}"),
            }
        }
        Self { configured, address, stopper, sockets }
    }

    /// The same sockets once more, for another process.
    pub(super) fn cloned_sockets(&self) -> io::Result<(ListenAddress, Vec<ListeningSocket>)> {
        let sockets = self.sockets.iter().map(ListeningSocket::try_clone).collect::<io::Result<_>>()?;
        Ok((self.configured.clone(), sockets))
    }
}
