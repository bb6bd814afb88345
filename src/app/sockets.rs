//! Listening sockets: opened here, or open before this process began.

use std::io;
use std::net::SocketAddr;
use std::net::TcpListener;

use tracing::warn;

use super::StartError;
use crate::listen;
use crate::listen::Stack;

/// Sockets on one address, not yet served.
#[derive(Debug)]
pub struct Bound {
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
    inherited: &mut Inherited,
) -> Result<Bound, StartError> {
    let failed = |source| StartError::Bind { address: configured, source };
    let sockets = match inherited.take(configured) {
        Some(sockets) => sockets,
        None => listen::bind(configured, stack, count).map_err(failed)?,
    };
    let address = match sockets.first() {
        Some(socket) => socket.local_addr().map_err(failed)?,
        None => configured,
    };
    Ok(Bound { configured, address, sockets })
}

/// Sockets of a process before this one, or of the service manager.
#[derive(Debug, Default)]
pub struct Inherited(Vec<Open>);

/// Sockets that share an address.
#[derive(Debug)]
struct Open {
    /// As it was configured, or else as it is.
    configured: SocketAddr,
    address: SocketAddr,
    sockets: Vec<TcpListener>,
}

impl Inherited {
    /// One more socket, which its owner knew as `configured`; one that is of no use is told of.
    pub(super) fn add(&mut self, configured: Option<SocketAddr>, socket: TcpListener) {
        let adopted = socket.local_addr().and_then(|address| Ok((address, listen::adopt(socket)?)));
        let (address, socket) = match adopted {
            Ok(adopted) => adopted,
            Err(error) => return warn!(%error, "a socket that was handed over is not used: {error}"),
        };
        let configured = configured.unwrap_or(address);
        match self.0.iter_mut().find(|open| (open.configured, open.address) == (configured, address)) {
            Some(open) => open.sockets.push(socket),
            None => self.0.push(Open { configured, address, sockets: vec![socket] }),
        }
    }

    /// Those on this address, if there are any.
    fn take(&mut self, wanted: SocketAddr) -> Option<Vec<TcpListener>> {
        let at = self.0.iter().position(|open| open.configured == wanted || open.address == wanted)?;
        Some(self.0.remove(at).sockets)
    }

    /// The addresses that nobody wanted.
    pub(super) fn left(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|open| open.address)
    }
}

/// What an operator can do something about, in words; anything else as the system says it.
pub(super) fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is already in use".to_owned(),
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has that address".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied; ports below 1024 need a privilege".to_owned(),
        _ => error.to_string(),
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
        let mut inherited = Inherited::default();
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
        let mut inherited = Inherited::default();
        let configured = ANY_PORT.parse().unwrap();
        inherited.add(Some(configured), socket);

        let bound = bind(configured, Stack::Dual, 1, &mut inherited).unwrap();

        assert_eq!((bound.configured, bound.address), (configured, address));
    }

    #[test]
    fn what_nobody_wants_is_left() {
        let (address, socket) = open();
        let mut inherited = Inherited::default();
        inherited.add(None, socket);

        bind(ANY_PORT.parse().unwrap(), Stack::Dual, 1, &mut inherited).unwrap();

        assert_eq!(inherited.left().collect::<Vec<_>>(), [address]);
    }
}
