//! Listening sockets: bound by this process, or inherited from another one.

use std::net::SocketAddr;
use std::net::TcpListener;

use tracing::warn;

use super::start_error::StartError;
use crate::listen;
use crate::listen::Stack;

/// Sockets on one address, not yet served.
#[derive(Debug)]
pub struct BoundSockets {
    /// As configured.
    pub configured: SocketAddr,
    /// With the port that was free, where the configuration says 0.
    pub address: SocketAddr,
    pub sockets: Vec<TcpListener>,
}

/// Takes over `configured` where it is open already; otherwise opens `count` sockets on it.
pub(super) fn bind(
    configured: SocketAddr,
    stack: Stack,
    count: usize,
    inherited: &mut InheritedSockets,
) -> Result<BoundSockets, StartError> {
    let failed = |source| StartError::Bind { address: configured, source };
    let sockets = match inherited.take(configured) {
        Some(sockets) => sockets,
        None => listen::bind(configured, stack, count).map_err(failed)?,
    };
    let address = match sockets.first() {
        Some(socket) => socket.local_addr().map_err(failed)?,
        None => configured,
    };
    Ok(BoundSockets { configured, address, sockets })
}

/// Sockets that the previous process or the service manager handed to this one.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<InheritedAddress>);

/// Sockets that share an address.
#[derive(Debug)]
struct InheritedAddress {
    /// As the previous process had it configured; of the service manager, as bound.
    configured: SocketAddr,
    address: SocketAddr,
    sockets: Vec<TcpListener>,
}

impl InheritedSockets {
    /// Adds a socket, which its previous owner had configured as `configured`. A socket that cannot be used is logged.
    pub(super) fn add(&mut self, configured: Option<SocketAddr>, socket: TcpListener) {
        let adopted = socket.local_addr().and_then(|address| Ok((address, listen::adopt(socket)?)));
        let (address, socket) = match adopted {
            Ok(adopted) => adopted,
            Err(error) => return warn!(%error, "cannot use a socket that was handed over: {error}"),
        };
        let configured = configured.unwrap_or(address);
        match self.0.iter_mut().find(|known| (known.configured, known.address) == (configured, address)) {
            Some(known) => known.sockets.push(socket),
            None => self.0.push(InheritedAddress { configured, address, sockets: vec![socket] }),
        }
    }

    /// Takes the sockets of this address, if there are any.
    fn take(&mut self, wanted: SocketAddr) -> Option<Vec<TcpListener>> {
        let found = self.0.iter().position(|known| known.configured == wanted || known.address == wanted)?;
        Some(self.0.remove(found).sockets)
    }

    /// The addresses that the configuration does not listen on.
    pub(super) fn unused(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|known| known.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY_PORT: &str = "127.0.0.1:0";

    fn open() -> (SocketAddr, TcpListener) {
        let socket = TcpListener::bind(ANY_PORT).unwrap();
        (socket.local_addr().unwrap(), socket)
    }

    #[test]
    fn every_socket_of_an_address_is_taken_over_and_others_are_opened() {
        let (address, first) = open();
        let mut inherited = InheritedSockets::default();
        inherited.add(None, first.try_clone().unwrap());
        inherited.add(None, first);

        let bound = bind(address, Stack::Dual, 1, &mut inherited).unwrap();
        let new = bind(ANY_PORT.parse().unwrap(), Stack::Dual, 3, &mut inherited).unwrap();

        assert_eq!((bound.address, bound.sockets.len()), (address, 2));
        assert_eq!(new.sockets.len(), 3);
        assert_ne!(new.address, address);
    }

    #[test]
    fn a_port_that_was_left_open_is_known_by_what_was_configured() {
        let (address, socket) = open();
        let mut inherited = InheritedSockets::default();
        let configured = ANY_PORT.parse().unwrap();
        inherited.add(Some(configured), socket);

        let bound = bind(configured, Stack::Dual, 1, &mut inherited).unwrap();

        assert_eq!((bound.configured, bound.address), (configured, address));
    }

    #[test]
    fn a_socket_on_an_address_that_is_not_configured_stays_unused() {
        let (address, socket) = open();
        let mut inherited = InheritedSockets::default();
        inherited.add(None, socket);

        bind(ANY_PORT.parse().unwrap(), Stack::Dual, 1, &mut inherited).unwrap();

        assert_eq!(inherited.unused().collect::<Vec<_>>(), [address]);
    }
}
