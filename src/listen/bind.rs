//! Opens listening TCP sockets: one for each core on the same address, which no other process shares.

use std::io;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use socket2::Domain;
use socket2::Protocol;
use socket2::Socket;
use socket2::TcpKeepalive;
use socket2::Type;

use super::ListenAddress;
use super::ListeningSocket;

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

/// Connections that wait while the core is busy; the kernel caps it at `somaxconn`.
pub(super) const BACKLOG: i32 = 4096;

/// In bytes: what the kernel buffers of a response beyond what the network takes. Without it, the kernel would buffer
/// megabytes for a client that does not read.
const UNSENT: u32 = 128 * 1024;

/// Finds vanished clients of tunnels, which have no timeout of ours.
const KEEPALIVE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::net::Ipv6Addr;
    use std::net::TcpStream;

    use super::*;

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
