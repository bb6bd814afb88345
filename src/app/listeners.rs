//! The addresses that are served: they come and go with the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time;
use tokio_util::sync::CancellationToken;

use super::Bound;
use super::StartError;
use super::bind;
use super::workers::Workers;
use crate::listen::Connections;

/// What is served, in the order it was configured.
#[derive(Debug, Default)]
pub struct Listeners(Vec<Listener>);

#[derive(Debug)]
struct Listener {
    configured: SocketAddr,
    address: SocketAddr,
    /// Those accepted here.
    connections: Connections,
    stop: CancellationToken,
}

/// What a new configuration changes, bound already: nothing of it can fail any more.
#[derive(Debug)]
pub struct Turnover {
    wanted: Vec<SocketAddr>,
    bound: Vec<Bound>,
}

impl Listeners {
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|listener| listener.address).collect()
    }

    /// Accepts from new sockets; `all` are the connections of the process.
    pub(super) fn serve(&mut self, bound: Bound, workers: &Workers, all: &Connections) {
        let Bound { configured, address, sockets } = bound;
        let (connections, stop) = (all.of_listener(), CancellationToken::new());
        workers.serve(sockets, &connections, &stop);
        self.0.push(Listener { configured, address, connections, stop });
    }

    /// Binds what `wanted` has and this has not.
    pub(super) fn prepare(&self, wanted: &[SocketAddr], workers: &Workers) -> Result<Turnover, StartError> {
        let new = wanted.iter().filter(|address| !self.0.iter().any(|listener| listener.configured == **address));
        let bound = new.map(|address| bind(*address, workers.count())).collect::<Result<_, _>>()?;
        Ok(Turnover { wanted: wanted.to_vec(), bound })
    }

    /// Serves what is new and drains what is gone, `drain` long; returns the addresses of both.
    pub(super) fn turn_over(
        &mut self,
        turnover: Turnover,
        workers: &Workers,
        all: &Connections,
        drain: Duration,
    ) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let Turnover { wanted, bound } = turnover;
        let gone = self.0.extract_if(.., |listener| !wanted.contains(&listener.configured));
        let closed = gone.map(|listener| listener.close(drain)).collect();
        let opened = bound.iter().map(|bound| bound.address).collect();
        for bound in bound {
            self.serve(bound, workers, all);
        }
        self.0.sort_by_key(|listener| wanted.iter().position(|address| *address == listener.configured));
        (opened, closed)
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
