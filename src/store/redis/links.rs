//! The connections of one core.

use std::sync::Arc;

use redis::RedisError;
use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::sync::Mutex;

use super::Shared;
use super::script::Invocation;

/// One connection to each server, over which the decisions of one core share writes and reads.
#[derive(Debug)]
pub struct Links {
    shared: Arc<Shared>,
    connection: Mutex<Option<MultiplexedConnection>>,
}

/// Why a command has no answer.
#[derive(Debug)]
pub enum Failure {
    /// The server is known not to answer: nothing was sent.
    Open,
    /// It was sent, or may have been, and nobody knows what came of it.
    Unknown,
    /// The server did not do it.
    Refused,
}

impl Links {
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), connection: Mutex::new(None) }
    }

    /// The hash slot of a key's name: keys of one slot can be decided together.
    pub fn slot(&self, _name: &[u8]) -> u16 {
        0
    }

    /// Runs a script on the server that has this slot, within the timeout of the settings.
    pub async fn call(&self, _slot: u16, invocation: &Invocation) -> Result<Value, Failure> {
        let mut connection = self.connection().await.map_err(|_| Failure::Open)?;
        match connection.send_packed_command(&invocation.command).await {
            Ok(Value::ServerError(error)) if error.code() == "NOSCRIPT" => {
                let mut load = redis::cmd("SCRIPT");
                load.arg("LOAD").arg(&invocation.script.text);
                connection.send_packed_command(&load).await.map_err(|_| Failure::Refused)?;
                connection.send_packed_command(&invocation.command).await.map_err(|_| Failure::Unknown)
            }
            Ok(Value::ServerError(_)) => Err(Failure::Refused),
            Ok(value) => Ok(value),
            Err(_) => Err(Failure::Unknown),
        }
    }

    /// Tells every gateway that listens to this channel. `Err`: they may not have been told.
    pub async fn publish(&self, channel: &str, message: &str) -> Result<(), Failure> {
        let mut connection = self.connection().await.map_err(|_| Failure::Open)?;
        let told = connection.send_packed_command(redis::cmd("PUBLISH").arg(channel).arg(message)).await;
        told.map(|_| ()).map_err(|_| Failure::Unknown)
    }

    async fn connection(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut connection = self.connection.lock().await;
        if let Some(connection) = &*connection {
            return Ok(connection.clone());
        }
        let client = redis::Client::open(self.shared.settings.urls[0].as_str())?;
        let fresh = client.get_multiplexed_async_connection().await?;
        *connection = Some(fresh.clone());
        Ok(fresh)
    }
}
