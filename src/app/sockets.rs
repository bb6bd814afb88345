//! Listening sockets: bound by this process, or inherited from another one.

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::{env, io, process};

use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::time;
use tracing::{error, warn};

use crate::app::start::ListenError;
use crate::app::workers::WorkerProbe;
use crate::listen;
use crate::listen::{ListenAddress, ListenerConfig, ListeningSocket, SocketFile, Stack};

/// Sockets on one address, not yet served.
#[derive(Debug)]
pub struct BoundSockets {
    /// The address as configured.
    pub configured: ListenAddress,
    /// The address as bound: with the chosen port if the configuration says 0.
    pub address: ListenAddress,
    pub sockets: Vec<ListeningSocket>,
    /// The file of a Unix socket, which goes when the listener does. `None`: the service manager's stay.
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
) -> Result<BoundSockets, ListenError> {
    let bound = match inherited.take(configured) {
        Some(InheritedAddress { address, sockets, file, .. }) => {
            set_mode(&address, mode)?;
            BoundSockets { configured: configured.clone(), address, sockets, file }
        }
        None => open(configured, stack, mode, count)
            .map_err(|source| ListenError::Bind { address: configured.clone(), source })?,
    };
    Ok(bound)
}

/// Binds the admin listener, which one core serves.
pub(super) fn bind_admin(
    configured: SocketAddr,
    inherited: &mut InheritedSockets,
) -> Result<BoundSockets, ListenError> {
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
            let (socket, file) = listen::bind_unix(path, mode.unwrap_or(ListenerConfig::MODE))?;
            (configured.clone(), vec![ListeningSocket::Unix(socket)], Some(file))
        }
    };
    Ok(BoundSockets { configured: configured.clone(), address, sockets, file })
}

/// Gives the file of a Unix socket another mode, if one is configured.
pub(super) fn set_mode(address: &ListenAddress, mode: Option<u32>) -> Result<(), ListenError> {
    let (ListenAddress::UnixSocket(path), Some(mode)) = (address, mode) else { return Ok(()) };
    listen::set_mode(path, mode).map_err(|source| ListenError::Mode { address: address.clone(), source })
}

/// Sockets that the previous process or the service manager handed to this one.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<InheritedAddress>);

/// Sockets that share an address.
#[derive(Debug)]
struct InheritedAddress {
    /// The address as configured in the previous process; from the service manager, as bound.
    configured: ListenAddress,
    address: ListenAddress,
    sockets: Vec<ListeningSocket>,
    /// The file of a Unix socket that the previous process would have removed.
    file: Option<SocketFile>,
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
            None => self.0.push(InheritedAddress { configured, address, sockets: vec![socket], file: None }),
        }
    }

    /// Adds the file of a socket that was added before.
    pub(super) fn add_file(&mut self, file: SocketFile) {
        if let Some(known) = self.0.iter_mut().find(|known| file.is_of(&known.address)) {
            known.file = Some(file);
        }
    }

    /// Takes the sockets of this address, if there are any.
    fn take(&mut self, wanted: &ListenAddress) -> Option<InheritedAddress> {
        let found = self.0.iter().position(|known| known.configured == *wanted || known.address == *wanted)?;
        Some(self.0.remove(found))
    }

    /// Removes the files of sockets that the configuration does not listen on.
    pub(super) fn remove_unused_files(&self) {
        self.0.iter().filter_map(|known| known.file.as_ref()).for_each(SocketFile::remove);
    }

    /// The addresses that the configuration does not listen on.
    pub(super) fn unused(&self) -> impl Iterator<Item = &ListenAddress> {
        self.0.iter().map(|known| &known.address)
    }
}

// The service manager (systemd): the sockets it has opened for this process, readiness and the watchdog. Without a service
// manager nothing of this happens.

/// The descriptors that the service manager has opened for this process. To be called once, before there are threads.
pub(super) fn opened_descriptors() -> ListenFd {
    // With another process number they are for the process that has started this one.
    let is_ours = env::var("LISTEN_PID").is_ok_and(|process| process == process::id().to_string());
    if is_ours { ListenFd::from_env() } else { ListenFd::empty() }
}

/// The listening sockets among `opened`. A descriptor that cannot be used is logged.
pub(super) fn sockets(mut opened: ListenFd) -> InheritedSockets {
    let mut inherited = InheritedSockets::default();
    for number in 0..opened.len() {
        let tcp = opened.take_tcp_listener(number).map(|socket| socket.map(OwnedFd::from));
        let socket = tcp.or_else(|_| opened.take_unix_listener(number).map(|socket| socket.map(OwnedFd::from)));
        match socket {
            Ok(Some(socket)) => inherited.add(None, socket),
            Ok(None) => {}
            Err(error) => warn!(%error, "cannot use a socket of the service manager: {error}"),
        }
    }
    inherited
}

/// Requests are answered. After a takeover the service manager follows this process from here on.
pub(super) fn ready(took_over: bool) {
    if took_over {
        notify(&[NotifyState::MainPid(process::id()), NotifyState::Ready]);
    } else {
        notify(&[NotifyState::Ready]);
    }
}

/// The configuration is read anew; [`ready`] says when that is done.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => warn!(%error, "cannot notify the service manager of the reload: {error}"),
    }
}

/// The process drains and ends.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Another process has taken over.
pub(super) fn taken_over_by(process: u32) {
    notify(&[NotifyState::MainPid(process)]);
}

/// Pings the watchdog as long as every worker answers. Returns at once without a watchdog.
pub(super) async fn run_watchdog(probe: WorkerProbe) {
    let Some(timeout) = sd_notify::watchdog_enabled().filter(|timeout| !timeout.is_zero()) else { return };
    let mut ticks = time::interval(timeout / 2);
    let mut is_well = true;
    loop {
        ticks.tick().await;
        match time::timeout(timeout / 2, probe.all_answered()).await {
            Ok(()) => {
                is_well = true;
                notify(&[NotifyState::Watchdog]);
            }
            Err(_) if is_well => {
                is_well = false;
                error!("worker unresponsive for {:?}: withholding the systemd watchdog ping", timeout / 2);
            }
            Err(_) => {}
        }
    }
}

fn notify(state: &[NotifyState<'_>]) {
    let Some(manager) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return };
    let lines: Vec<String> = state.iter().map(NotifyState::to_string).collect();
    if let Err(error) = send(&manager, &lines.join("\n")) {
        warn!(%error, "cannot notify the service manager: {error}");
    }
}

/// Does not wait for a service manager that does not read: clients would have to wait too.
fn send(manager: &OsStr, message: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(message.as_bytes(), &address(manager)?).map(drop)
}

/// A name that begins with `@` is in the abstract namespace, in no file system.
fn address(manager: &OsStr) -> io::Result<std::os::unix::net::SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = manager.as_bytes().strip_prefix(b"@") {
        return std::os::unix::net::SocketAddr::from_abstract_name(name);
    }
    std::os::unix::net::SocketAddr::from_pathname(manager)
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

    #[test]
    fn the_file_of_a_unix_socket_goes_with_it_unless_the_service_manager_has_made_it() {
        for is_of_gateway in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path: std::sync::Arc<str> = folder.path().join("gateway.sock").to_str().unwrap().into();
            let (socket, file) = listen::bind_unix(&path, ListenerConfig::MODE).unwrap();
            let mut inherited = InheritedSockets::default();
            inherited.add(None, socket.into());
            if is_of_gateway {
                inherited.add_file(file.to_string().parse().unwrap());
            }

            inherited.remove_unused_files();
            assert_eq!(std::path::Path::new(&*path).exists(), !is_of_gateway);

            let bound = bind_any(&ListenAddress::UnixSocket(path), 1, &mut inherited);
            assert_eq!(bound.file, is_of_gateway.then_some(file));
        }
    }
}
