//! The addresses that are served: they come and go with the configuration.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tokio_util::sync::CancellationToken;

use super::Bound;
use super::StartError;
use super::bind;
use super::workers::Workers;
use crate::listen::Connections;
use crate::listen::Door;
use crate::listen::Entrance;
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
    stop: CancellationToken,
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
        let (connections, stop) = (all.of_listener(), CancellationToken::new());
        let door = Arc::new(Door::new(terms));
        workers.serve(sockets, &door, &connections, &stop);
        self.0.push(Listener { configured, address, door, connections, stop });
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
        let bound = new.map(|entrance| bind(entrance.address, workers.count())).collect::<Result<_, _>>()?;
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

    /// Stops accepting everywhere.
    pub(super) fn close(&self) {
        for listener in &self.0 {
            listener.stop.cancel();
        }
    }
}

impl Listener {
    /// Accepts nothing more, and lets those who are connected finish what they are at.
    fn close(self, drain: Duration) -> SocketAddr {
        self.stop.cancel();
        tokio::spawn(async move {
            if time::timeout(drain, self.connections.drain()).await.is_err() {
                self.connections.cut();
            }
        });
        self.address
    }
}
