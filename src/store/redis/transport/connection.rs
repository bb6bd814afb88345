//! A connection to one server.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::Cmd;
use redis::ProtocolVersion;
use redis::PushInfo;
use redis::RedisConnectionInfo;
use redis::RedisError;
use redis::RedisResult;
use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::breaker::DownCause;
use super::fault::SendError;
use super::fault::ServerFault;
use super::pipeline::Pipeline;
use super::replica_waits::ReplicaWaits;
use super::url::Login;

/// A connection that many callers use at once. Clones share it, and it ends with the last clone.
#[derive(Clone, Debug)]
pub(in crate::store::redis) struct RedisConnection {
    inner: ConnectionKind,
    driver: Arc<DriverTask>,
    waits: Arc<ReplicaWaits>,
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

impl RedisConnection {
    /// A connection over our own pipeline, logged in. It ends when the server is silent for `timeout` while it owes an answer.
    pub(super) async fn of_pipeline<S>(
        stream: S,
        login: &Login,
        database: i64,
        timeout: Option<Duration>,
    ) -> Result<Self, ServerFault>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (pipeline, driver) = Pipeline::over(stream, timeout);
        let connection = Self {
            inner: ConnectionKind::Pipeline(pipeline),
            driver: DriverTask::start(driver),
            waits: Arc::default(),
        };
        connection.log_in(login, database).await?;
        Ok(connection)
    }

    /// A connection of the library, for push messages.
    pub(super) async fn of_library<S>(
        stream: S,
        login: &Login,
        database: i64,
        on_push: OnPush,
    ) -> Result<Self, RedisError>
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
        Ok(Self { inner: ConnectionKind::Library(inner), driver: DriverTask::start(driver), waits: Arc::default() })
    }

    /// The callers that wait for replicas.
    pub(super) fn replica_waits(&self) -> &ReplicaWaits {
        &self.waits
    }

    async fn log_in(&self, login: &Login, database: i64) -> Result<(), ServerFault> {
        if let Some(password) = &login.password {
            let mut auth = redis::cmd("AUTH");
            auth.arg(login.user.as_slice()).arg(password);
            match self.send(&auth).await? {
                Value::ServerError(error) if DownCause::of_answer(&error) == DownCause::MaxClients => {
                    return Err(ServerFault::of_answer(&error));
                }
                Value::ServerError(_) => {
                    return Err(ServerFault {
                        cause: DownCause::NoAuth,
                        detail: "it does not accept the password".to_owned(),
                    });
                }
                _ => {}
            }
        }
        if database != 0 {
            let mut select = redis::cmd("SELECT");
            select.arg(database);
            self.ask(&select).await?;
        }
        Ok(())
    }

    /// Sends a command and waits for its answer for as long as the connection lasts. The answer may be an error.
    pub(in crate::store::redis) async fn send(&self, command: &Cmd) -> Result<Value, SendError> {
        match &self.inner {
            ConnectionKind::Pipeline(pipeline) => Ok(pipeline.send(command).await?),
            ConnectionKind::Library(library) => Ok(send_by(library.clone(), command).await?),
        }
    }

    /// Sends a command to a server that is about to get its slot, after an `ASK` redirection.
    pub(in crate::store::redis) async fn send_asking(&self, command: &Cmd) -> Result<Value, SendError> {
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

/// Boxed, so that the future of a decision stays small, and without its type, which is too deep for the compiler.
fn send_by(
    mut library: MultiplexedConnection,
    command: &Cmd,
) -> Pin<Box<dyn Future<Output = RedisResult<Value>> + Send + '_>> {
    Box::pin(async move { library.send_packed_command(command).await })
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
