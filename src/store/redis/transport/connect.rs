//! Opens connections: sockets that notice a dead peer, TLS, the handshake.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::Cmd;
use redis::ProtocolVersion;
use redis::PushInfo;
use redis::RedisConnectionInfo;
use redis::RedisError;
use redis::Value;
use redis::aio::MultiplexedConnection;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::net;
use tokio::net::TcpSocket;
use tokio::net::TcpStream;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use super::breaker::DownCause;
use super::fault::ServerFault;
use super::pipeline::Pipeline;
use super::url::Address;
use super::url::Login;
use crate::tls::client::client_config;
use crate::tls::client::system_roots;

/// Opens all connections of a process.
#[derive(Debug)]
pub(in crate::store::redis) struct Connector {
    pub(in crate::store::redis) login: Login,
    pub(in crate::store::redis) database: i64,
    /// Made for the first connection with TLS, because reading the system's certificates takes a while.
    tls: OnceLock<Arc<ClientConfig>>,
}

/// A connection that many callers use at once. Clones share it, and it ends with the last clone.
#[derive(Clone, Debug)]
pub(in crate::store::redis) struct RedisConnection {
    inner: ConnectionKind,
    driver: Arc<DriverTask>,
}

#[derive(Clone, Debug)]
enum ConnectionKind {
    /// Our own pipeline for decisions: the one of the library takes a fifth of the time of a whole request.
    Pipeline(Pipeline),
    /// The library's connection, which receives push messages.
    Library(MultiplexedConnection),
}

/// The task that writes commands and reads answers.
#[derive(Debug)]
struct DriverTask {
    task: JoinHandle<()>,
    ended: CancellationToken,
}

/// Handles push messages.
pub(in crate::store::redis) type OnPush = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// How long connecting may take, with TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// A peer that does not acknowledge sent bytes for this long is gone. A stopped process still acknowledges, because its
/// kernel does.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(1);

/// How often an idle connection is checked, so that a dead peer is noticed.
const KEEPALIVE: Duration = Duration::from_secs(2);

impl Connector {
    pub(in crate::store::redis) fn new(login: Login, database: i64) -> Self {
        Self { login, database, tls: OnceLock::new() }
    }

    /// Connects to a server for commands.
    pub(in crate::store::redis) async fn connect(&self, address: &Address) -> Result<RedisConnection, ServerFault> {
        self.open(address, &self.login, self.database, None).await
    }

    /// Connects to a server for push messages.
    pub(in crate::store::redis) async fn connect_for_messages(
        &self,
        address: &Address,
        on_push: OnPush,
    ) -> Result<RedisConnection, ServerFault> {
        self.open(address, &self.login, self.database, Some(on_push)).await
    }

    /// Connects to a sentinel. Sentinels often have no password even if the servers have one.
    pub(in crate::store::redis) async fn connect_to_sentinel(
        &self,
        address: &Address,
        on_push: Option<OnPush>,
    ) -> Result<RedisConnection, ServerFault> {
        match self.open(address, &self.login, 0, on_push.clone()).await {
            Err(ServerFault { cause: DownCause::NoAuth, .. }) => {
                self.open(address, &Login::default(), 0, on_push).await
            }
            other => other,
        }
    }

    async fn open(
        &self,
        address: &Address,
        login: &Login,
        database: i64,
        on_push: Option<OnPush>,
    ) -> Result<RedisConnection, ServerFault> {
        let opened = async {
            match address {
                Address::Tcp { host, port, tls: false } => {
                    handshake(tcp(host, *port).await?, login, database, on_push).await
                }
                Address::Tcp { host, port, tls: true } => {
                    let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                    let connector = TlsConnector::from(self.tls()?);
                    let stream = connector.connect(name, tcp(host, *port).await?).await?;
                    handshake(stream, login, database, on_push).await
                }
                Address::Unix(path) => handshake(UnixStream::connect(path).await?, login, database, on_push).await,
            }
        };
        match time::timeout(CONNECT_TIMEOUT, opened).await {
            Ok(opened) => opened,
            Err(_) => Err(ServerFault {
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
async fn handshake<S>(
    stream: S,
    login: &Login,
    database: i64,
    on_push: Option<OnPush>,
) -> Result<RedisConnection, ServerFault>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = if let Some(on_push) = on_push {
        of_library(stream, login, database, on_push).await?
    } else {
        let (pipeline, driver) = Pipeline::over(stream);
        let connection =
            RedisConnection { inner: ConnectionKind::Pipeline(pipeline), driver: DriverTask::start(driver) };
        connection.log_in(login, database).await?;
        connection
    };
    // The answer is not checked: the connection works also without a name.
    let mut name = redis::cmd("CLIENT");
    name.arg("SETNAME").arg("portcullis");
    connection.send(&name).await?;
    Ok(connection)
}

async fn of_library<S>(stream: S, login: &Login, database: i64, on_push: OnPush) -> Result<RedisConnection, RedisError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut settings = RedisConnectionInfo::default().set_db(database).set_skip_set_lib_name();
    if let Some(user) = &login.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &login.password {
        settings = settings.set_password(password);
    }
    let settings = settings.set_protocol(ProtocolVersion::RESP3);
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let config = config.set_push_sender(move |push| {
        on_push(push);
        Ok::<(), redis::aio::SendError>(())
    });
    let (inner, driver) = MultiplexedConnection::new_with_config(&settings, stream, config).await?;
    Ok(RedisConnection { inner: ConnectionKind::Library(inner), driver: DriverTask::start(driver) })
}

impl RedisConnection {
    async fn log_in(&self, login: &Login, database: i64) -> Result<(), ServerFault> {
        if let Some(password) = &login.password {
            let mut auth = redis::cmd("AUTH");
            auth.arg(login.user.as_slice()).arg(password);
            if let Value::ServerError(_) = self.send(&auth).await? {
                return Err(ServerFault {
                    cause: DownCause::NoAuth,
                    detail: "it does not accept the password".to_owned(),
                });
            }
        }
        if database != 0 {
            let mut select = redis::cmd("SELECT");
            select.arg(database);
            self.ask(&select).await?;
        }
        Ok(())
    }

    /// Sends a command and waits for its answer without a timeout. The answer may be an error.
    pub(in crate::store::redis) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        match &self.inner {
            ConnectionKind::Pipeline(pipeline) => Ok(pipeline.send(command).await?),
            // Boxed, so that the future of a decision stays small.
            ConnectionKind::Library(library) => Box::pin(library.clone().send_packed_command(command)).await,
        }
    }

    /// Sends a command to a server that is about to get its slot, after an `ASK` redirection.
    pub(in crate::store::redis) async fn send_asking(&self, command: &Cmd) -> Result<Value, RedisError> {
        match &self.inner {
            ConnectionKind::Pipeline(pipeline) => Ok(pipeline.send_together(&[&redis::cmd("ASKING"), command]).await?),
            ConnectionKind::Library(_) => unreachable!("a connection for messages sends no decisions"),
        }
    }

    /// The same, with an error answer as a fault.
    pub(in crate::store::redis) async fn ask(&self, command: &Cmd) -> Result<Value, ServerFault> {
        match self.send(command).await? {
            Value::ServerError(error) => Err(ServerFault::of_answer(&error)),
            value => Ok(value),
        }
    }

    /// Loads a script, so that the server knows its hash.
    pub(in crate::store::redis) async fn load(&self, script: &str) -> Result<(), ServerFault> {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(script);
        self.ask(&load).await.map(drop)
    }

    pub(in crate::store::redis) async fn subscribe(&self, channel: &str) -> Result<(), ServerFault> {
        match &self.inner {
            ConnectionKind::Pipeline(_) => unreachable!("it is connected for messages"),
            ConnectionKind::Library(library) => Ok(library.clone().subscribe(channel).await?),
        }
    }

    pub(in crate::store::redis) fn is_open(&self) -> bool {
        !self.driver.task.is_finished()
    }

    /// Waits until the connection is closed.
    pub(in crate::store::redis) async fn closed(&self) {
        self.driver.ended.cancelled().await;
    }
}

impl DriverTask {
    fn start(driver: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let task = tokio::spawn(async move {
            let _guard = guard;
            driver.await;
        });
        Arc::new(Self { task, ended })
    }
}

impl Drop for DriverTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}
