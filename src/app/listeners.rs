//! The addresses that are served: they come and go with the configuration.

use std::io;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tracing::error;

use super::StartError;
use super::sockets::Bound;
use super::sockets::Inherited;
use super::sockets::bind;
use super::workers::Workers;
use crate::listen::Connections;
use crate::listen::Door;
use crate::listen::Entrance;
use crate::listen::Reception;
use crate::listen::Stack;
use crate::listen::Stopper;
use crate::listen::Terms;

/// What is served, in the order it was configured.
#[derive(Debug, Default)]
pub struct Listeners(Vec<Listener>);

#[derive(Debug)]
struct Listener {
    configured: SocketAddr,
    address: SocketAddr,
    door: Arc<Door>,
    /// Those accepted here.
    connections: Connections,
    stopper: Stopper,
    /// Kept to be handed to a process that takes over.
    sockets: Vec<TcpListener>,
}

/// What a new configuration changes, bound already: nothing of it can fail any more.
#[derive(Debug)]
pub struct Turnover {
    /// One for each address that is wanted, in order.
    next: Vec<Next>,
}

#[derive(Debug)]
enum Next {
    /// The listener with that address stays.
    Stays(SocketAddr, Reception),
    Opens(Opening),
}

/// Sockets on one address, not yet served, and what will be asked there.
#[derive(Debug)]
pub(super) struct Opening {
    bound: Bound,
    reception: Reception,
}

impl Opening {
    /// Every address, or none.
    pub(super) fn prepare_all(
        entrances: Vec<Entrance>,
        cores: usize,
        inherited: &mut Inherited,
    ) -> Result<Vec<Self>, StartError> {
        let stacks = stacks(&entrances);
        let prepare = |(entrance, stack)| Self::prepare(entrance, stack, cores, inherited);
        entrances.into_iter().zip(stacks).map(prepare).collect()
    }

    /// Takes over or binds an address on as many cores.
    fn prepare(entrance: Entrance, stack: Stack, cores: usize, inherited: &mut Inherited) -> Result<Self, StartError> {
        let Entrance { address, terms } = entrance;
        let reception = receive(address, terms, None)?;
        Ok(Self { bound: bind(address, stack, cores, inherited)?, reception })
    }
}

/// Of each of these: `[::]` takes IPv4 in, too, but not from an address of IPv4 beside it with the same port.
fn stacks(entrances: &[Entrance]) -> Vec<Stack> {
    let is_beside = |port: u16, other: SocketAddr| other.is_ipv4() && other.port() == port && port != 0;
    let has_beside = |port| entrances.iter().any(|entrance| is_beside(port, entrance.address));
    let stack = |it: &Entrance| if has_beside(it.address.port()) { Stack::Single } else { Stack::Dual };
    entrances.iter().map(stack).collect()
}

/// Makes ready what is asked at an address.
fn receive(address: SocketAddr, terms: Terms, before: Option<&Door>) -> Result<Reception, StartError> {
    Reception::prepare(terms, before).map_err(|source| StartError::Tls { address, source })
}

/// What came of a turnover, by address.
#[derive(Debug, Default)]
pub struct Turned {
    pub opened: Vec<SocketAddr>,
    pub closed: Vec<SocketAddr>,
    /// New connections need a PROXY header from now on, or must not have one any more.
    pub proxy_protocol: Vec<(SocketAddr, bool)>,
    /// New connections find other TLS, or TLS where there was none, or none any more.
    pub tls: Vec<SocketAddr>,
}

impl Listeners {
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|listener| listener.address).collect()
    }

    /// Accepts from new sockets; `all` are the connections of the process.
    pub(super) fn serve_all(&mut self, openings: Vec<Opening>, workers: &Workers, all: &Connections) {
        for opening in openings {
            self.serve(opening, workers, all);
        }
    }

    fn serve(&mut self, opening: Opening, workers: &Workers, all: &Connections) {
        let Opening { bound: Bound { configured, address, sockets }, reception } = opening;
        let (connections, stopper) = (all.of_listener(), Stopper::default());
        let door = Arc::new(Door::new(reception));
        if let Err(error) = workers.serve(&sockets, &door, &connections, &stopper) {
            error!(%address, %error, "not every core accepts connections on {address}: {error}");
        }
        self.0.push(Listener { configured, address, door, connections, stopper, sockets });
    }

    /// The same sockets once more, for another process.
    pub(super) fn offer(&self) -> io::Result<Vec<(SocketAddr, Vec<TcpListener>)>> {
        let offered = |listener: &Listener| {
            let sockets = listener.sockets.iter().map(TcpListener::try_clone);
            Ok((listener.configured, sockets.collect::<io::Result<_>>()?))
        };
        self.0.iter().map(offered).collect()
    }

    /// Binds what `wanted` has and this has not.
    pub(super) fn prepare(&self, wanted: Vec<Entrance>, workers: &Workers) -> Result<Turnover, StartError> {
        let mut standing: Vec<&Listener> = self.0.iter().collect();
        let stacks = stacks(&wanted);
        let next = wanted.into_iter().zip(stacks).map(|(entrance, stack)| {
            // One with port 0 may be there several times, each is another port.
            let found = standing.iter().position(|listener| listener.configured == entrance.address);
            let Some(found) = found.map(|found| standing.remove(found)) else {
                let nothing = &mut Inherited::default();
                return Opening::prepare(entrance, stack, workers.count(), nothing).map(Next::Opens);
            };
            let reception = receive(entrance.address, entrance.terms, Some(&found.door))?;
            Ok(Next::Stays(entrance.address, reception))
        });
        Ok(Turnover { next: next.collect::<Result<_, _>>()? })
    }

    /// Serves what is new, drains what is gone, `drain` long, and asks of new connections what is wanted now.
    pub(super) fn turn_over(
        &mut self,
        turnover: Turnover,
        workers: &Workers,
        all: &Connections,
        drain: Duration,
    ) -> Turned {
        let mut turned = Turned::default();
        let mut standing = std::mem::take(&mut self.0);
        for next in turnover.next {
            match next {
                Next::Opens(opening) => {
                    turned.opened.push(opening.bound.address);
                    self.serve(opening, workers, all);
                }
                Next::Stays(configured, reception) => {
                    let Some(found) = standing.iter().position(|listener| listener.configured == configured) else {
                        continue;
                    };
                    let listener = standing.remove(found);
                    let changed = listener.door.change(reception);
                    turned.proxy_protocol.extend(changed.proxy_protocol.map(|required| (listener.address, required)));
                    turned.tls.extend(changed.tls.then_some(listener.address));
                    self.0.push(listener);
                }
            }
        }
        turned.closed = standing.into_iter().map(|gone| gone.close(drain)).collect();
        turned
    }

    /// Stops accepting everywhere; returns when everybody who waited was taken in.
    pub(super) async fn close(&mut self) {
        for listener in &mut self.0 {
            listener.sockets.clear();
            listener.stopper.close();
        }
        for listener in &self.0 {
            listener.stopper.ended().await;
        }
    }

    /// Stops accepting everywhere, and leaves those who wait to another process that has the same sockets.
    pub(super) fn leave(&mut self) {
        for listener in &mut self.0 {
            listener.stopper.leave();
            listener.sockets.clear();
        }
    }
}

impl Listener {
    /// Accepts nothing more, and lets those who are connected finish what they are at.
    fn close(mut self, drain: Duration) -> SocketAddr {
        self.sockets.clear();
        self.stopper.close();
        tokio::spawn(async move {
            self.stopper.ended().await;
            if time::timeout(drain, self.connections.retire()).await.is_err() {
                self.connections.cut();
            }
        });
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_takes_in_ipv4_that_has_no_address_of_its_own() {
        let stacks = |addresses: &[&str]| {
            let entrance = |address: &&str| Entrance { address: address.parse().unwrap(), terms: Terms::default() };
            stacks(&addresses.iter().map(entrance).collect::<Vec<_>>())
        };
        assert_eq!(stacks(&["[::]:80"]), [Stack::Dual]);
        assert_eq!(stacks(&["[::]:80", "0.0.0.0:80"]), [Stack::Single; 2]);
        assert_eq!(stacks(&["[::]:80", "127.0.0.1:80", "[::]:443"]), [Stack::Single, Stack::Single, Stack::Dual]);
        // Each gets a port of its own.
        assert_eq!(stacks(&["[::]:0", "0.0.0.0:0"]), [Stack::Dual; 2]);
    }
}
