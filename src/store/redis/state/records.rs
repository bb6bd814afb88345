//! Small records that each gateway writes for the others. No decision depends on them.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::sync::Mutex;
use tokio::time;

use crate::store::redis::scripts::Invocation;
use crate::store::redis::scripts::records;
use crate::store::redis::topology::node::RedisNode;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::transport::connection::RedisConnection;
use crate::store::redis::transport::fault::ServerFault;

/// The records in Redis, over a connection of their own: a long answer delays no decision, and a failure opens no breaker.
#[derive(Debug)]
pub struct RecordLink {
    shared: Arc<SharedRedis>,
    connection: Mutex<Option<(Arc<RedisNode>, RedisConnection)>>,
}

/// A record as it was written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredRecord {
    pub name: String,
    /// How long ago it was written, by the clock of Redis.
    pub age: Duration,
    pub content: Vec<u8>,
}

/// What is sent.
#[derive(Clone, Copy, Debug)]
enum Call<'c> {
    Script(&'c Invocation),
    Command(&'c redis::Cmd),
}

/// Why Redis has neither taken nor sent records.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RecordsUnavailable {
    #[error("Redis does not answer")]
    Away,
    #[error("Redis refuses it")]
    Refused,
}

impl RecordLink {
    pub fn new(shared: &Arc<SharedRedis>) -> Self {
        Self { shared: Arc::clone(shared), connection: Mutex::default() }
    }

    /// Writes a record of a kind, which expires after `kept`. All records of a kind are kept equally long.
    pub async fn write(
        &self,
        kind: &str,
        name: &str,
        content: &[u8],
        kept: Duration,
    ) -> Result<(), RecordsUnavailable> {
        let set = records::name(&self.shared.settings.key_prefix, kind);
        self.call(&set, Call::Script(&records::write(&set, name, content, kept, &self.shared.time))).await.map(drop)
    }

    /// All records of a kind that have not expired.
    pub async fn read(&self, kind: &str) -> Result<Vec<StoredRecord>, RecordsUnavailable> {
        let set = records::name(&self.shared.settings.key_prefix, kind);
        let answer = self.call(&set, Call::Script(&records::read(&set, &self.shared.time))).await?;
        stored(answer).ok_or(RecordsUnavailable::Refused)
    }

    /// Keeps a record that is found by its name alone, for `kept`.
    pub async fn put(&self, kind: &str, name: &str, content: &[u8], kept: Duration) -> Result<(), RecordsUnavailable> {
        let set = records::name(&self.shared.settings.key_prefix, kind);
        self.call(&set, Call::Command(&records::put(&set, name, content, kept))).await.map(drop)
    }

    /// The record of this name that was put; `None`: there is none, or it has expired.
    pub async fn get(&self, kind: &str, name: &str) -> Result<Option<Vec<u8>>, RecordsUnavailable> {
        let set = records::name(&self.shared.settings.key_prefix, kind);
        match self.call(&set, Call::Command(&records::get(&set, name))).await? {
            Value::BulkString(content) => Ok(Some(content)),
            _ => Ok(None),
        }
    }

    /// Removes a record that was put.
    pub async fn remove(&self, kind: &str, name: &str) -> Result<(), RecordsUnavailable> {
        let set = records::name(&self.shared.settings.key_prefix, kind);
        self.call(&set, Call::Command(&records::remove(&set, name))).await.map(drop)
    }

    async fn call(&self, set: &str, call: Call<'_>) -> Result<Value, RecordsUnavailable> {
        let node = self.shared.owner_of(set).ok_or(RecordsUnavailable::Away)?;
        let mut connection = self.connection.lock().await;
        let called = time::timeout(PATIENCE, self.run(&mut connection, &node, call)).await;
        match called {
            Ok(Ok(Value::ServerError(error))) => {
                if matches!(error.code(), "MOVED" | "ASK") {
                    self.shared.topology.refresh.notify_one();
                }
                Err(RecordsUnavailable::Refused)
            }
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => {
                *connection = None;
                Err(RecordsUnavailable::Away)
            }
        }
    }

    async fn run(
        &self,
        slot: &mut Option<(Arc<RedisNode>, RedisConnection)>,
        node: &Arc<RedisNode>,
        call: Call<'_>,
    ) -> Result<Value, ServerFault> {
        let kept = slot.take_if(|(of, connection)| !Arc::ptr_eq(of, node) || !connection.is_open());
        drop(kept);
        if slot.is_none() {
            *slot = Some((Arc::clone(node), self.shared.connector.connect(&node.address).await?));
        }
        let Some((_, connection)) = slot else { return Err(ServerFault::nonsense()) };
        let Invocation { script, command } = match call {
            Call::Script(invocation) => invocation,
            Call::Command(command) => return Ok(connection.send(command).await?),
        };
        match connection.send(command).await? {
            Value::ServerError(error) if error.code() == "NOSCRIPT" => {
                connection.load(&script.text).await?;
                Ok(connection.send(command).await?)
            }
            answer => Ok(answer),
        }
    }
}

/// Reads an answer; `None`: this is none of the script.
fn stored(answer: Value) -> Option<Vec<StoredRecord>> {
    let Value::Array(words) = answer else { return None };
    let mut words = words.into_iter().map(|word| match word {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    });
    let now = moment(&words.next()??)?;
    let mut found = Vec::new();
    while let Some(name) = words.next() {
        let (name, record) = (String::from_utf8(name?).ok()?, words.next()??);
        let (written, content) = record.split_at_checked(MOMENT)?;
        let age = Duration::from_micros(now.saturating_sub(moment(written)?));
        found.push(StoredRecord { name, age, content: content.to_vec() });
    }
    Some(found)
}

fn moment(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// How many digits a moment has, in microseconds since the epoch.
const MOMENT: usize = 16;

/// How long a call may take. Whoever asks is answered without the others then.
const PATIENCE: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_with_the_age_of_each_record() {
        let word = |bytes: &[u8]| Value::BulkString(bytes.to_vec());
        let now = word(b"1700000005000000");
        let read = stored(Value::Array(vec![now.clone(), word(b"a"), word(b"1700000002000000\x00x")])).unwrap();
        assert_eq!(read, [StoredRecord { name: "a".into(), age: Duration::from_secs(3), content: b"\0x".to_vec() }]);
        assert_eq!(stored(Value::Array(vec![now.clone()])), Some(Vec::new()));
        assert_eq!(stored(Value::Array(vec![now.clone(), word(b"a")])), None);
        assert_eq!(stored(Value::Array(vec![now, word(b"a"), word(b"short")])), None);
        assert_eq!(stored(Value::Array(Vec::new())), None);
        assert_eq!(stored(Value::Nil), None);
    }
}
