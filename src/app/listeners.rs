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
    wanted: Vec<Entrance>,
    bound: Vec<Bound>,
}

/// What came of a turnover, by address.
#[derive(Debug, Default)]
pub struct Turned {
    pub opened: Vec<SocketAddr>,
    pub closed: Vec<SocketAddr>,
    /// New connections need a PROXY header from now on, or must not have one any more.
    pub proxy_protocol: Vec<(SocketAddr, bool)>,
}

impl Listeners {
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|listener| listener.address).collect()
    }

    /// Accepts from new sockets; `all` are the connections of the process.
    pub(super) fn serve(&mut self, bound: Bound, terms: Terms, workers: &Workers, all: &Connections) {
        let Bound { configured, address, sockets } = bound;
        let (connections, stopper) = (all.of_listener(), Stopper::default());
        let door = Arc::new(Door::new(terms));
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
        let mut standing: Vec<SocketAddr> = self.0.iter().map(|listener| listener.configured).collect();
        let mut is_new = |wanted: &&Entrance| match standing.iter().position(|address| *address == wanted.address) {
            // One with port 0 may be there several times, each is another port.
            Some(found) => {
                standing.swap_remove(found);
                false
            }
            None => true,
        };
        let new = wanted.iter().filter(&mut is_new);
        let bound = new
            .map(|entrance| bind(entrance.address, workers.count(), &mut Inherited::default()))
            .collect::<Result<_, _>>()?;
        Ok(Turnover { wanted, bound })
    }

    /// Serves what is new, drains what is gone, `drain` long, and asks of new connections what is wanted now.
    pub(super) fn turn_over(
        &mut self,
        turnover: Turnover,
        workers: &Workers,
        all: &Connections,
        drain: Duration,
    ) -> Turned {
        let Turnover { wanted, bound } = turnover;
        let mut turned = Turned::default();
        let mut standing = std::mem::take(&mut self.0);
        let mut bound = bound.into_iter();
        for Entrance { address, terms } in wanted {
            if let Some(found) = standing.iter().position(|listener| listener.configured == address) {
                let listener = standing.remove(found);
                let is_required = terms.proxy_protocol.is_some();
                if listener.door.terms().proxy_protocol.is_some() != is_required {
                    turned.proxy_protocol.push((listener.address, is_required));
                }
                listener.door.change(terms);
                self.0.push(listener);
            } else if let Some(bound) = bound.next() {
                turned.opened.push(bound.address);
                self.serve(bound, terms, workers, all);
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
