//! Opens connections: sockets that notice a dead peer, TLS, the handshake.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, fs, io};

use redis::{ConnectionAddr, IntoConnectionInfo, Value};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net;
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;

use super::connection::{OnPush, RedisConnection};
use super::fault::ServerFault;
use crate::store::redis::transport::fault::DownCause;
use crate::wire::tls::{client_config, system_roots};
use crate::words::timer::{PeerTimedOut, peer_timeout};
use crate::words::word::Help;

/// How long connecting may take, with TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// A peer that does not acknowledge sent bytes for this long is gone. A stopped process still acknowledges, because its
/// kernel does.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(1);

/// How often an idle connection is checked, so that a dead peer is noticed.
const KEEPALIVE: Duration = Duration::from_secs(2);

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

// The URL of a Redis server: `redis://user:password@host:6379/0`, `rediss://` for TLS, `unix:///run/redis.sock`.

/// The port of a sentinel if the URL has none.
pub(in crate::store::redis) const SENTINEL_PORT: u16 = 26379;

const SERVER_PORT: u16 = 6379;

/// The address of a server, its user and password. Printing it shows no password.
#[derive(Clone, Eq, PartialEq)]
pub struct Url {
    pub(in crate::store::redis) address: Address,
    pub(in crate::store::redis) login: Login,
    pub(in crate::store::redis) database: i64,
    /// The name of the master at the sentinels: `redis://host:26379/mymaster/0`.
    pub(in crate::store::redis) master: Option<String>,
}

/// The address of a server.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::store::redis) enum Address {
    Tcp { host: String, port: u16, tls: bool },
    Unix(PathBuf),
}

/// The login of the gateway at a server.
#[derive(Clone, Default, Eq, PartialEq)]
pub(in crate::store::redis) struct Login {
    pub(in crate::store::redis) user: Option<String>,
    pub(in crate::store::redis) password: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this is not the address of a Redis server")]
pub struct InvalidUrl;

impl Help for InvalidUrl {
    fn help(&self) -> String {
        "write one such as `redis://127.0.0.1:6379/0`".to_owned()
    }
}

impl Url {
    /// The address of the sentinel of this URL, with the default port of sentinels.
    pub(in crate::store::redis) fn sentinel(&self) -> Address {
        match &self.address {
            Address::Tcp { host, port: SERVER_PORT, tls } => {
                Address::Tcp { host: host.clone(), port: SENTINEL_PORT, tls: *tls }
            }
            other => other.clone(),
        }
    }

    pub fn has_password(&self) -> bool {
        self.login.password.is_some()
    }

    /// The first part in which another URL differs, apart from the server. URLs of one store differ only in their
    /// servers.
    pub fn differs(&self, other: &Self) -> Option<&'static str> {
        let compared = [
            ("user", self.login.user != other.login.user),
            ("password", self.login.password != other.login.password),
            ("name of the master", self.master != other.master),
            ("database", self.database != other.database),
        ];
        compared.into_iter().find_map(|(what, differs)| differs.then_some(what))
    }
}

impl Address {
    /// Another server with the same protocol.
    pub(in crate::store::redis) fn at(&self, host: &str, port: u16) -> Self {
        Self::Tcp { host: host.to_owned(), port, tls: matches!(self, Self::Tcp { tls: true, .. }) }
    }

    /// The host of this server, for servers that are named only by their port.
    pub(in crate::store::redis) fn host(&self) -> &str {
        match self {
            Self::Tcp { host, .. } => host,
            Self::Unix(_) => "127.0.0.1",
        }
    }
}

impl FromStr for Url {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let mut url = redis::parse_redis_url(text).ok_or(InvalidUrl)?;
        // The only known fragment turns certificate checks off.
        if url.fragment().is_some() {
            return Err(InvalidUrl);
        }
        let tls = matches!(url.scheme(), "rediss" | "valkeys");
        let mut master = None;
        if !url.scheme().contains("unix") {
            let path = url.path().trim_matches('/').to_owned();
            let (first, rest) = path.split_once('/').unwrap_or((&path, ""));
            let named = !first.is_empty() && first.parse::<u32>().is_err();
            master = named.then(|| first.to_owned());
            let database = if named { rest } else { &path };
            if !database.is_empty() && database.parse::<u32>().is_err() {
                return Err(InvalidUrl);
            }
            let database = database.to_owned();
            url.set_path(&database);
            // The gateway does TLS itself, so the crate gets a URL without it.
            url.set_scheme("redis").map_err(|()| InvalidUrl)?;
        }
        let info = url.into_connection_info().map_err(|_| InvalidUrl)?;
        let settings = info.redis_settings();
        let login =
            Login { user: settings.username().map(str::to_owned), password: settings.password().map(str::to_owned) };
        let address = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Address::Tcp { host: host.clone(), port: *port, tls },
            ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
            _ => return Err(InvalidUrl),
        };
        Ok(Self { address, login, database: settings.db(), master })
    }
}

impl fmt::Display for Url {
    /// Host and port alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(***)")
    }
}

impl fmt::Display for Address {
    /// `127.0.0.1:6379`, or the path of a socket.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn url(text: &str) -> Url {
        text.parse().expect(text)
    }

    #[test]
    fn user_and_password_are_read_and_never_printed() {
        let url = url("redis://al%40ice:s%2Fecret@redis.example:7000/3");
        assert_eq!(url.login.user.as_deref(), Some("al@ice"));
        assert_eq!(url.login.password.as_deref(), Some("s/ecret"));
        assert_eq!(url.database, 3);
        assert_eq!(url.to_string(), "redis.example:7000");
        assert_eq!(format!("{url:?} {:?}", url.login), "Url(redis.example:7000) Login(***)");
    }

    #[test]
    fn a_port_and_a_database_have_defaults() {
        assert_eq!((url("redis://redis").to_string(), url("redis://redis").database), ("redis:6379".to_owned(), 0));
        assert_eq!(url("rediss://[::1]/").to_string(), "[::1]:6379");
        assert_eq!(url("unix:///run/redis.sock?db=2").to_string(), "/run/redis.sock");
        assert_eq!(url("redis://s1").sentinel().to_string(), "s1:26379");
        assert_eq!(url("redis://s1:5000").sentinel().to_string(), "s1:5000");
    }

    #[test]
    fn the_path_may_name_the_master() {
        let named = url("redis://s1:26379/sessions/2");
        assert_eq!((named.master.as_deref(), named.database), (Some("sessions"), 2));
        let named = url("rediss://s1:26379/sessions");
        assert_eq!((named.master.as_deref(), named.database), (Some("sessions"), 0));
        assert_eq!(url("redis://s1:26379/4").master, None);
    }

    #[test]
    fn urls_of_one_store_differ_in_their_servers_alone() {
        let first = url("redis://gate:a@s1:26379/sessions/2");
        assert_eq!(first.differs(&url("redis://gate:a@s2:5000/sessions/2")), None);
        assert_eq!(first.differs(&url("redis://gates:a@s2/sessions/2")), Some("user"));
        assert_eq!(first.differs(&url("redis://gate@s2/sessions/2")), Some("password"));
        assert_eq!(first.differs(&url("redis://gate:a@s2/2")), Some("name of the master"));
        assert_eq!(first.differs(&url("redis://gate:a@s2/sessions")), Some("database"));
    }

    #[test]
    fn a_url_that_is_not_of_redis_is_refused() {
        for text in
            ["", "127.0.0.1:6379", "http://a", "redis://", "redis://a/b/c", "redis://a/0/1", "rediss://a/#insecure"]
        {
            assert_eq!(text.parse::<Url>(), Err(InvalidUrl), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_url_or_none_and_no_password_is_printed(
            text in "(redis|rediss|unix)?(://|:)?[ -~]{0,16}",
            password in "[a-z]{12}",
        ) {
            drop(text.parse::<Url>());
            if let Ok(url) = format!("redis://me:{password}@127.0.0.1/0").parse::<Url>() {
                let printed = format!("{url:?} {url}");
                prop_assert!(!printed.contains(&password));
            }
        }
    }
}
