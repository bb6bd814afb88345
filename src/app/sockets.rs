//! Listening sockets: bound by this process, or inherited from another one.

use std::io;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::os::fd::OwnedFd;

use tracing::warn;

use super::start_error::StartError;
use crate::listen;
use crate::listen::ListenAddress;
use crate::listen::ListeningSocket;
use crate::listen::SocketFile;
use crate::listen::Stack;

/// Sockets on one address, not yet served.
#[derive(Debug)]
pub struct BoundSockets {
    /// As configured.
    pub configured: ListenAddress,
    /// With the port that was free, where the configuration says 0.
    pub address: ListenAddress,
    pub sockets: Vec<ListeningSocket>,
    /// The file of a Unix socket that this process has opened.
    pub file: Option<SocketFile>,
}

/// Takes over `configured` where it is open already; otherwise opens `count` sockets on it, or one Unix socket whose file has this
/// mode.
pub(super) fn bind(
    configured: &ListenAddress,
    stack: Stack,
    mode: Option<u32>,
    count: usize,
    inherited: &mut InheritedSockets,
) -> Result<BoundSockets, StartError> {
    let bound = match inherited.take(configured) {
        Some((address, sockets)) => {
            set_mode(&address, mode)?;
            BoundSockets { configured: configured.clone(), address, sockets, file: None }
        }
        None => open(configured, stack, mode, count)
            .map_err(|source| StartError::Bind { address: configured.clone(), source })?,
    };
    Ok(bound)
}

/// The same for the admin listener, which one core serves.
pub(super) fn bind_admin(configured: SocketAddr, inherited: &mut InheritedSockets) -> Result<BoundSockets, StartError> {
    bind(&configured.into(), Stack::Dual, None, 1, inherited)
}

fn open(configured: &ListenAddress, stack: Stack, mode: Option<u32>, count: usize) -> io::Result<BoundSockets> {
    let (address, sockets, file) = match configured {
        ListenAddress::Ip(wanted) => {
            let sockets = listen::bind(*wanted, stack, count)?;
            let address = sockets.first().map_or(Ok(*wanted), TcpListener::local_addr)?;
            (address.into(), sockets.into_iter().map(ListeningSocket::Tcp).collect(), None)
        }
        ListenAddress::UnixSocket(path) => {
            let (socket, file) = listen::bind_unix(path, mode.unwrap_or(DEFAULT_MODE))?;
            (configured.clone(), vec![ListeningSocket::Unix(socket)], Some(file))
        }
    };
    Ok(BoundSockets { configured: configured.clone(), address, sockets, file })
}

/// Gives the file of a Unix socket another mode, if one is configured.
pub(super) fn set_mode(address: &ListenAddress, mode: Option<u32>) -> Result<(), StartError> {
    let (ListenAddress::UnixSocket(path), Some(mode)) = (address, mode) else { return Ok(()) };
    listen::set_mode(path, mode).map_err(|source| StartError::Mode { address: address.clone(), source })
}

/// The gateway's user and group may connect.
const DEFAULT_MODE: u32 = 0o660;

/// Sockets that the previous process or the service manager handed to this one.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<InheritedAddress>);

/// Sockets that share an address.
#[derive(Debug)]
struct InheritedAddress {
    /// As the previous process had it configured; of the service manager, as bound.
    configured: ListenAddress,
    address: ListenAddress,
    sockets: Vec<ListeningSocket>,
}

impl InheritedSockets {
    /// Adds a socket, which its previous owner had configured as `configured`. A socket that cannot be used is logged.
    pub(super) fn add(&mut self, configured: Option<ListenAddress>, socket: OwnedFd) {
        let (address, socket) = match listen::adopt(socket) {
            Ok(adopted) => adopted,
            Err(error) => return warn!(%error, "cannot use a socket that was handed over: {error}"),
        };
        let configured = configured.unwrap_or_else(|| address.clone());
        match self.0.iter_mut().find(|known| known.configured == configured && known.address == address) {
            Some(known) => known.sockets.push(socket),
            None => self.0.push(InheritedAddress { configured, address, sockets: vec![socket] }),
        }
    }

    /// Takes the sockets of this address, if there are any. Returns where they are bound, too.
    fn take(&mut self, wanted: &ListenAddress) -> Option<(ListenAddress, Vec<ListeningSocket>)> {
        let found = self.0.iter().position(|known| known.configured == *wanted || known.address == *wanted)?;
        let InheritedAddress { address, sockets, .. } = self.0.remove(found);
        Some((address, sockets))
    }

    /// The addresses that the configuration does not listen on.
    pub(super) fn unused(&self) -> impl Iterator<Item = &ListenAddress> {
        self.0.iter().map(|known| &known.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY_PORT: &str = "127.0.0.1:0";

    fn listening() -> (ListenAddress, TcpListener) {
        let socket = TcpListener::bind(ANY_PORT).unwrap();
        (socket.local_addr().unwrap().into(), socket)
    }

    fn bind_any(configured: &ListenAddress, count: usize, inherited: &mut InheritedSockets) -> BoundSockets {
        bind(configured, Stack::Dual, None, count, inherited).unwrap()
    }

    #[test]
    fn every_socket_of_an_address_is_taken_over_and_others_are_opened() {
        let (address, first) = listening();
        let mut inherited = InheritedSockets::default();
        inherited.add(None, first.try_clone().unwrap().into());
        inherited.add(None, first.into());

        let bound = bind_any(&address, 1, &mut inherited);
        let new = bind_any(&ANY_PORT.parse().unwrap(), 3, &mut inherited);

        assert_eq!((&bound.address, bound.sockets.len()), (&address, 2));
        assert_eq!(new.sockets.len(), 3);
        assert_ne!(new.address, address);
    }

    #[test]
    fn a_port_that_was_left_open_is_known_by_what_was_configured() {
        let (address, socket) = listening();
        let mut inherited = InheritedSockets::default();
        let configured: ListenAddress = ANY_PORT.parse().unwrap();
        inherited.add(Some(configured.clone()), socket.into());

        let bound = bind_any(&configured, 1, &mut inherited);

        assert_eq!((bound.configured, bound.address), (configured, address));
    }

    #[test]
    fn a_socket_on_an_address_that_is_not_configured_stays_unused() {
        let (address, socket) = listening();
        let mut inherited = InheritedSockets::default();
        inherited.add(None, socket.into());

        bind_any(&ANY_PORT.parse().unwrap(), 1, &mut inherited);

        assert_eq!(inherited.unused().collect::<Vec<_>>(), [&address]);
    }
}
