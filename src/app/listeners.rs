//! The listeners for requests, which come and go with the configuration.

use std::io;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tracing::error;

use super::sockets::BoundSockets;
use super::sockets::InheritedSockets;
use super::sockets::bind;
use super::start_error::StartError;
use super::workers::Workers;
use crate::listen::AcceptStopper;
use crate::listen::Connections;
use crate::listen::ListenerConfig;
use crate::listen::ListenerRuntime;
use crate::listen::ListenerSettings;
use crate::listen::ListenerState;
use crate::listen::ServesChange;
use crate::listen::Stack;
use crate::listen::tls::NameExpiries;

/// The listeners in force, in the order of the configuration.
#[derive(Debug, Default)]
pub struct Listeners(Vec<Listener>);

#[derive(Debug)]
struct Listener {
    configured: SocketAddr,
    address: SocketAddr,
    state: Arc<ListenerState>,
    stopper: AcceptStopper,
    /// Kept to be handed to a process that takes over.
    sockets: Vec<TcpListener>,
}

/// What a new configuration does with the listeners. Its sockets are bound already, so nothing of it can fail any more.
#[derive(Debug)]
pub struct ListenerPlan {
    /// One for each address of the new configuration, in order.
    actions: Vec<ListenerAction>,
}

#[derive(Debug)]
enum ListenerAction {
    /// The listener with that address stays.
    Keep(SocketAddr, ListenerRuntime),
    Open(BoundListener),
}

/// Sockets on one address, not yet served, with the settings of the listener.
#[derive(Debug)]
pub(super) struct BoundListener {
    bound: BoundSockets,
    runtime: ListenerRuntime,
}

impl BoundListener {
    /// Every address, or none.
    pub(super) fn prepare_all(
        listeners: Vec<ListenerConfig>,
        cores: usize,
        inherited: &mut InheritedSockets,
    ) -> Result<Vec<Self>, StartError> {
        let stacks = stacks(&listeners);
        let prepare = |(listener, stack)| Self::prepare(listener, stack, cores, inherited);
        listeners.into_iter().zip(stacks).map(prepare).collect()
    }

    /// Takes inherited sockets over, or binds one for each core.
    fn prepare(
        listener: ListenerConfig,
        stack: Stack,
        cores: usize,
        inherited: &mut InheritedSockets,
    ) -> Result<Self, StartError> {
        let ListenerConfig { address, settings } = listener;
        let runtime = prepare_runtime(address, settings, None)?;
        Ok(Self { bound: bind(address, stack, cores, inherited)?, runtime })
    }
}

/// Whether each listener accepts IPv4 too. `[::]` does, unless an IPv4 address with the same port is configured beside it.
fn stacks(listeners: &[ListenerConfig]) -> Vec<Stack> {
    let is_beside = |port: u16, other: SocketAddr| other.is_ipv4() && other.port() == port && port != 0;
    let has_beside = |port| listeners.iter().any(|listener| is_beside(port, listener.address));
    let stack = |it: &ListenerConfig| if has_beside(it.address.port()) { Stack::Single } else { Stack::Dual };
    listeners.iter().map(stack).collect()
}

/// Prepares what new connections to an address need, such as TLS.
fn prepare_runtime(
    address: SocketAddr,
    settings: ListenerSettings,
    before: Option<&ListenerState>,
) -> Result<ListenerRuntime, StartError> {
    ListenerRuntime::prepare(settings, before).map_err(|source| StartError::Tls { address, source })
}

/// What a new configuration changed, by address.
#[derive(Debug, Default)]
pub struct ListenerChanges {
    pub opened: Vec<SocketAddr>,
    pub closed: Vec<SocketAddr>,
    /// Whether new connections need a PROXY header from now on, where that has changed.
    pub proxy_protocol: Vec<(SocketAddr, bool)>,
    /// What new connections are for from now on, where that has changed.
    pub serves: Vec<(SocketAddr, ServesChange)>,
    /// Where the TLS of new connections has changed, was added or was removed.
    pub tls: Vec<SocketAddr>,
}

impl Listeners {
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|listener| listener.address).collect()
    }

    /// When what clients are shown for each name ends.
    pub(super) fn name_expiries(&self) -> NameExpiries {
        let mut expiries = NameExpiries::default();
        for listener in &self.0 {
            expiries.merge(&listener.state.name_expiries());
        }
        expiries
    }

    /// Accepts connections on new sockets; `all` are the connections of the process.
    pub(super) fn serve_all(&mut self, listeners: Vec<BoundListener>, workers: &Workers, all: &Connections) {
        for listener in listeners {
            self.serve(listener, workers, all);
        }
    }

    fn serve(&mut self, listener: BoundListener, workers: &Workers, all: &Connections) {
        let BoundListener { bound: BoundSockets { configured, address, sockets }, runtime } = listener;
        let stopper = AcceptStopper::default();
        let state = Arc::new(ListenerState::new(runtime, all.part()));
        if let Err(error) = workers.serve(&sockets, &state, &stopper) {
            error!(%address, %error, "not every core accepts connections on {address}: {error}");
        }
        self.0.push(Listener { configured, address, state, stopper, sockets });
    }

    /// The same sockets once more, for another process.
    pub(super) fn cloned_sockets(&self) -> io::Result<Vec<(SocketAddr, Vec<TcpListener>)>> {
        let cloned = |listener: &Listener| {
            let sockets = listener.sockets.iter().map(TcpListener::try_clone);
            Ok((listener.configured, sockets.collect::<io::Result<_>>()?))
        };
        self.0.iter().map(cloned).collect()
    }

    /// Binds the addresses of `wanted` that have no listener yet.
    pub(super) fn prepare(&self, wanted: Vec<ListenerConfig>, workers: &Workers) -> Result<ListenerPlan, StartError> {
        let mut existing: Vec<&Listener> = self.0.iter().collect();
        let stacks = stacks(&wanted);
        let actions = wanted.into_iter().zip(stacks).map(|(config, stack)| {
            // Port 0 may be configured several times, each time for another port.
            let found = existing.iter().position(|listener| listener.configured == config.address);
            let Some(found) = found.map(|found| existing.remove(found)) else {
                let nothing = &mut InheritedSockets::default();
                return BoundListener::prepare(config, stack, workers.count(), nothing).map(ListenerAction::Open);
            };
            let runtime = prepare_runtime(config.address, config.settings, Some(&found.state))?;
            Ok(ListenerAction::Keep(config.address, runtime))
        });
        Ok(ListenerPlan { actions: actions.collect::<Result<_, _>>()? })
    }

    /// Serves new listeners, drains removed ones within `drain`, and applies new settings to new connections of the others. What
    /// a listener has served otherwise is drained as well.
    pub(super) fn apply(
        &mut self,
        plan: ListenerPlan,
        workers: &Workers,
        all: &Connections,
        drain: Duration,
    ) -> ListenerChanges {
        let mut changes = ListenerChanges::default();
        let mut existing = std::mem::take(&mut self.0);
        for action in plan.actions {
            match action {
                ListenerAction::Open(listener) => {
                    changes.opened.push(listener.bound.address);
                    self.serve(listener, workers, all);
                }
                ListenerAction::Keep(configured, runtime) => {
                    let Some(found) = existing.iter().position(|listener| listener.configured == configured) else {
                        continue;
                    };
                    let listener = existing.remove(found);
                    let updated = listener.state.change(runtime);
                    changes.proxy_protocol.extend(updated.proxy_protocol.map(|required| (listener.address, required)));
                    if let Some((change, before)) = updated.serves {
                        changes.serves.push((listener.address, change));
                        // A peer that may ask no longer gets no further answer.
                        tokio::spawn(async move { end(&before, before.drain(), drain).await });
                    }
                    changes.tls.extend(updated.tls.then_some(listener.address));
                    self.0.push(listener);
                }
            }
        }
        changes.closed = existing.into_iter().map(|gone| gone.close(drain)).collect();
        changes
    }

    /// Stops accepting everywhere; returns when every connection that waited in an accept queue was accepted.
    pub(super) async fn close(&mut self) {
        for listener in &mut self.0 {
            listener.sockets.clear();
            listener.stopper.close();
        }
        for listener in &self.0 {
            listener.stopper.ended().await;
        }
    }

    /// Stops accepting everywhere, and leaves the accept queues to another process that has the same sockets.
    pub(super) fn leave(&mut self) {
        for listener in &mut self.0 {
            listener.stopper.hand_over();
            listener.sockets.clear();
        }
    }
}

impl Listener {
    /// Accepts nothing more, and lets requests under way finish.
    fn close(mut self, drain: Duration) -> SocketAddr {
        self.sockets.clear();
        self.stopper.close();
        tokio::spawn(async move {
            self.stopper.ended().await;
            let connections = self.state.connections();
            end(connections, connections.retire(), drain).await;
        });
        self.address
    }
}

/// Lets connections end by themselves for so long, and then cuts them.
async fn end(connections: &Connections, ending: impl Future<Output = ()>, within: Duration) {
    if time::timeout(within, ending).await.is_err() {
        connections.cut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_accepts_ipv4_that_has_no_listener_of_its_own() {
        let stacks = |addresses: &[&str]| {
            let listener = |address: &&str| ListenerConfig {
                address: address.parse().unwrap(),
                settings: ListenerSettings::default(),
            };
            stacks(&addresses.iter().map(listener).collect::<Vec<_>>())
        };
        assert_eq!(stacks(&["[::]:80"]), [Stack::Dual]);
        assert_eq!(stacks(&["[::]:80", "0.0.0.0:80"]), [Stack::Single; 2]);
        assert_eq!(stacks(&["[::]:80", "127.0.0.1:80", "[::]:443"]), [Stack::Single, Stack::Single, Stack::Dual]);
        // Each port 0 becomes another port.
        assert_eq!(stacks(&["[::]:0", "0.0.0.0:0"]), [Stack::Dual; 2]);
    }
}
