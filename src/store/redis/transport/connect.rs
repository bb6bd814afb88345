//! Opens connections: sockets that notice a dead peer, TLS, the handshake.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use redis::Value;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::net;
use tokio::net::TcpSocket;
use tokio::net::TcpStream;
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;

use super::breaker::DownCause;
use super::connection::OnPush;
use super::connection::RedisConnection;
use super::fault::ServerFault;
use super::url::Address;
use super::url::Login;
use crate::timer::PeerTimedOut;
use crate::timer::peer_timeout;
use crate::tls::client::client_config;
use crate::tls::client::system_roots;

/// Opens all connections of a process.
#[derive(Debug)]
pub(in crate::store::redis) struct Connector {
    pub(in crate::store::redis) login: Login,
    /// Holds the password.
    password_file: Option<PathBuf>,
    pub(in crate::store::redis) database: i64,
    timeout: Duration,
    /// Made for the first connection with TLS, because reading the system's certificates takes a while.
    tls: OnceLock<Arc<ClientConfig>>,
}

/// What a connection is for.
#[derive(Clone)]
enum Use {
    Commands,
    /// The server may be silent for this long.
    Decisions(Duration),
    Messages(OnPush),
}

/// How long connecting may take, with TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// A peer that does not acknowledge sent bytes for this long is gone. A stopped process still acknowledges, because its
/// kernel does.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(1);

/// How often an idle connection is checked, so that a dead peer is noticed.
const KEEPALIVE: Duration = Duration::from_secs(2);

impl Connector {
    /// `timeout`: how long a server may be silent while it decides.
    pub(in crate::store::redis) fn new(
        login: Login,
        password_file: Option<PathBuf>,
        database: i64,
        timeout: Duration,
    ) -> Self {
        Self { login, password_file, database, timeout, tls: OnceLock::new() }
    }

    /// Connects to a server for commands that may take as long as their caller waits.
    pub(in crate::store::redis) async fn connect(&self, address: &Address) -> Result<RedisConnection, ServerFault> {
        self.open(address, &self.login().await?, self.database, Use::Commands).await
    }

    /// Connects to a server for decisions: the connection ends when the server is silent for the timeout, from its first
    /// packet on.
    pub(in crate::store::redis) async fn connect_for_decisions(
        &self,
        address: &Address,
    ) -> Result<RedisConnection, ServerFault> {
        self.open(address, &self.login().await?, self.database, Use::Decisions(self.timeout)).await
    }

    /// Connects to a server for push messages.
    pub(in crate::store::redis) async fn connect_for_messages(
        &self,
        address: &Address,
        on_push: OnPush,
    ) -> Result<RedisConnection, ServerFault> {
        self.open(address, &self.login().await?, self.database, Use::Messages(on_push)).await
    }

    /// Connects to a sentinel. Sentinels often have no password even if the servers have one.
    pub(in crate::store::redis) async fn connect_to_sentinel(
        &self,
        address: &Address,
        on_push: Option<OnPush>,
    ) -> Result<RedisConnection, ServerFault> {
        let purpose = on_push.map_or(Use::Commands, Use::Messages);
        match self.open(address, &self.login().await?, 0, purpose.clone()).await {
            Err(ServerFault { cause: DownCause::NoAuth, .. }) => {
                self.open(address, &Login::default(), 0, purpose).await
            }
            other => other,
        }
    }

    /// User and password. Where a file holds the password it is read now: it may have changed since the last connection.
    async fn login(&self) -> Result<Login, ServerFault> {
        let Some(file) = self.password_file.clone() else { return Ok(self.login.clone()) };
        let read = spawn_blocking(move || fs::read_to_string(file)).await.map_err(io::Error::other);
        match read.and_then(|read| read) {
            Ok(content) => Ok(Login { user: self.login.user.clone(), password: Some(content.trim().to_owned()) }),
            Err(error) => {
                let detail = format!("the file with its password cannot be read: {error}");
                Err(ServerFault { cause: DownCause::NoAuth, detail })
            }
        }
    }

    async fn open(
        &self,
        address: &Address,
        login: &Login,
        database: i64,
        purpose: Use,
    ) -> Result<RedisConnection, ServerFault> {
        // How long the server may be silent in each step; a login is a step for each command.
        let silence = match purpose {
            Use::Decisions(timeout) => timeout,
            Use::Commands | Use::Messages(_) => CONNECT_TIMEOUT,
        };
        let opened = async {
            match address {
                Address::Tcp { host, port, tls: false } => {
                    handshake(within(silence, tcp(host, *port)).await?, login, database, purpose).await
                }
                Address::Tcp { host, port, tls: true } => {
                    let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                    let connector = TlsConnector::from(self.tls()?);
                    let stream = within(silence, tcp(host, *port)).await?;
                    // Up to TLS 1.2 this takes two round trips.
                    let stream = within(2 * silence, connector.connect(name, stream)).await?;
                    handshake(stream, login, database, purpose).await
                }
                Address::Unix(path) => handshake(UnixStream::connect(path).await?, login, database, purpose).await,
            }
        };
        match peer_timeout(CONNECT_TIMEOUT, pin!(opened)).await {
            Ok(opened) => opened,
            Err(PeerTimedOut) => Err(ServerFault {
                cause: DownCause::Timeout,
                detail: format!("connecting takes longer than {} ms", CONNECT_TIMEOUT.as_millis()),
            }),
        }
    }

    fn tls(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.tls.get() {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(client_config(system_roots().map_err(io::Error::other)?));
        Ok(Arc::clone(self.tls.get_or_init(|| config)))
    }
}

async fn within<T>(span: Duration, step: impl Future<Output = io::Result<T>>) -> Result<T, ServerFault> {
    match peer_timeout(span, pin!(step)).await {
        Ok(done) => Ok(done?),
        Err(PeerTimedOut) => Err(ServerFault::timeout()),
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = None;
    for address in net::lookup_host((host, port)).await? {
        match tcp_at(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| io::Error::other("the name has no address")))
}

async fn tcp_at(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_nodelay(true)?;
    let options = socket2::SockRef::from(&socket);
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 2);
    options.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    options.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT))?;
    socket.connect(address).await
}

/// Logs in, and starts the task of the connection.
async fn handshake<S>(stream: S, login: &Login, database: i64, purpose: Use) -> Result<RedisConnection, ServerFault>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = match purpose {
        Use::Messages(on_push) => RedisConnection::of_library(stream, login, database, on_push).await?,
        Use::Decisions(timeout) => RedisConnection::of_pipeline(stream, login, database, Some(timeout)).await?,
        Use::Commands => RedisConnection::of_pipeline(stream, login, database, None).await?,
    };
    let mut name = redis::cmd("CLIENT");
    name.arg("SETNAME").arg("portcullis");
    match connection.send(&name).await {
        // The connection works also without a name.
        Ok(Value::ServerError(error)) if DownCause::of_answer(&error) == DownCause::MaxClients => {
            Err(ServerFault::of_answer(&error))
        }
        Ok(_) => Ok(connection),
        Err(error) if error.cause() == DownCause::Connection => Err(ServerFault::closed_at_once()),
        Err(error) => Err(error.into()),
    }
}
