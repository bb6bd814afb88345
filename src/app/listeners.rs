//! The listeners for requests, which come and go with the configuration.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tracing::error;

use super::sockets::{BoundSockets, InheritedSockets, bind, set_mode};
use super::workers::Workers;
use crate::admin;
use crate::admin::AdminState;
use crate::app::start::ListenError;
use crate::listen::tls::NameExpiries;
use crate::listen::{
    AcceptStopper, Connections, ListenAddress, ListenerConfig, ListenerRuntime, ListenerSettings, ListenerState,
    ListeningSocket, ServesChange, SocketFile, Stack,
};

/// The listeners in force, in the order of the configuration.
#[derive(Debug, Default)]
pub struct Listeners(Vec<Listener>);

#[derive(Debug)]
struct Listener {
    configured: ListenAddress,
    address: ListenAddress,
    state: Arc<ListenerState>,
    stopper: AcceptStopper,
    /// Kept to be handed to a process that takes over.
    sockets: Vec<ListeningSocket>,
    /// The file of a Unix socket, which goes when the listener does.
    file: Option<SocketFile>,
}

/// The changes of a new configuration to the listeners. Its sockets are bound already, so none of them can fail any
/// more.
#[derive(Debug)]
pub struct ListenerPlan {
    /// One for each address of the new configuration, in order.
    actions: Vec<ListenerAction>,
}

#[derive(Debug)]
enum ListenerAction {
    /// The listener with that address stays.
    Keep(ListenAddress, ListenerRuntime),
    Open(BoundListener),
}

/// Sockets on one address, not yet served, with the settings of the listener.
#[derive(Debug)]
pub(super) struct BoundListener {
    bound: BoundSockets,
    runtime: ListenerRuntime,
}

impl BoundListener {
    /// With the real port where the configuration says 0.
    pub(super) fn address(&self) -> &ListenAddress {
        &self.bound.address
    }

    /// Every address, or none.
    pub(super) fn prepare_all(
        listeners: Vec<ListenerConfig>,
        cores: usize,
        inherited: &mut InheritedSockets,
    ) -> Result<Vec<Self>, ListenError> {
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
    ) -> Result<Self, ListenError> {
        let ListenerConfig { address, mode, settings } = listener;
        let runtime = prepare_runtime(&address, settings, None)?;
        Ok(Self { bound: bind(&address, stack, mode, cores, inherited)?, runtime })
    }
}

/// Whether each listener accepts IPv4 too. `[::]` does, unless an IPv4 address with the same port is configured beside it.
fn stacks(listeners: &[ListenerConfig]) -> Vec<Stack> {
    let addresses = || listeners.iter().map(|listener| listener.address.ip());
    let is_beside = |port: u16, other: SocketAddr| other.is_ipv4() && other.port() == port && port != 0;
    let has_beside = |port| addresses().flatten().any(|other| is_beside(port, other));
    let is_single = |address: Option<SocketAddr>| address.is_some_and(|address| has_beside(address.port()));
    addresses().map(|address| if is_single(address) { Stack::Single } else { Stack::Dual }).collect()
}

/// Prepares what new connections to an address need, such as TLS.
fn prepare_runtime(
    address: &ListenAddress,
    settings: ListenerSettings,
    before: Option<&ListenerState>,
) -> Result<ListenerRuntime, ListenError> {
    ListenerRuntime::prepare(settings, before).map_err(|source| ListenError::Tls { address: address.clone(), source })
}

/// The changes of a new configuration, by address.
#[derive(Debug, Default)]
pub struct ListenerChanges {
    pub opened: Vec<ListenAddress>,
    pub closed: Vec<ListenAddress>,
    /// Whether new connections need a PROXY header from now on, where that has changed.
    pub proxy_protocol: Vec<(ListenAddress, bool)>,
    /// The new purpose of new connections, if it has changed.
    pub serves: Vec<(ListenAddress, ServesChange)>,
    /// Where the TLS of new connections has changed, was added or was removed.
    pub tls: Vec<ListenAddress>,
}

impl Listeners {
    pub fn addresses(&self) -> Vec<ListenAddress> {
        self.0.iter().map(|listener| listener.address.clone()).collect()
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
        let BoundListener { bound: BoundSockets { configured, address, sockets, file }, runtime } = listener;
        let stopper = AcceptStopper::default();
        let state = Arc::new(ListenerState::new(runtime, all.part()));
        if let Err(error) = workers.serve(&sockets, &address, &state, &stopper) {
            error!(%address, %error, "not every core accepts connections on {address}: {error}");
        }
        self.0.push(Listener { configured, address, state, stopper, sockets, file });
    }

    /// Duplicates the sockets, for another process.
    pub(super) fn cloned_sockets(&self) -> io::Result<Vec<(ListenAddress, Vec<ListeningSocket>)>> {
        let cloned = |listener: &Listener| {
            let sockets = listener.sockets.iter().map(ListeningSocket::try_clone);
            Ok((listener.configured.clone(), sockets.collect::<io::Result<_>>()?))
        };
        self.0.iter().map(cloned).collect()
    }

    /// The files of Unix sockets, for a process that takes over.
    pub(super) fn files(&self) -> Vec<SocketFile> {
        self.0.iter().filter_map(|listener| listener.file.clone()).collect()
    }

    /// Binds the addresses of `wanted` that have no listener yet.
    pub(super) fn prepare(&self, wanted: Vec<ListenerConfig>, workers: &Workers) -> Result<ListenerPlan, ListenError> {
        let mut existing: Vec<&Listener> = self.0.iter().collect();
        let stacks = stacks(&wanted);
        let actions = wanted.into_iter().zip(stacks).map(|(config, stack)| {
            // Port 0 may be configured several times, each time for another port.
            let found = existing.iter().position(|listener| listener.configured == config.address);
            let Some(found) = found.map(|found| existing.remove(found)) else {
                let nothing = &mut InheritedSockets::default();
                return BoundListener::prepare(config, stack, workers.count(), nothing).map(ListenerAction::Open);
            };
            let runtime = prepare_runtime(&config.address, config.settings, Some(&found.state))?;
            set_mode(&config.address, config.mode)?;
            Ok(ListenerAction::Keep(config.address, runtime))
        });
        Ok(ListenerPlan { actions: actions.collect::<Result<_, _>>()? })
    }

    /// Serves new listeners, lets removed ones finish, and applies new settings to new connections of the others. What a
    /// listener has served otherwise is finished as well.
    pub(super) fn apply(&mut self, plan: ListenerPlan, workers: &Workers, all: &Connections) -> ListenerChanges {
        let mut changes = ListenerChanges::default();
        let mut existing = std::mem::take(&mut self.0);
        for action in plan.actions {
            match action {
                ListenerAction::Open(listener) => {
                    changes.opened.push(listener.bound.address.clone());
                    self.serve(listener, workers, all);
                }
                ListenerAction::Keep(configured, runtime) => {
                    let Some(found) = existing.iter().position(|listener| listener.configured == configured) else {
                        continue;
                    };
                    let listener = existing.remove(found);
                    let updated = listener.state.change(runtime);
                    changes
                        .proxy_protocol
                        .extend(updated.proxy_protocol.map(|required| (listener.address.clone(), required)));
                    if let Some((change, before)) = updated.serves {
                        changes.serves.push((listener.address.clone(), change));
                        // A peer that may ask no longer gets no further answer.
                        tokio::spawn(async move { before.drain().await });
                    }
                    changes.tls.extend(updated.tls.then(|| listener.address.clone()));
                    self.0.push(listener);
                }
            }
        }
        changes.closed = existing.into_iter().map(Listener::close).collect();
        changes
    }

    /// Stops accepting everywhere; returns when every connection that waited in an accept queue was accepted.
    pub(super) async fn close(&mut self) {
        for listener in &mut self.0 {
            listener.stop_listening();
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
    /// Accepts nothing more, and lets requests under way finish, however long they take: only the end of the process cuts
    /// them.
    fn close(mut self) -> ListenAddress {
        self.stop_listening();
        self.stopper.close();
        let Self { address, state, stopper, .. } = self;
        // Its connections may last for days, and need nothing else of it.
        let connections = state.connections().clone();
        tokio::spawn(async move {
            stopper.ended().await;
            connections.retire().await;
        });
        address
    }

    fn stop_listening(&mut self) {
        self.sockets.clear();
        if let Some(file) = self.file.take() {
            file.remove();
        }
    }
}

// The admin listener: its sockets, and the tasks that accept on them.

pub(super) struct AdminListener {
    /// The address as configured.
    pub(super) configured: ListenAddress,
    /// The address as bound: with the chosen port if the configuration says 0.
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

    /// Duplicates the sockets, for another process.
    pub(super) fn cloned_sockets(&self) -> io::Result<(ListenAddress, Vec<ListeningSocket>)> {
        let sockets = self.sockets.iter().map(ListeningSocket::try_clone).collect::<io::Result<_>>()?;
        Ok((self.configured.clone(), sockets))
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
                mode: None,
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
