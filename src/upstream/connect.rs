//! New connections to a server: address, socket, and TLS where the server has it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::SockRef;
use socket2::TcpKeepalive;
use tokio::net::TcpStream;
use tokio::net::lookup_host;
use tokio::time::Instant;
use tokio::time::timeout_at;

use super::Timeouts;
use super::error::Cause;
use super::server::Place;
use super::server::Server;
use super::stream::Stream;

/// What is to be spoken over a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Opens a connection. Of several addresses each is tried in turn, with its share of the time.
pub(super) async fn connect(server: &Server, timeouts: &Timeouts, protocol: Protocol) -> Result<Stream, Cause> {
    let deadline = Instant::now() + timeouts.connect;
    match &server.place {
        Place::Address(address) => connect_to(*address, server, timeouts, protocol, deadline).await,
        Place::Name { host, port } => {
            let found = timeout_at(deadline, lookup_host((host.as_str(), *port))).await;
            let addresses: Vec<SocketAddr> =
                found.map_err(|_| Cause::ConnectTimeout)?.map_err(Cause::Connect)?.collect();
            first_of(&addresses, server, timeouts, protocol, deadline).await
        }
    }
}

async fn first_of(
    addresses: &[SocketAddr],
    server: &Server,
    timeouts: &Timeouts,
    protocol: Protocol,
    deadline: Instant,
) -> Result<Stream, Cause> {
    let mut failed = Err(Cause::Connect(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    for (tried, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        failed = connect_to(*address, server, timeouts, protocol, Instant::now() + share).await;
        if failed.is_ok() {
            break;
        }
    }
    failed
}

async fn connect_to(
    address: SocketAddr,
    server: &Server,
    timeouts: &Timeouts,
    protocol: Protocol,
    deadline: Instant,
) -> Result<Stream, Cause> {
    let connected = async {
        let stream = TcpStream::connect(address).await?;
        prepare(&stream, timeouts.response)?;
        match &server.secure {
            None => Ok(Stream::Plain(stream)),
            Some(secure) => secure.handshake(stream, protocol).await.map(|stream| Stream::Tls(Box::new(stream))),
        }
    };
    let connected = timeout_at(deadline, connected).await.map_err(|_| Cause::ConnectTimeout)?;
    connected.map_err(Cause::Connect)
}

fn prepare(stream: &TcpStream, response: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 4))?;
    // A server that vanished is not waited for longer than one that is silent.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(response.max(KEEPALIVE)))?;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = response;
    Ok(())
}

/// How soon a server that vanished is noticed on a connection that nothing is sent on.
const KEEPALIVE: Duration = Duration::from_secs(15);
