//! The service manager (systemd): sockets that it has opened, and what it is told. Without one nothing of this happens.

use std::env;
use std::ffi::OsStr;
use std::io;
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

use super::sockets::Inherited;
use super::workers::Pulse;

/// The descriptors that it has opened for this process. To be called once, before there are threads.
pub(super) fn opened() -> ListenFd {
    // Without its number they are not for this process, but for the one that has started it.
    let is_ours = env::var("LISTEN_PID").is_ok_and(|process| process == process::id().to_string());
    if is_ours { ListenFd::from_env() } else { ListenFd::empty() }
}

/// Those of them that are listening sockets; others are told of.
pub(super) fn sockets(mut opened: ListenFd) -> Inherited {
    let mut inherited = Inherited::default();
    for number in 0..opened.len() {
        match opened.take_tcp_listener(number) {
            Ok(Some(socket)) => inherited.add(None, socket),
            Ok(None) => {}
            Err(error) => warn!(%error, "a socket of the service manager is not used: {error}"),
        }
    }
    inherited
}

/// Requests are answered. A process that took over is the one that counts from here on.
pub(super) fn ready(took_over: bool) {
    if took_over {
        tell(&[NotifyState::MainPid(process::id()), NotifyState::Ready]);
    } else {
        tell(&[NotifyState::Ready]);
    }
}

/// The configuration is read anew; [`ready`] says when that is done.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => warn!(%error, "cannot tell the service manager of the reload: {error}"),
    }
}

/// Nothing more is accepted, and the end is near.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Another process goes on.
pub(super) fn succeeded_by(process: u32) {
    tell(&[NotifyState::MainPid(process)]);
}

/// Tells, as often as is wanted, that every core still serves. Returns at once when nobody wants to know.
pub(super) async fn reassure(pulse: Pulse) {
    let Some(patience) = sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero()) else { return };
    let mut beat = time::interval(patience / 2);
    let mut is_well = true;
    loop {
        beat.tick().await;
        match time::timeout(patience / 2, pulse.feel()).await {
            Ok(()) => {
                is_well = true;
                tell(&[NotifyState::Watchdog]);
            }
            Err(_) if is_well => {
                is_well = false;
                error!("a core has not answered for {:?}, the service manager is not reassured", patience / 2);
            }
            Err(_) => {}
        }
    }
}

fn tell(state: &[NotifyState<'_>]) {
    let Some(manager) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return };
    let lines: Vec<String> = state.iter().map(NotifyState::to_string).collect();
    if let Err(error) = send(&manager, &lines.join("\n")) {
        warn!(%error, "cannot tell the service manager: {error}");
    }
}

/// Whoever does not read what it is told is not waited for: clients are.
fn send(manager: &OsStr, message: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(message.as_bytes(), &address(manager)?).map(drop)
}

/// What begins with `@` is a name in no file system.
fn address(manager: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = manager.as_bytes().strip_prefix(b"@") {
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(manager)
}
