//! The connections of one core.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, Value};
use tokio::time::Instant;

use super::node::RedisNode;
use super::shared::SharedRedis;
use crate::store::Observer;
use crate::store::redis::scripts::Invocation;
use crate::store::redis::settings::Mode;
use crate::store::redis::topology::node;
use crate::store::redis::topology::node::{Established, Failure, NodeConnection, Progress};
use crate::store::redis::transport::connect::Address;
use crate::store::redis::transport::connection::RedisConnection;
use crate::store::redis::transport::fault::{DownCause, SendError, ServerFault};

/// The connections of this core, one to each server. Decisions share them as a pipeline.
#[derive(Debug)]
pub struct Links {
    shared: Arc<SharedRedis>,
    observer: Arc<dyn Observer>,
    /// Only this core takes the lock, and never across an await.
    connections: Mutex<Vec<Arc<NodeConnection>>>,
}

/// Records no metrics.
#[derive(Debug)]
struct NoObserver;

impl Observer for NoObserver {
    fn round_trip(&self, _span: Duration) {}

    fn failed(&self, _cause: &'static str) {}

    fn went_down(&self) {}

    fn overloaded(&self) {}
}

/// More redirections and script loads than this in one call count as a refusal.
const DETOURS: usize = 5;

impl Links {
    pub fn new(shared: &Arc<SharedRedis>) -> Self {
        let (shared, observer) = (Arc::clone(shared), Arc::clone(&shared.observer));
        Self { shared, observer, connections: Mutex::new(Vec::new()) }
    }

    /// For calls that are not decisions: metrics count only decisions.
    pub(in crate::store::redis) fn unobserved(shared: &Arc<SharedRedis>) -> Self {
        Self { observer: Arc::new(NoObserver), ..Self::new(shared) }
    }

    /// The hash slot of the name of a key. Keys of one slot can be decided in one call.
    pub fn slot(&self, name: &[u8]) -> u16 {
        match self.shared.settings.mode {
            Mode::Cluster => node::of(name),
            Mode::Single | Mode::Sentinel => 0,
        }
    }

    /// Runs a script on the server of this slot. A server that is silent for the timeout of the settings is down.
    pub async fn call(&self, slot: u16, invocation: &Invocation) -> Result<Value, Failure> {
        let node = self.shared.topology.node(slot).ok_or_else(|| self.unasked())?;
        self.observed(node, async |progress| self.run(slot, invocation, progress).await).await
    }

    /// The same for a call of which `has_charged` says by its answer whether it has charged something: enough replicas must have
    /// that then.
    pub async fn charge(
        &self,
        slot: u16,
        invocation: &Invocation,
        has_charged: impl Fn(&Value) -> bool,
    ) -> Result<Value, Failure> {
        let Some(wait) = self.shared.replica_wait() else { return self.call(slot, invocation).await };
        let node = self.shared.topology.node(slot).ok_or_else(|| self.unasked())?;
        let run = async |progress: &mut Progress| {
            let answer = self.run(slot, invocation, progress).await?;
            let connection = progress.connection.take().filter(|_| has_charged(&answer));
            if let Some(connection) = connection
                && !Box::pin(connection.is_replicated(wait)).await
            {
                self.blame(progress, DownCause::NoReplicas);
                return Err(Failure::Unknown);
            }
            Ok(answer)
        };
        self.observed(node, run).await
    }

    /// The same for a call that is not a decision: a server that refuses it may still decide.
    pub async fn call_best_effort(&self, slot: u16, invocation: &Invocation) -> Result<Value, Failure> {
        let node = self.shared.topology.node(slot).ok_or(Failure::Open)?;
        let run = async |progress: &mut Progress| {
            progress.is_best_effort = true;
            self.run(slot, invocation, progress).await
        };
        self.observed(node, run).await
    }

    /// Publishes a message to every gateway that is subscribed to this channel. `Err`: they may not get it.
    pub async fn publish(&self, channel: &str, message: &str) -> Result<(), Failure> {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(channel).arg(message);
        // Any server of a cluster forwards it to all others.
        let map = self.shared.topology.map();
        let node = map.masters.iter().find(|node| node.is_up()).ok_or(Failure::Open)?;
        self.observed(Arc::clone(node), async |progress| self.once(&publish, progress).await).await.map(drop)
    }

    /// Runs a command that no decision depends on. Its errors are returned to the caller and do not open the breaker.
    pub async fn command(&self, slot: u16, command: &Cmd) -> Result<Value, Failure> {
        let node = self.shared.topology.node(slot).ok_or(Failure::Open)?;
        let answer = self.observed(node, async |progress| {
            let connection = self.connection(progress).await?;
            match connection.send(command).await {
                Err(error) => self.conclude(Err(error), progress),
                Ok(answer) => Ok(answer),
            }
        });
        let answer = answer.await;
        if let Ok(Value::ServerError(error)) = &answer
            && error.code() == "MOVED"
        {
            self.shared.topology.refresh.notify_one();
        }
        answer
    }

    /// Makes a call, which ends with its connection at the latest. It has no timer of its own, because that would measure how
    /// busy this core is: the connection ends when the server is silent.
    async fn observed(
        &self,
        node: Arc<RedisNode>,
        call: impl AsyncFnOnce(&mut Progress) -> Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        let begun = Instant::now();
        let answer = call(&mut Progress { generation: 0, node, connection: None, is_best_effort: false }).await?;
        self.observer.round_trip(begun.elapsed());
        Ok(answer)
    }

    async fn run(&self, slot: u16, invocation: &Invocation, progress: &mut Progress) -> Result<Value, Failure> {
        let mut asking = false;
        for _ in 0..DETOURS {
            let connection = self.connection(progress).await?;
            let answer = if asking {
                Box::pin(connection.send_asking(&invocation.command)).await
            } else {
                connection.send(&invocation.command).await
            };
            asking = false;
            // A command is sent again only after the server has answered that it did not run it.
            match answer {
                Ok(Value::ServerError(error)) => match (error.code(), redirection(&error)) {
                    ("NOSCRIPT", _) => {
                        Box::pin(connection.load(&invocation.script.text)).await.map_err(|fault| {
                            self.blame(progress, fault.cause);
                            Failure::Refused
                        })?;
                    }
                    ("MOVED", Some((host, port))) if self.shared.settings.mode == Mode::Cluster => {
                        let address = other_server(&progress.node, host, port);
                        progress.node = self.shared.topology.move_slot(slot, &address);
                    }
                    ("ASK", Some((host, port))) => {
                        asking = true;
                        let address = other_server(&progress.node, host, port);
                        progress.node = self.shared.topology.add_server(&address);
                    }
                    // The keys are being moved between two servers, which is not a fault of either.
                    ("TRYAGAIN", _) => {
                        self.observer.failed("tryagain");
                        return Err(Failure::Refused);
                    }
                    _ => return Err(self.refusal(progress, &ServerFault::of_answer(&error))),
                },
                other => {
                    progress.connection = Some(connection);
                    return self.conclude(other, progress);
                }
            }
        }
        Err(self.refusal(progress, &ServerFault::nonsense()))
    }

    async fn once(&self, command: &Cmd, progress: &mut Progress) -> Result<Value, Failure> {
        let connection = self.connection(progress).await?;
        match connection.send(command).await {
            // Only this command is forbidden: the server can still decide.
            Ok(Value::ServerError(error)) if DownCause::of_answer(&error) == DownCause::NoPermission => {
                self.observer.failed(DownCause::NoPermission.word());
                Err(Failure::Refused)
            }
            answer => self.conclude(answer, progress),
        }
    }

    fn conclude(&self, answer: Result<Value, SendError>, progress: &Progress) -> Result<Value, Failure> {
        match answer {
            Ok(Value::ServerError(error)) => Err(self.refusal(progress, &ServerFault::of_answer(&error))),
            Ok(value) => Ok(value),
            Err(error) => {
                self.blame(progress, error.cause());
                Err(if error.is_unsent() { Failure::Open } else { Failure::Unknown })
            }
        }
    }

    fn refusal(&self, progress: &Progress, fault: &ServerFault) -> Failure {
        if progress.is_best_effort {
            self.observer.failed(fault.cause.word());
        } else {
            self.blame(progress, fault.cause);
        }
        Failure::Refused
    }

    fn blame(&self, progress: &Progress, cause: DownCause) {
        self.observer.failed(cause.word());
        if progress.node.fail(progress.generation, cause) {
            self.shared.observer.went_down();
        }
    }

    /// The failure of a call that is not sent, because its server is known to be down.
    fn unasked(&self) -> Failure {
        self.observer.failed("down");
        Failure::Open
    }

    /// The connection of this core to the server of the call; connects if there is none.
    async fn connection(&self, progress: &mut Progress) -> Result<RedisConnection, Failure> {
        let node_connection = self.node_connection(&progress.node);
        match node_connection.current(progress).map_err(|_| self.unasked())? {
            Some(connection) => Ok(connection),
            // Boxed, so that the future of a call over an open connection stays small.
            None => Box::pin(self.connect(&node_connection, progress)).await,
        }
    }

    async fn connect(
        &self,
        node_connection: &NodeConnection,
        progress: &mut Progress,
    ) -> Result<RedisConnection, Failure> {
        let _connecting = node_connection.connecting.lock().await;
        if let Some(connection) = node_connection.current(progress).map_err(|_| self.unasked())? {
            return Ok(connection);
        }
        match self.shared.connector.connect_for_decisions(&node_connection.node.address).await {
            Ok(connection) => {
                *node_connection.established.lock() =
                    Some(Established { generation: progress.generation, connection: connection.clone() });
                Ok(connection)
            }
            Err(fault) => {
                self.blame(progress, fault.cause);
                Err(Failure::Open)
            }
        }
    }

    fn node_connection(&self, node: &Arc<RedisNode>) -> Arc<NodeConnection> {
        let mut connections = self.connections.lock();
        if let Some(node_connection) =
            connections.iter().find(|node_connection| Arc::ptr_eq(&node_connection.node, node))
        {
            return Arc::clone(node_connection);
        }
        connections.retain(|node_connection| !node_connection.node.is_retired());
        let node_connection = Arc::new(NodeConnection::new(node));
        connections.push(Arc::clone(&node_connection));
        node_connection
    }
}

/// The address in `MOVED 3999 127.0.0.1:6381`.
fn redirection(error: &redis::ServerError) -> Option<(&str, u16)> {
    let (host, port) = error.details()?.split_ascii_whitespace().nth(1)?.rsplit_once(':')?;
    Some((host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?))
}

/// A server of the same cluster. Without a host it is on the host of the server that named it.
fn other_server(by: &RedisNode, host: &str, port: u16) -> Address {
    by.address.at(if host.is_empty() { by.address.host() } else { host }, port)
}
