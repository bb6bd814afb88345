//! A connection to one server.

use std::mem;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ProtocolVersion, PushInfo, RedisConnectionInfo, RedisError, RedisResult, Value,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fault::{SendError, ServerFault};
use super::pipeline::Pipeline;
use crate::store::redis::transport::connect::Login;
use crate::store::redis::transport::fault::DownCause;

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

impl RedisConnection {
    /// Whether enough replicas have all that was answered on this connection before this call.
    pub(in crate::store::redis) async fn is_replicated(&self, wait: ReplicaWait) -> bool {
        let (receiver, begins) = self.replica_waits().join();
        if begins {
            // In a task: whoever leaves must not leave the others waiting.
            tokio::spawn(ask_for_all(self.clone(), wait));
        }
        receiver.await.unwrap_or(false)
    }

    /// Fails unless enough replicas have all that was answered on this connection before this call.
    pub(in crate::store::redis) async fn wait_for_replicas(&self, wait: ReplicaWait) -> Result<(), ServerFault> {
        let ReplicaWait { replicas, patience } = wait;
        let mut command = redis::cmd("WAIT");
        command.arg(replicas.get()).arg(patience.as_millis().max(1).to_string());
        match self.ask(&command).await? {
            Value::Int(have) if have >= i64::from(replicas.get()) => Ok(()),
            Value::Int(have) => {
                let detail = format!("{have} of {replicas} replicas have what it wrote");
                Err(ServerFault { cause: DownCause::NoReplicas, detail })
            }
            _ => Err(ServerFault::nonsense()),
        }
    }
}

// Waits until replicas have what was written on a connection.

/// The replicas that a charge must reach before it counts as made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store::redis) struct ReplicaWait {
    /// So many replicas have it.
    pub(in crate::store::redis) replicas: NonZeroU32,
    /// At most so long after it was made.
    pub(in crate::store::redis) patience: Duration,
}

/// `WAIT` is about all that was written on its connection before, and holds up what comes after: so one is for all that wait
/// when it is sent, and there is one at a time.
async fn ask_for_all(connection: RedisConnection, wait: ReplicaWait) {
    while let Some(waiting) = connection.replica_waits().take() {
        let is_replicated = connection.wait_for_replicas(wait).await.is_ok();
        for caller in waiting {
            // It may have left.
            let _ = caller.send(is_replicated);
        }
    }
}

// The callers of one connection that wait for replicas.

/// The callers that wait. One of them asks at a time, for all that wait when it asks.
#[derive(Debug, Default)]
pub(super) struct ReplicaWaits(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    next: Vec<oneshot::Sender<bool>>,
    is_asking: bool,
}

impl ReplicaWaits {
    /// A caller waits from now on. Also returns whether nobody asks yet, so that it must see to that.
    pub(super) fn join(&self) -> (oneshot::Receiver<bool>, bool) {
        let (sender, receiver) = oneshot::channel();
        let mut waits = self.0.lock();
        waits.next.push(sender);
        (receiver, !mem::replace(&mut waits.is_asking, true))
    }

    /// The callers for whom the next question is. `None`: nobody waits, and nobody asks from now on.
    pub(super) fn take(&self) -> Option<Vec<oneshot::Sender<bool>>> {
        let mut waits = self.0.lock();
        waits.is_asking = !waits.next.is_empty();
        waits.is_asking.then(|| mem::take(&mut waits.next))
    }
}
