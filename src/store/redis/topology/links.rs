//! The connections of one core.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::Cmd;
use redis::RedisError;
use redis::Value;
use tokio::time;
use tokio::time::Instant;

use super::node::Node;
use super::shared::SharedRedis;
use super::slot;
use crate::store::Observer;
use crate::store::redis::scripts::Invocation;
use crate::store::redis::settings::Mode;
use crate::store::redis::transport::breaker::Cause;
use crate::store::redis::transport::connect::Connection;
use crate::store::redis::transport::fault::Fault;
use crate::store::redis::transport::url::Address;

/// One connection of this core to each server. Decisions share it: they are written and read together.
#[derive(Debug)]
pub struct Links {
    shared: Arc<SharedRedis>,
    observer: Arc<dyn Observer>,
    /// Only this core takes the lock, and never across an await.
    connections: Mutex<Vec<Arc<NodeConnection>>>,
}

/// The connection of this core to one server.
#[derive(Debug)]
struct NodeConnection {
    node: Arc<Node>,
    established: Mutex<Option<Established>>,
    /// Held by the caller that connects, so that the others share what it gets.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Established {
    /// That of the server's breaker when the connection was made.
    generation: u64,
    connection: Connection,
}

/// Why a command has no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The breaker is open, or the server cannot be reached: nothing was sent.
    Open,
    /// The command was sent, or may have been, and the server may have run it.
    Unknown,
    /// The server answered that it did not run the command.
    Refused,
}

/// How far a call has come.
struct Progress {
    node: Arc<Node>,
    generation: u64,
    sent: bool,
    /// A refusal does not open the breaker.
    aside: bool,
}

/// Takes no metrics.
#[derive(Debug)]
struct NoObserver;

impl Observer for NoObserver {
    fn round_trip(&self, _span: Duration) {}

    fn failed(&self, _cause: &'static str) {}
}

/// So many redirections and unknown scripts in one call count as a refusal.
const DETOURS: usize = 5;

impl Links {
    pub fn new(shared: &Arc<SharedRedis>) -> Self {
        let (shared, observer) = (Arc::clone(shared), Arc::clone(&shared.observer));
        Self { shared, observer, connections: Mutex::new(Vec::new()) }
    }

    /// For what the gateway asks by itself: metrics count decisions alone.
    pub(in crate::store::redis) fn unobserved(shared: &Arc<SharedRedis>) -> Self {
        Self { observer: Arc::new(NoObserver), ..Self::new(shared) }
    }

    /// The hash slot of a key's name: keys of one slot can be decided together.
    pub fn slot(&self, name: &[u8]) -> u16 {
        match self.shared.settings.mode {
            Mode::Cluster => slot::of(name),
            Mode::Single | Mode::Sentinel => 0,
        }
    }

    /// Runs a script on the server that has this slot, within the timeout of the settings.
    pub async fn call(&self, slot: u16, invocation: &Invocation) -> Result<Value, Failure> {
        let node = self.shared.topology.node(slot).ok_or(Failure::Open)?;
        self.bounded(node, async |progress| self.run(slot, invocation, progress).await).await
    }

    /// The same for what decides about no request: a server that refuses it can do the rest all the same.
    pub async fn call_aside(&self, slot: u16, invocation: &Invocation) -> Result<Value, Failure> {
        let node = self.shared.topology.node(slot).ok_or(Failure::Open)?;
        let run = async |progress: &mut Progress| {
            progress.aside = true;
            self.run(slot, invocation, progress).await
        };
        self.bounded(node, run).await
    }

    /// Tells every gateway that listens to this channel. `Err`: they may not have been told.
    pub async fn publish(&self, channel: &str, message: &str) -> Result<(), Failure> {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(channel).arg(message);
        // Any server of a cluster tells all the others.
        let map = self.shared.topology.map();
        let node = map.masters.iter().find(|node| node.is_up()).ok_or(Failure::Open)?;
        self.bounded(Arc::clone(node), async |progress| self.once(&publish, progress).await).await.map(drop)
    }

    /// Runs a command that no decision depends on: what the server has against it is for the caller to know, and says
    /// nothing about the server.
    pub async fn beside(&self, slot: u16, command: &Cmd) -> Result<Value, Failure> {
        let node = self.shared.topology.node(slot).ok_or(Failure::Open)?;
        let answer = self.bounded(node, async |progress| {
            let connection = self.connection(progress).await?;
            progress.sent = true;
            match connection.send(command).await {
                Err(error) => self.conclude(Err(error), progress),
                Ok(answer) => Ok(answer),
            }
        });
        let answer = answer.await;
        if let Ok(Value::ServerError(error)) = &answer
            && error.code() == "MOVED"
        {
            self.shared.topology.doubted.notify_one();
        }
        answer
    }

    async fn bounded(
        &self,
        node: Arc<Node>,
        call: impl AsyncFnOnce(&mut Progress) -> Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        let begun = Instant::now();
        let mut progress = Progress { generation: 0, node, sent: false, aside: false };
        let answer = time::timeout(self.shared.settings.timeout, call(&mut progress)).await;
        match answer {
            Ok(Ok(value)) => {
                self.observer.round_trip(begun.elapsed());
                Ok(value)
            }
            Ok(failed) => failed,
            Err(_) => {
                self.blame(&progress, Cause::Timeout);
                Err(if progress.sent { Failure::Unknown } else { Failure::Open })
            }
        }
    }

    async fn run(&self, slot: u16, invocation: &Invocation, progress: &mut Progress) -> Result<Value, Failure> {
        let mut asking = false;
        for _ in 0..DETOURS {
            let connection = self.connection(progress).await?;
            progress.sent = true;
            let answer = if asking {
                Box::pin(connection.send_asking(&invocation.command)).await
            } else {
                connection.send(&invocation.command).await
            };
            asking = false;
            // A command is sent again only after an answer that says it was not executed.
            match answer {
                Ok(Value::ServerError(error)) => match (error.code(), redirection(&error)) {
                    ("NOSCRIPT", _) => {
                        progress.sent = false;
                        Box::pin(connection.load(&invocation.script.text)).await.map_err(|fault| {
                            self.blame(progress, fault.cause);
                            Failure::Refused
                        })?;
                    }
                    ("MOVED", Some((host, port))) if self.shared.settings.mode == Mode::Cluster => {
                        progress.sent = false;
                        let address = elsewhere(&progress.node, host, port);
                        progress.node = self.shared.topology.move_slot(slot, &address);
                    }
                    ("ASK", Some((host, port))) => {
                        progress.sent = false;
                        asking = true;
                        let address = elsewhere(&progress.node, host, port);
                        progress.node = self.shared.topology.passing(&address);
                    }
                    // The keys are on their way from one server to another, which is no fault of either.
                    ("TRYAGAIN", _) => {
                        self.observer.failed("tryagain");
                        return Err(Failure::Refused);
                    }
                    _ => return Err(self.refused(progress, &Fault::of_answer(&error))),
                },
                other => return self.conclude(other, progress),
            }
        }
        Err(self.refused(progress, &Fault::nonsense()))
    }

    async fn once(&self, command: &Cmd, progress: &mut Progress) -> Result<Value, Failure> {
        let connection = self.connection(progress).await?;
        progress.sent = true;
        match connection.send(command).await {
            // It can decide all the same: its user may not do this.
            Ok(Value::ServerError(error)) if Cause::of_answer(&error) == Cause::NoPermission => {
                self.observer.failed(Cause::NoPermission.word());
                Err(Failure::Refused)
            }
            answer => self.conclude(answer, progress),
        }
    }

    fn conclude(&self, answer: Result<Value, RedisError>, progress: &Progress) -> Result<Value, Failure> {
        match answer {
            Ok(Value::ServerError(error)) => Err(self.refused(progress, &Fault::of_answer(&error))),
            Ok(value) => Ok(value),
            Err(error) => {
                self.blame(progress, Cause::of_error(&error));
                Err(Failure::Unknown)
            }
        }
    }

    fn refused(&self, progress: &Progress, fault: &Fault) -> Failure {
        if progress.aside {
            self.observer.failed(fault.cause.word());
        } else {
            self.blame(progress, fault.cause);
        }
        Failure::Refused
    }

    fn blame(&self, progress: &Progress, cause: Cause) {
        self.observer.failed(cause.word());
        progress.node.fail(progress.generation, cause);
    }

    /// The connection of this core to that server: the one it has, or a fresh one.
    async fn connection(&self, progress: &mut Progress) -> Result<Connection, Failure> {
        let node_connection = self.node_connection(&progress.node);
        match node_connection.current(progress)? {
            Some(connection) => Ok(connection),
            // On the heap, where it takes no room from what is decided over a connection that stands.
            None => Box::pin(self.connect(&node_connection, progress)).await,
        }
    }

    async fn connect(&self, node_connection: &NodeConnection, progress: &mut Progress) -> Result<Connection, Failure> {
        let _connecting = node_connection.connecting.lock().await;
        if let Some(connection) = node_connection.current(progress)? {
            return Ok(connection);
        }
        match self.shared.connector.connect(&node_connection.node.address).await {
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

    fn node_connection(&self, node: &Arc<Node>) -> Arc<NodeConnection> {
        let mut connections = self.connections.lock();
        if let Some(node_connection) =
            connections.iter().find(|node_connection| Arc::ptr_eq(&node_connection.node, node))
        {
            return Arc::clone(node_connection);
        }
        connections.retain(|node_connection| !node_connection.node.is_retired());
        let node_connection = Arc::new(NodeConnection {
            node: Arc::clone(node),
            established: Mutex::new(None),
            connecting: tokio::sync::Mutex::new(()),
        });
        connections.push(Arc::clone(&node_connection));
        node_connection
    }
}

impl NodeConnection {
    /// The connection, if it stands. Fails while the breaker is open, and lets go of the connection then.
    fn current(&self, progress: &mut Progress) -> Result<Option<Connection>, Failure> {
        let state = self.node.state();
        progress.generation = state.generation;
        let mut established = self.established.lock();
        // One that the server closed while nothing was asked is no failure: nothing was lost with it.
        established
            .take_if(|established| established.generation != state.generation || !established.connection.is_open());
        match state.cause {
            Some(_) => Err(Failure::Open),
            None => Ok(established.as_ref().map(|established| established.connection.clone())),
        }
    }
}

/// Where `MOVED 3999 127.0.0.1:6381` points to.
fn redirection(error: &redis::ServerError) -> Option<(&str, u16)> {
    let (host, port) = error.details()?.split_ascii_whitespace().nth(1)?.rsplit_once(':')?;
    Some((host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?))
}

/// A server of the same cluster; one without a host is on the host of who named it.
fn elsewhere(by: &Node, host: &str, port: u16) -> Address {
    by.address.at(if host.is_empty() { by.address.host() } else { host }, port)
}
