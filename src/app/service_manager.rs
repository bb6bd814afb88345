//! The service manager (systemd): the sockets it has opened for this process, readiness and the watchdog. Without a service
//! manager nothing of this happens.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::process;

use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::time;
use tracing::error;
use tracing::warn;

use super::sockets::InheritedSockets;
use super::workers::WorkerProbe;

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
fn address(manager: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = manager.as_bytes().strip_prefix(b"@") {
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(manager)
}
