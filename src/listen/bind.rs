//! Opens listening TCP sockets: one for each core on the same address, which no other process shares.

use std::fs::Permissions;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use rustix::fs::{Mode, fchmod};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

/// Connections that wait while the core is busy; the kernel caps it at `somaxconn`.
pub(super) const BACKLOG: i32 = 4096;

/// In bytes: what the kernel buffers of a response beyond what the network takes. Without it, the kernel would buffer
/// megabytes for a client that does not read.
const UNSENT: u32 = 128 * 1024;

/// Finds vanished clients of tunnels, which have no timeout of ours.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Which clients a socket on an IPv6 address accepts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stack {
    /// `[::]` accepts IPv4 too, unless the system is configured otherwise.
    Dual,
    /// IPv6 alone, because other sockets have the same port for IPv4.
    Single,
}

/// Opens `count` sockets on one address, each with its own accept queue. Fails if another process listens there. Port 0
/// is one free port for all of them.
pub fn bind(address: SocketAddr, stack: Stack, count: usize) -> io::Result<Vec<TcpListener>> {
    // Sockets with SO_REUSEPORT would also share the port with another process, which would get part of the connections.
    // A probe without it fails in that case, and finds the free port.
    let probe = socket(address, stack)?;
    probe.bind(&address.into())?;
    probe.listen(1)?;
    let bound = probe.local_addr()?.as_socket().unwrap_or(address);
    drop(probe);

    (0..count).map(|_| listener(bound, stack)).collect()
}

/// Takes a socket that another process has opened, and sets the same options as on ours. Returns where it listens, too.
pub fn adopt(socket: OwnedFd) -> io::Result<(ListenAddress, ListeningSocket)> {
    let socket = Socket::from(socket);
    let unusable =
        || io::Error::new(io::ErrorKind::InvalidInput, "it is not a listening TCP or Unix socket with a name");
    if socket.r#type()? != Type::STREAM || !socket.is_listener()? {
        return Err(unusable());
    }
    let address = socket.local_addr()?;
    if let Some(address) = address.as_socket() {
        prepare(&socket)?;
        return Ok((address.into(), ListeningSocket::Tcp(socket.into())));
    }
    let path = address.as_pathname().and_then(Path::to_str).ok_or_else(unusable)?;
    socket.set_nonblocking(true)?;
    Ok((ListenAddress::UnixSocket(path.into()), ListeningSocket::Unix(socket.into())))
}

fn listener(address: SocketAddr, stack: Stack) -> io::Result<TcpListener> {
    let socket = socket(address, stack)?;
    socket.set_reuse_port(true)?;
    prepare(&socket)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Sets options that accepted sockets inherit, which saves system calls for each connection.
fn prepare(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 4))?;
    socket.set_nonblocking(true)
}

fn socket(address: SocketAddr, stack: Stack) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the last connections of the process before.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() && stack == Stack::Single {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

// A socket that accepts connections.

/// A socket that accepts connections, not yet served.
#[derive(Debug)]
pub enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl ListeningSocket {
    /// Duplicates the socket.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(socket) => socket.try_clone().map(Self::Tcp),
            Self::Unix(socket) => socket.try_clone().map(Self::Unix),
        }
    }
}

impl AsFd for ListeningSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

// Opens listening Unix sockets, and keeps their files.

/// The file of a Unix socket that this process has opened, or the one that it took over from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SocketFile {
    path: Arc<str>,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// Whether it is the file of a socket on this address.
    pub fn is_of(&self, address: &ListenAddress) -> bool {
        matches!(address, ListenAddress::UnixSocket(path) if *path == self.path)
    }

    /// Removes the file, unless it is another process' by now.
    pub fn remove(&self) {
        let is_same = |file: fs::Metadata| (file.dev(), file.ino()) == (self.device, self.inode);
        if fs::symlink_metadata(&*self.path).is_ok_and(is_same) {
            // A file that stays is replaced by the next gateway that listens there.
            drop(fs::remove_file(&*self.path));
        }
    }
}

/// As one process tells another which file it is.
impl fmt::Display for SocketFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.device, self.inode, self.path)
    }
}

/// It is not what a process tells another of a file.
#[derive(Debug, thiserror::Error)]
#[error("not a device, an inode and a path")]
pub struct InvalidSocketFile;

impl FromStr for SocketFile {
    type Err = InvalidSocketFile;

    fn from_str(text: &str) -> Result<Self, InvalidSocketFile> {
        let mut parts = text.splitn(3, ' ');
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or(InvalidSocketFile);
        let (device, inode) = (number()?, number()?);
        let path = parts.next().filter(|path| path.starts_with('/')).ok_or(InvalidSocketFile)?;
        Ok(Self { path: path.into(), device, inode })
    }
}

/// Opens a Unix socket at `path`, whose file has this mode. A file that a gateway has left behind is replaced. Fails if a process
/// listens there.
pub fn bind_unix(path: &Arc<str>, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    let address = SockAddr::unix(&**path)?;
    remove_abandoned(path, &address)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // The file is created with this mode, less the umask: before the next line runs, no other user may connect than
    // after it.
    fchmod(&socket, Mode::from_raw_mode(mode))?;
    socket.bind(&address)?;
    set_mode(path, mode)?;
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    let file = fs::symlink_metadata(&**path)?;
    Ok((socket.into(), SocketFile { path: Arc::clone(path), device: file.dev(), inode: file.ino() }))
}

/// Sets which users may connect to the Unix socket at `path`.
pub fn set_mode(path: &str, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Removes the file of a socket that no process listens on any more.
fn remove_abandoned(path: &str, address: &SockAddr) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file is there that is no socket"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let caller = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A process that listens and accepts nothing is not waited for.
    caller.set_nonblocking(true)?;
    match caller.connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

// Where a listener accepts connections.

/// The prefix of the path of a Unix socket.
pub const UNIX_SOCKET: &str = "unix:";

/// Where a listener accepts connections. Written as in the configuration: `0.0.0.0:8080`, `unix:/run/portcullis.sock`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ListenAddress {
    Ip(SocketAddr),
    /// The path of a Unix socket.
    UnixSocket(Arc<str>),
}

impl ListenAddress {
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::UnixSocket(_) => None,
        }
    }

    /// Whether each listener there gets a free port of its own.
    pub fn is_any_port(&self) -> bool {
        self.ip().is_some_and(|address| address.port() == 0)
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::UnixSocket(path) => write!(f, "{UNIX_SOCKET}{path}"),
        }
    }
}

/// It is neither an address with a port nor the path of a Unix socket.
#[derive(Debug, thiserror::Error)]
#[error("not an address to listen on")]
pub struct InvalidListenAddress;

impl FromStr for ListenAddress {
    type Err = InvalidListenAddress;

    fn from_str(text: &str) -> Result<Self, InvalidListenAddress> {
        match text.strip_prefix(UNIX_SOCKET) {
            Some(path) => Ok(Self::UnixSocket(path.into())),
            None => text.parse().map(Self::Ip).map_err(|_| InvalidListenAddress),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};

    use super::*;

    fn at(folder: &tempfile::TempDir) -> Arc<str> {
        folder.path().join("gateway.sock").to_str().unwrap().into()
    }

    fn mode_of(path: &str) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_told_in_one_line() {
        let file = SocketFile { path: "/run/a gateway.sock".into(), device: 27, inode: u64::MAX };
        assert_eq!(file.to_string(), "27 18446744073709551615 /run/a gateway.sock");
        assert_eq!(file.to_string().parse::<SocketFile>().unwrap(), file);
        assert!(
            file.is_of(&"unix:/run/a gateway.sock".parse().unwrap()) && !file.is_of(&"127.0.0.1:1".parse().unwrap())
        );
        for other in ["", "27", "27 1", "27 1 ", "x 1 /a", "27 -1 /a", "27 1 a"] {
            assert!(other.parse::<SocketFile>().is_err(), "{other}");
        }
    }

    #[test]
    fn a_socket_that_is_listened_on_is_not_taken_and_one_that_was_left_behind_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder);
        let (listening, _) = bind_unix(&path, 0o660).unwrap();
        assert_eq!(bind_unix(&path, 0o660).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listening);
        bind_unix(&path, 0o660).unwrap();
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder);
        fs::write(&*path, "kept").unwrap();
        assert_eq!(bind_unix(&path, 0o660).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&*path).unwrap(), b"kept");
    }

    #[test]
    fn the_file_has_the_mode_whatever_the_umask_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder);
        let (_listening, _) = bind_unix(&path, 0o666).unwrap();
        assert_eq!(mode_of(&path), 0o666);
        set_mode(&path, 0o600).unwrap();
        assert_eq!(mode_of(&path), 0o600);
    }

    #[test]
    fn only_the_file_that_was_made_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder);
        let (listening, first) = bind_unix(&path, 0o660).unwrap();
        drop(listening);
        let (_listening, second) = bind_unix(&path, 0o660).unwrap();
        if first.inode != second.inode {
            first.remove();
            assert!(fs::exists(&*path).unwrap());
        }
        second.remove();
        assert!(!fs::exists(&*path).unwrap());
    }

    const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    #[test]
    fn port_zero_is_one_free_port_for_all_sockets() {
        let sockets = bind(ANY_PORT, Stack::Dual, 3).unwrap();

        let ports: Vec<u16> = sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();

        assert_eq!(ports, [ports[0]; 3]);
        assert_ne!(ports[0], 0);
    }

    #[test]
    fn an_address_that_another_gateway_listens_on_is_refused() {
        let first = bind(ANY_PORT, Stack::Dual, 2).unwrap();
        let address = first[0].local_addr().unwrap();

        let error = bind(address, Stack::Dual, 2).unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn ipv6_leaves_ipv4_to_sockets_with_the_same_port() {
        // Another program may have one of these ports for IPv4 alone, and not all of them.
        let is_left = (0..20).any(|_| {
            let six = bind((Ipv6Addr::UNSPECIFIED, 0).into(), Stack::Single, 2).unwrap();
            let four = SocketAddr::from((Ipv4Addr::UNSPECIFIED, six[0].local_addr().unwrap().port()));
            bind(four, Stack::Single, 2).is_ok()
        });
        assert!(is_left);
    }

    #[test]
    fn an_address_is_free_again_once_its_listener_is_gone_though_connections_are_open() {
        let first = bind(ANY_PORT, Stack::Dual, 1).unwrap();
        let address = first[0].local_addr().unwrap();
        first[0].set_nonblocking(false).unwrap();
        let _client = TcpStream::connect(address).unwrap();
        let _open = first[0].accept().unwrap();
        drop(first);

        bind(address, Stack::Dual, 2).unwrap();
    }

    #[test]
    fn accepted_sockets_send_small_writes_at_once() {
        let sockets = bind(ANY_PORT, Stack::Dual, 1).unwrap();
        sockets[0].set_nonblocking(false).unwrap();
        let _client = TcpStream::connect(sockets[0].local_addr().unwrap()).unwrap();

        let (accepted, _) = sockets[0].accept().unwrap();

        assert!(accepted.nodelay().unwrap());
    }

    #[test]
    fn the_kernel_takes_little_for_a_client_that_does_not_read() {
        let sockets = bind(ANY_PORT, Stack::Dual, 1).unwrap();
        sockets[0].set_nonblocking(false).unwrap();
        let client = socket(sockets[0].local_addr().unwrap(), Stack::Dual).unwrap();
        client.set_recv_buffer_size(4096).unwrap();
        client.connect(&sockets[0].local_addr().unwrap().into()).unwrap();
        let (accepted, _) = sockets[0].accept().unwrap();
        accepted.set_nonblocking(true).unwrap();

        let part = [0; 16 * 1024];
        let taken: usize = std::iter::from_fn(|| (&accepted).write(&part).ok()).sum();

        assert!((UNSENT as usize..2 * UNSENT as usize).contains(&taken), "{taken} bytes");
    }
}
